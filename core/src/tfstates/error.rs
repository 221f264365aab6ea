//! What can go wrong with the state.

use super::{BadLock, BadState, QuarantineReason, RefuseReason, Unreadable};
use crate::access::AccessError;
use crate::db::DbError;
use crate::ids::QuarantinedStateId;
use crate::ports::BlobError;
use crate::state_stores::StateStoreError;
use crate::workspaces::Locked;

/// What the use cases of the state can say went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// No such workspace, version, upload or quarantined state in this scope.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The workspace's state belongs to its runs.
    #[error(
        "only apply runs write or lock the state of this workspace (state_writes is runs_only); \
         to plan by hand against it, use -lock=false"
    )]
    RunsOnly,
    /// A plan only reads.
    #[error("a plan may neither write nor lock the state")]
    PlanMayNotWrite,
    /// Executors write their own lock's state, nothing else.
    #[error("an executor may not do this")]
    NotForExecutors,
    /// A late call of an executor that the platform has seen stop.
    #[error("this executor counts as stopped, so it cannot take the lock")]
    ExecutorStopped,
    /// Somebody else holds the lock.
    #[error("the state is locked")]
    Locked {
        /// The holder's LockInfo, verbatim.
        holder: String,
    },
    /// UNLOCK named a lock that is not the one that is held.
    #[error("this lock is not held, so it cannot be released: {0}")]
    NotTheHolder(String),
    /// The holder's executor may still act.
    #[error(
        "the run that holds the lock may still be changing things: cancel it, or wait until it has stopped"
    )]
    HolderMayLive,
    /// Nobody holds the lock.
    #[error("the state is not locked")]
    NotLocked,
    /// It is the workspace that is locked, not the state.
    #[error(
        "the state is not locked, but its {0}. Its holder or an admin ends that with plumb workspace unlock"
    )]
    WorkspaceLocked(Locked),
    /// A body of this lock is still on its way.
    #[error("an upload under this lock has not been committed yet: commit it, then unlock")]
    UploadUnresolved,
    /// The bytes of an upload have not come.
    #[error("the bytes of this upload have not reached the object store")]
    UploadMissing,
    /// The upload was given up.
    #[error("this upload was closed: begin a new one")]
    UploadClosed,
    /// Not a state.
    #[error(transparent)]
    BadState(#[from] BadState),
    /// Not a LockInfo.
    #[error(transparent)]
    BadLock(#[from] BadLock),
    /// Content-MD5 does not fit the body.
    #[error("the body does not have the Content-MD5 that was sent with it: it was damaged on its way")]
    DigestMismatch,
    /// A field of the request is wrong.
    #[error("{0}")]
    Invalid(&'static str),
    /// Too large to be written in one request.
    #[error(
        "the state has more than {max_bytes} bytes, too large for one request: work through `plumb tf -- apply` and \
         `plumb state push`, or let a run write it; they upload states of any size"
    )]
    TooLarge {
        /// The limit.
        max_bytes: usize,
    },
    /// The list of consumers cannot be so.
    #[error("workspace_ids: {0}")]
    BadConsumers(&'static str),
    /// The workspace does not share its outputs with the one whose run asks.
    #[error("this workspace does not share its outputs with the workspace of this run")]
    NotShared,
    /// Outputs that no answer can hold.
    #[error("the outputs of this state are longer than {max_bytes} bytes, so they cannot be shared")]
    OutputsTooLong {
        /// The limit.
        max_bytes: usize,
    },
    /// The write contradicts the head or the lock; the writer keeps it.
    #[error("{0}")]
    Refused(RefuseReason),
    /// The write contradicts the head or the lock; we keep it.
    #[error("the state was not accepted, but kept in quarantine: {reason}")]
    Quarantined {
        /// Where it waits.
        id: QuarantinedStateId,
        /// Why.
        reason: QuarantineReason,
    },
    /// A person already decided.
    #[error("this was already {0}")]
    AlreadyResolved(String),
    /// The version is the newest one.
    #[error("this is the current version already")]
    AlreadyCurrent,
    /// The client encrypted the state.
    #[error("the state is encrypted by its client: Plumbline cannot look into it or change its serial")]
    Opaque,
    /// No state, or nothing that we can tell apart.
    #[error("this version's content cannot be told: {0}")]
    Unreadable(Unreadable),
    /// The head moved while we worked.
    #[error("the state has changed meanwhile: look at the newest version and try again")]
    HeadMoved,
    /// History is never removed.
    #[error(
        "Plumbline keeps the history of a state and has no way to purge it: to give up the state, delete the workspace"
    )]
    NeverPurged,
    /// A row says that there is a body, and the object store has none.
    #[error("the object store has lost the body of this state: {0}")]
    BodyMissing(String),
    /// The object store.
    #[error(transparent)]
    Store(#[from] BlobError),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<StateStoreError> for StateError {
    fn from(error: StateStoreError) -> Self {
        match error {
            StateStoreError::Store(error) => error.into(),
            StateStoreError::Db(error) => error.into(),
        }
    }
}

impl From<Unreadable> for StateError {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::Encrypted => Self::Opaque,
            other => Self::Unreadable(other),
        }
    }
}
