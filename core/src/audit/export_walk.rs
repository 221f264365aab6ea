//! An exported log, line by line: what `plumb audit export` writes, and the verification that needs nothing but such a file
//! and the public key. It takes the same steps along a chain as the service.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::keys::PublicKey;
use super::model::ChainId;
use super::rules::{ChainWalk, Fault, Link};
use super::views::{
    Broken, BrokenCheckpoint, CheckpointBody, CheckpointView, ExportedEntry, HeadView, SignedCheckpoint,
    Verification,
};
use super::{CheckpointFault, Signed};
use crate::digest::Sha256Digest;

/// The layout of the file.
pub const EXPORT_FORMAT: u32 = 1;

/// One line of an exported log. The first says what the file has, then comes the newest checkpoint if there is one, then
/// where each chain ends, then the entries of one chain after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExportLine {
    /// The first line.
    Export {
        /// [`EXPORT_FORMAT`].
        format: u32,
        /// The only chain in it; `None` is all of them.
        chain_id: Option<ChainId>,
    },
    /// The newest checkpoint when the export began.
    Checkpoint(SignedCheckpoint),
    /// Where a chain ended when the export began.
    Head(HeadView),
    /// One entry.
    Entry(ExportedEntry),
}

/// Why a file is no exported log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// It is something else, or was cut in the middle of a line.
    #[error("it is not a line of an exported audit log")]
    Line,
    /// The first line is missing.
    #[error("an exported audit log begins with a line that says so")]
    Start,
    /// A later version wrote it.
    #[error("this version of plumb does not know the format of the file")]
    Format,
    /// Lines are not in the order in which they are written.
    #[error("this line cannot stand here")]
    Order,
}

/// Verifies a file line by line, in memory that does not grow with the number of entries.
#[derive(Debug)]
pub struct ExportWalk {
    trusted: Vec<PublicKey>,
    /// What the file says that it has; outer `None` before its first line.
    scope: Option<Option<ChainId>>,
    heads: BTreeMap<ChainId, HeadView>,
    /// What the checkpoint says.
    stated: BTreeMap<ChainId, HeadView>,
    walk: Option<(ChainId, ChainWalk)>,
    seen: BTreeSet<ChainId>,
    found: Verification,
}

impl ExportWalk {
    /// Before the first line. Signatures are checked with these keys.
    pub fn new(trusted: Vec<PublicKey>) -> Self {
        let found = Verification { ok: true, chains: 0, entries: 0, broken: Vec::new(), checkpoint: None };
        let (heads, stated) = (BTreeMap::new(), BTreeMap::new());
        Self { trusted, scope: None, heads, stated, walk: None, seen: BTreeSet::new(), found }
    }

    /// Looks at the next line.
    pub fn line(&mut self, text: &str) -> Result<(), ExportError> {
        let line: ExportLine = serde_json::from_str(text).map_err(|_| ExportError::Line)?;
        match (self.scope, line) {
            (None, ExportLine::Export { format: EXPORT_FORMAT, chain_id }) => self.scope = Some(chain_id),
            (None, ExportLine::Export { .. }) => return Err(ExportError::Format),
            (None, _) => return Err(ExportError::Start),
            (Some(_), ExportLine::Export { .. }) => return Err(ExportError::Order),
            (Some(scope), ExportLine::Checkpoint(checkpoint)) => self.checkpoint(scope, &checkpoint)?,
            (Some(_), ExportLine::Head(head)) => {
                let is_new = self.walk.is_none() && !self.heads.contains_key(&head.chain_id);
                if !is_new {
                    return Err(ExportError::Order);
                }
                self.heads.insert(head.chain_id, head);
            }
            (Some(_), ExportLine::Entry(entry)) => self.entry(&entry),
        }
        Ok(())
    }

