//! What every use case may need, wired once per process by the edge.

use std::sync::Arc;

use crate::config::Overrides;
use crate::db::Db;
use crate::executors::TaskIdentity;
use crate::ids::IdSource;
use crate::limits::Limits;
use crate::ports::{BlobStore, CheckpointSigner, Waker};
use crate::secrets::Keyring;

/// The outside world as one value. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Deps {
    /// Queue, lock and truth.
    pub db: Db,
    /// Large immutable objects.
    pub blobs: Arc<dyn BlobStore>,
    /// Called after commits that made work due.
    pub waker: Arc<dyn Waker>,
    /// Where ids come from.
    pub ids: IdSource,
    /// The derived keys that this function was given.
    pub keys: Arc<Keyring>,
    /// Tunables.
    pub limits: Arc<Limits>,
    /// Where people and executors reach us, without a trailing slash.
    pub public_url: Arc<str>,
    /// Below it lie the repositories that may be named by path; `None` allows none.
    pub local_repos_root: Option<Arc<str>>,
    /// Whether repositories may live at loopback and private addresses: on one machine, never on AWS.
    pub allow_private_addresses: bool,
    /// How executors that are not on this machine prove who they are. `None`: none of them gets a bundle.
    pub task_identity: Option<TaskIdentity>,
    /// Settings that the environment gives, before those that superadmins have set.
    pub overrides: Arc<Overrides>,
    /// Signs audit checkpoints in place of our own key: a KMS. `None`: the key of the audit domain does.
    pub audit_signer: Option<Arc<dyn CheckpointSigner>>,
    /// Where AWS's token service answers, instead of its public addresses.
    pub sts_endpoint: Option<Arc<str>>,
}
