//! Which write becomes the head, which waits for a person, which is refused.

use super::StateHead;
use crate::digest::Sha256Digest;
use crate::ids::{ExecutorId, UserId, WorkspaceId};
use crate::workspaces::Locked;

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// A person's own Terraform.
    Person(UserId),
    /// An apply.
    Executor(ExecutorId),
}

impl HeldBy {
    /// Whether somebody may use the holder's lock by naming its id. People share theirs (a pipeline may write for a
    /// person), but nobody acts as an executor.
    pub fn lets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Person(_), Self::Person(_)) => true,
            (Self::Executor(holder), Self::Executor(other)) => holder == other,
            (Self::Person(_), Self::Executor(_)) | (Self::Executor(_), Self::Person(_)) => false,
        }
    }
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The holder's id of it.
    pub id: String,
    /// Its fencing number.
    pub generation: i64,
    /// Who holds it; `None` if that person is gone.
    pub by: Option<HeldBy>,
}

impl Lock {
    /// Whether naming this id is enough for somebody to use the lock.
    pub fn lets(&self, id: &str, by: HeldBy) -> bool {
        // A person who is gone cannot be asked; naming the id is proof enough for another person.
        self.id == id && self.by.map_or(matches!(by, HeldBy::Person(_)), |holder| holder.lets(by))
    }
}

/// The right that a write claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFence<'a> {
    /// None: only people may, and only while nobody holds the lock.
    Unlocked,
    /// The lock that the writer named.
    Lock {
        /// Its id.
        id: &'a str,
        /// Who writes.
        by: HeldBy,
    },
    /// An upload that was begun under a lock.
    Upload {
        /// The lock's id.
        id: &'a str,
        /// The lock's generation when the upload was begun.
        generation: i64,
        /// Who commits it, and so still has the file; `None` where nobody waits for the answer.
        by: Option<HeldBy>,
    },
}

/// A write to judge.
#[derive(Clone, Debug)]
pub struct Write<'a> {
    /// The right that it claims.
    pub fence: WriteFence<'a>,
    /// From the body.
    pub serial: i64,
    /// From the body.
    pub lineage: &'a str,
    /// Of the body.
    pub sha256: Sha256Digest,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next version.
    Accept,
    /// It is the head already: a repeated request.
    AlreadyStored,
    /// Kept, but not as the head.
    Quarantine(QuarantineReason),
    /// Not kept: the writer still has it and learns why.
    Refuse(RefuseReason),
}

/// Why a body waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuarantineReason {
    /// The lock it was written under is not held any more.
    #[error("the lock it was written under was lost")]
    LostLock,
    /// The head has the same serial and other content.
    #[error("the newest version has the same serial and other content")]
    SameSerial,
    /// The head has a higher serial.
    #[error("the newest version has a higher serial")]
    LowerSerial,
    /// The head has another lineage.
    #[error("the newest version has another lineage: this is the state of something else")]
    OtherLineage,
    /// What came is not what its writer announced.
    #[error("the body is not what its writer announced")]
    Contradiction,
}

impl QuarantineReason {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LostLock => "lost_lock",
            Self::SameSerial => "same_serial",
            Self::LowerSerial => "lower_serial",
            Self::OtherLineage => "other_lineage",
            Self::Contradiction => "contradiction",
        }
    }
}

/// Why a write is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefuseReason {
    /// Somebody holds the lock, and the write named none.
    #[error("the state is locked, and this write does not name the lock: write under the lock, or wait")]
    Locked,
    /// The head has a higher serial.
    #[error(
        "the newest version has a higher serial: read the state again before writing, or raise the serial of what you push"
    )]
    LowerSerial,
    /// The head has another lineage.
    #[error(
        "the newest version has another lineage: this is the state of something else. If it shall replace the state here, call accept-next-lineage first"
    )]
    OtherLineage,
}

/// What Terraform shows to whoever meets a person's lock of the workspace: a LockInfo like any holder's.
pub(super) fn lock_info_of(workspace_id: WorkspaceId, locked: &Locked) -> String {
    serde_json::json!({
        "ID": format!("workspace-{workspace_id}"),
        "Operation": "manual lock of the workspace: plumb workspace unlock",
        "Info": locked.reason,
        "Who": locked.who,
        "Version": "",
        "Created": locked.at,
        "Path": "",
    })
    .to_string()
}

/// Judges a write against the head and the lock, both as one row lock shows them.
pub fn judge_write(
    head: Option<&StateHead>,
    lock: Option<&Lock>,
    accept_next_lineage: bool,
    write: &Write<'_>,
) -> Verdict {
    // Before the fence: the answer to an accepted write may have been lost, and the lock released since.
    if head.is_some_and(|head| is_same(head, write)) {
        return Verdict::AlreadyStored;
    }
    let fenced = match (write.fence, lock) {
        (WriteFence::Unlocked, None) => true,
        (WriteFence::Unlocked, Some(_)) => return Verdict::Refuse(RefuseReason::Locked),
        (WriteFence::Lock { id, by }, Some(lock)) => lock.lets(id, by),
        (WriteFence::Upload { id, generation, .. }, Some(lock)) => {
            lock.id == id && lock.generation == generation
        }
        (WriteFence::Lock { .. } | WriteFence::Upload { .. }, None) => false,
    };
    if !fenced {
        return Verdict::Quarantine(QuarantineReason::LostLock);
    }
    match judge_content(head, accept_next_lineage, write) {
        // A person's client still has the file and shows the reason; an executor's disk is about to go away.
        Verdict::Quarantine(QuarantineReason::LowerSerial) if is_persons(write.fence) => {
            Verdict::Refuse(RefuseReason::LowerSerial)
        }
        Verdict::Quarantine(QuarantineReason::OtherLineage) if is_persons(write.fence) => {
            Verdict::Refuse(RefuseReason::OtherLineage)
        }
        verdict => verdict,
    }
}

/// Judges only what the body says: lineage and serial.
pub fn judge_content(head: Option<&StateHead>, accept_next_lineage: bool, write: &Write<'_>) -> Verdict {
    let Some(head) = head else { return Verdict::Accept };
    if head.lineage != write.lineage {
        return if accept_next_lineage {
            Verdict::Accept
        } else {
            Verdict::Quarantine(QuarantineReason::OtherLineage)
        };
    }
    match write.serial.cmp(&head.serial) {
        std::cmp::Ordering::Greater => Verdict::Accept,
        std::cmp::Ordering::Equal if is_same(head, write) => Verdict::AlreadyStored,
        std::cmp::Ordering::Equal => Verdict::Quarantine(QuarantineReason::SameSerial),
        std::cmp::Ordering::Less => Verdict::Quarantine(QuarantineReason::LowerSerial),
    }
}

fn is_same(head: &StateHead, write: &Write<'_>) -> bool {
    head.serial == write.serial && head.lineage == write.lineage && head.sha256 == write.sha256
}

fn is_persons(fence: WriteFence<'_>) -> bool {
    match fence {
        WriteFence::Unlocked => true,
        WriteFence::Lock { by, .. } => matches!(by, HeldBy::Person(_)),
        WriteFence::Upload { by, .. } => matches!(by, Some(HeldBy::Person(_))),
    }
}
