//! What happened, as plain data: the checkers look at nothing else.

use std::collections::BTreeMap;

use plumbline_core::digest::Sha256Digest;
use uuid::Uuid;

/// A call that only the holder of a lease may make.
#[derive(Clone, Debug)]
pub struct Report {
    pub task: Uuid,
    pub lease_token: i64,
    pub what: String,
    /// Moments of the one order of events: when it was sent, and when its answer was there.
    pub from: u64,
    pub to: u64,
    pub is_accepted: bool,
}

/// A state that an executor wrote.
#[derive(Clone, Debug)]
pub struct StateWrite {
    pub workspace: Uuid,
    pub sha256: Sha256Digest,
    /// It was told that the lock is its own, and it lives.
    pub holds_lock: bool,
    pub is_accepted: bool,
}

/// A version of a state, in the order in which they were made.
#[derive(Clone, Debug)]
pub struct Version {
    pub workspace: Uuid,
    pub serial: i64,
    pub lineage: String,
    pub sha256: Sha256Digest,
}

/// A counter after one of its changes.
#[derive(Clone, Debug)]
pub struct Running {
    pub unit: Uuid,
    pub running: i32,
    pub cap: i32,
}

/// A run as it stands when everything has settled.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    pub run: Uuid,
    pub status: String,
    pub reason: Option<String>,
    pub is_over: bool,
    pub waits: bool,
    pub has_task: bool,
    pub apply_begun: bool,
    pub approved: Option<Vec<u8>>,
    pub plan: Option<Vec<u8>>,
}

/// The whole.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub reports: Vec<Report>,
    pub writes: Vec<StateWrite>,
    pub versions: Vec<Version>,
    pub running: Vec<Running>,
    /// Tasks that were due and had room right after a sweep that was alone.
    pub overlooked: Vec<Uuid>,
    /// What people and executors were told is done, by the audit log's word for it.
    pub told: BTreeMap<String, usize>,
    /// What the audit log says.
    pub audited: BTreeMap<String, usize>,
    pub is_chain_whole: bool,
    pub runs: Vec<Settled>,
    /// Digests with which applies were allowed to begin, by run.
    pub begun_with: Vec<(Uuid, Vec<u8>)>,
    /// Runs of which an apply executor was killed.
    pub killed: Vec<Uuid>,
    /// Counters, tasks or executors that are left when everything has settled.
    pub left_over: Vec<String>,
}
