//! What executors and `callback` say to each other, as plain data. Both sides are built from this module.
//!
//! All bodies are JSON but for log chunks. Every call after the trade carries `Authorization: Bearer <token>`.
//! 409 with the slug `lease-lost` means that another attempt owns the task: the executor stops its child and exits.
//! `callback` accepts [`VERSION`] and the one before it.

mod bundle;
mod credentials;
mod identity;
mod identity_tokens;
mod presigned;
mod reports;

pub use bundle::{
    Bundle, GitCredential, LeaseTerms, PinnedState, PlanReference, RunCommand, RunPhase, Source, StepSpec,
    Tool, TradeRequest, Variable,
};
pub use credentials::{AwsCredentials, AwsKeys, AwsRole, ClusterAccess, EksAccess};
pub use identity::IdentityProof;
pub use identity_tokens::{IdentityToken, IdentityTokenRequest, TokenFile, TokenFor};
pub use presigned::Presigned;
pub use reports::{
    ApplyBegun, ApplyDone, ArtifactKind, AttemptFailed, CancelMode, FailureKind, HeartbeatAnswer, LogAnswer,
    PlanDone, StateUploadAnswer, StateUploadBegin, StateUploadCommit, StepReport, StepStatus, TouchedReport,
    TouchedResource, UploadAnswer, UploadBegin,
};

/// The protocol's version.
pub const VERSION: u32 = 1;
