//! The walk along the checkpoints. Pure: who has signed is told by the caller.

use super::rules::NO_HASH;
use super::views::{CheckpointBody, HeadView};
use crate::digest::Sha256Digest;

/// What is known about the signature of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// It holds, under a key that is trusted.
    ByTrusted,
    /// It names a trusted key and does not hold, or the body says that another one signs.
    Falsely,
    /// It names a key that is not trusted: one that was replaced, or nobody's.
    ByUnknown,
}

/// What is wrong with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointFault {
    /// A number is missing or repeated.
    #[error("a checkpoint is missing before this one")]
    Gap,
    /// It was chained to something else.
    #[error("the checkpoint does not follow the one before it")]
    Link,
    /// It was rewritten.
    #[error("the checkpoint does not match its digest, or cannot be read")]
    Content,
    /// It takes back what an earlier one stated.
    #[error("a chain is shorter in this checkpoint than in the one before it")]
    Backwards,
    /// Somebody made it up, or changed it.
    #[error("the checkpoint is forged: its signature does not hold")]
    Signature,
    /// No trusted key vouches for it.
    #[error("the checkpoint is signed by a key that is not trusted, and no later one vouches for it")]
    Signer,
    /// Only its copy is left.
    #[error("the object store has this checkpoint, and the database has lost it")]
    Lost,
}

/// One checkpoint as stored.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointLink<'a> {
    /// Its number.
    pub sequence: i64,
    /// What it says it hashes to.
    pub hash: Sha256Digest,
    /// The signed bytes.
    pub body: &'a [u8],
    /// What is known about its signature.
    pub signed: Signed,
}

/// A walk along the checkpoints in the order of their numbers. A trusted signature vouches for all before it, because each
/// body names the digest of the one before: so a key that was replaced need not be known for ever. Only the newest heads
/// are kept: a chain that holds up to them held before.
#[derive(Clone, Debug)]
pub struct CheckpointWalk {
    sequence: i64,
    hash: Sha256Digest,
    heads: Vec<HeadView>,
    /// The first checkpoint that nobody trusted vouches for so far.
    unvouched: Option<i64>,
}

impl Default for CheckpointWalk {
    fn default() -> Self {
        Self { sequence: 0, hash: NO_HASH, heads: Vec::new(), unvouched: None }
    }
}

impl CheckpointWalk {
    /// The number of the last checkpoint seen; 0 before the first.
    pub fn sequence(&self) -> i64 {
        self.sequence
    }

    /// Checks that the next checkpoint follows, and moves past it.
    pub fn step(&mut self, link: &CheckpointLink<'_>) -> Result<(), CheckpointFault> {
        let (expected, previous) = (self.sequence + 1, self.hash);
        // Moves on even after a fault, so that one changed checkpoint is reported once and not for all that follow.
        (self.sequence, self.hash) = (link.sequence, link.hash);
        let body = body_of(link.body).filter(|_| Sha256Digest::of(link.body) == link.hash);
        let body = body.ok_or(CheckpointFault::Content)?;
        if body.sequence != link.sequence {
            return Err(CheckpointFault::Content);
        }
        let heads = std::mem::replace(&mut self.heads, body.heads);
        if link.sequence != expected {
            return Err(CheckpointFault::Gap);
        }
        if body.previous_hash != previous {
            return Err(CheckpointFault::Link);
        }
        if !never_back(&heads, &self.heads) {
            return Err(CheckpointFault::Backwards);
        }
        match link.signed {
            Signed::ByTrusted => self.unvouched = None,
            Signed::ByUnknown => self.unvouched = self.unvouched.or(Some(link.sequence)),
            Signed::Falsely => return Err(CheckpointFault::Signature),
        }
        Ok(())
    }

    /// What is wrong with the end.
    pub fn finish(&self) -> Option<(i64, CheckpointFault)> {
        self.unvouched.map(|sequence| (sequence, CheckpointFault::Signer))
    }

    /// The heads that the newest checkpoint states.
    pub fn into_heads(self) -> Vec<HeadView> {
        self.heads
    }
}

/// What the signed bytes say; `None` if they say nothing.
pub(super) fn body_of(body: &[u8]) -> Option<CheckpointBody> {
    serde_json::from_slice(body).ok()
}

/// Whether every chain is still there and no shorter. Both are ordered by chain.
fn never_back(before: &[HeadView], after: &[HeadView]) -> bool {
    before.iter().all(|old| {
        after
            .binary_search_by_key(&old.chain_id, |head| head.chain_id)
            .is_ok_and(|at| after[at].sequence >= old.sequence)
    })
}