    /// What the whole file came to.
    pub fn finish(mut self) -> Result<Verification, ExportError> {
        if self.scope.is_none() {
            return Err(ExportError::Start);
        }
        self.leave_chain();
        let missing: Vec<HeadView> =
            self.heads.values().filter(|head| !self.seen.contains(&head.chain_id)).cloned().collect();
        for head in missing {
            self.report(head.chain_id, head.sequence, Fault::Head);
        }
        // What is left was never reached.
        for head in std::mem::take(&mut self.stated).into_values() {
            self.report(head.chain_id, head.sequence, Fault::Checkpoint);
        }
        let is_whole = self.found.checkpoint.as_ref().is_none_or(|checkpoint| checkpoint.ok);
        self.found.ok = self.found.broken.is_empty() && is_whole;
        Ok(self.found)
    }

    fn checkpoint(
        &mut self,
        scope: Option<ChainId>,
        checkpoint: &SignedCheckpoint,
    ) -> Result<(), ExportError> {
        if self.found.checkpoint.is_some() || self.walk.is_some() {
            return Err(ExportError::Order);
        }
        let body: Option<CheckpointBody> = serde_json::from_str(&checkpoint.body).ok();
        let body = body.filter(|_| Sha256Digest::of(checkpoint.body.as_bytes()) == checkpoint.hash);
        let fault = match (&body, checkpoint.signed(&self.trusted)) {
            (None, _) => Some(CheckpointFault::Content),
            (Some(_), Signed::ByTrusted) => None,
            (Some(_), Signed::Falsely) => Some(CheckpointFault::Signature),
            (Some(_), Signed::ByUnknown) => Some(CheckpointFault::Signer),
        };
        let sequence = body.as_ref().map_or(0, |body| body.sequence);
        let faults: Vec<_> =
            fault.map(|fault| BrokenCheckpoint { sequence, reason: fault.to_string() }).into_iter().collect();
        self.found.checkpoint = Some(CheckpointView { sequence, ok: faults.is_empty(), faults });
        // A checkpoint that nobody vouches for says nothing about the entries.
        let heads = body.filter(|_| fault.is_none()).map(|body| body.heads).unwrap_or_default();
        let in_scope = heads.into_iter().filter(|head| scope.is_none_or(|chain| chain == head.chain_id));
        self.stated = in_scope.map(|head| (head.chain_id, head)).collect();
        Ok(())
    }

    fn entry(&mut self, entry: &ExportedEntry) {
        let chain_id = entry.chain_id;
        if self.walk.as_ref().is_none_or(|(current, _)| *current != chain_id) {
            self.leave_chain();
            self.found.chains += 1;
            if !self.seen.insert(chain_id) {
                // Its entries stand apart: the walk begins anew and finds the rest missing.
                self.report(chain_id, entry.sequence, Fault::Gap);
            }
            self.walk = Some((chain_id, ChainWalk::new(chain_id)));
        }
        self.found.entries += 1;
        let link = Link {
            sequence: entry.sequence,
            previous_hash: entry.previous_hash,
            hash: entry.hash,
            canonical: entry.canonical.as_bytes(),
        };
        let (_, walk) = self.walk.as_mut().expect("a walk was begun");
        if let Err(fault) = walk.step(&link).and_then(|()| walk.read(&link).map(drop)) {
            self.report(chain_id, entry.sequence, fault);
        }
        if self.stated.get(&chain_id).is_some_and(|head| head.sequence == entry.sequence) {
            let head = self.stated.remove(&chain_id).expect("it is there");
            if head.hash != entry.hash {
                self.report(chain_id, entry.sequence, Fault::Checkpoint);
            }
        }
    }

    /// The chain that was walked ends where its head says. One without a head was added by somebody.
    fn leave_chain(&mut self) {
        let Some((chain_id, walk)) = self.walk.take() else { return };
        let (sequence, _) = walk.position();
        let ended = match self.heads.get(&chain_id) {
            Some(head) => walk.finish(head.sequence, head.hash),
            None => Err(Fault::Head),
        };
        if let Err(fault) = ended {
            self.report(chain_id, sequence, fault);
        }
    }

    fn report(&mut self, chain_id: ChainId, sequence: i64, fault: Fault) {
        if self.found.broken.len() < Verification::BROKEN_MAX {
            self.found.broken.push(Broken { chain_id, sequence, reason: fault.to_string() });
        }
    }
}
