//! Tasks as plain data.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::TraceParent;
use crate::ids::{BusinessUnitId, TaskId, UserId};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $word:literal, $class:ident;)*) => {
        /// What a task does. Adding a kind: `docs/guides/add-a-task-kind.md`.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum TaskKind {
            $($(#[$doc])* $kind,)*
        }

        impl TaskKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The word in the database and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// `None` for an unknown word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$kind),)* _ => None }
            }

            /// Which cap the task counts against, and who runs it.
            pub fn class(self) -> TaskClass {
                match self { $(Self::$kind => TaskClass::$class,)* }
            }
        }
    };
}

// One list, because a kind that were missing from another one would never be claimed.
kinds! {
    /// The plan phase of a run, in an executor.
    RunPlan => "run_plan", Executor;
    /// The apply phase of a run, in an executor.
    RunApply => "run_apply", Executor;
    /// Look into a repository for directories that could become workspaces.
    RepositoryDiscover => "repository_discover", Short;
    /// List the branches of a workspace's repository.
    WorkspaceBranches => "workspace_branches", Short;
    /// Import directories of a repository as workspaces.
    WorkspaceImport => "workspace_import", Short;
    /// Look at a repository with one Git credential.
    GitCredentialTest => "git_credential_test", Short;
    /// Ask AWS who the credentials of a registered account are.
    AwsAccountTest => "aws_account_test", Short;
    /// Ask Azure whether a registered subscription's service principal gets in.
    AzureSubscriptionTest => "azure_subscription_test", Short;
    /// Ask Google whether the key of a registered project works.
    GcpProjectTest => "gcp_project_test", Short;
    /// Ask a registered cluster whether its kubeconfig gets in.
    ClusterTest => "cluster_test", Short;
    /// Ask Slack who the unit's bot is.
    SlackTest => "slack_test", Short;
    /// Ask Infracost whether it takes the unit's key.
    InfracostTest => "infracost_test", Short;
    /// Fetch the public keys of an issuer of CI systems' tokens.
    IssuerKeys => "issuer_keys", Short;
    /// Bring the index of resources to the newest version of a workspace's state.
    StateIndex => "state_index", Short;
}

/// Who runs a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskClass {
    /// A launched executor.
    Executor,
    /// The `outbound` function; the worker itself if no address of a tenant's is called.
    Short,
}

impl TaskClass {
    /// The word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executor => "executor",
            Self::Short => "short",
        }
    }
}

/// Whether a live task waits or is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Waits to be claimed.
    Queued,
    /// Held by an attempt.
    Running,
    /// Finished well.
    Done,
    /// Spent its attempts, or can never work.
    Dead,
    /// Withdrawn.
    Cancelled,
    /// Replaced by a newer one.
    Superseded,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Done, Self::Dead, Self::Cancelled, Self::Superseded];

    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// How a task leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishedOutcome {
    /// Finished well.
    Done,
    /// Spent its attempts, or can never work: a dead letter, with its error.
    Dead,
    /// Withdrawn.
    Cancelled,
    /// Replaced by a newer one.
    Superseded,
}

impl FinishedOutcome {
    /// The word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }
}

/// Where a held task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeasePhase {
    /// Claimed; the executor has not traded its ticket yet, so it provably has not begun.
    Launching,
    /// The executor reports.
    Live,
    /// A started apply stopped reporting; it may still be changing things.
    Unresponsive,
}

impl LeasePhase {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::Live => "live",
            Self::Unresponsive => "unresponsive",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Launching, Self::Live, Self::Unresponsive].into_iter().find(|phase| phase.as_str() == word)
    }
}

/// A task to enqueue.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// What to do.
    pub kind: TaskKind,
    /// For whom.
    pub business_unit_id: BusinessUnitId,
    /// The row that the task is about.
    pub subject_id: uuid::Uuid,
    /// What the handler needs beyond the subject; no secrets.
    pub payload: Value,
    /// Covers queued tasks only; contains what makes the work different.
    pub dedupe_key: String,
    /// Lower is sooner.
    pub priority: i32,
    /// Not before this long from now.
    pub delay: Duration,
    /// The trace that asked for it.
    pub traceparent: Option<TraceParent>,
    /// The person who asked; `None` for the system.
    pub requested_by: Option<UserId>,
}

impl NewTask {
    /// A task with the default priority, due at once.
    pub fn new(
        kind: TaskKind,
        unit: BusinessUnitId,
        subject: impl Into<uuid::Uuid>,
        dedupe_key: String,
    ) -> Self {
        Self {
            kind,
            business_unit_id: unit,
            subject_id: subject.into(),
            payload: Value::Object(serde_json::Map::new()),
            dedupe_key,
            priority: 100,
            delay: Duration::ZERO,
            traceparent: None,
            requested_by: None,
        }
    }
}

/// What became of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// A new row.
    New(TaskId),
    /// A queued task with the same dedupe key exists; nothing was added.
    Existing(TaskId),
}

impl Enqueued {
    /// The task either way.
    pub fn task_id(self) -> TaskId {
        match self {
            Self::New(id) | Self::Existing(id) => id,
        }
    }
}

/// The right to write about a task: names one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The task.
    pub task_id: TaskId,
    /// Its fencing token at the claim.
    pub token: i64,
}

/// A lease of which more is known than that nobody has taken it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveLease {
    /// The database's time.
    pub now: DateTime<Utc>,
    /// When the attempt is over, however often it is renewed.
    pub attempt_ends_at: DateTime<Utc>,
}

/// A task in the hands of a worker.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// The right to write about it.
    pub lease: Lease,
    /// What to do.
    pub kind: TaskKind,
    /// For whom.
    pub business_unit_id: BusinessUnitId,
    /// The row that it is about.
    pub subject_id: uuid::Uuid,
    /// What the handler needs.
    pub payload: Value,
    /// Which attempt this is, from 1.
    pub attempts: i32,
    /// How many there may be.
    pub attempts_max: i32,
    /// The trace that asked for it.
    pub traceparent: Option<TraceParent>,
    /// The person who asked.
    pub requested_by: Option<UserId>,
    /// How long the task was due before it was claimed.
    pub waited: Duration,
}

/// How an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailedAttempt {
    /// Trying again may work.
    Retry(String),
    /// Trying again will give the same.
    Permanent(String),
    /// Whoever should have begun the work refused for now: the attempt does not count.
    NotBegun(String),
}

impl FailedAttempt {
    /// One sentence for people.
    pub fn why(&self) -> &str {
        let (Self::Retry(why) | Self::Permanent(why) | Self::NotBegun(why)) = self;
        why
    }
}

/// What follows from a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Queued again, after this long.
    Requeued(Duration),
    /// Queued again, after this long, as if there had been no attempt.
    GivenBack(Duration),
    /// Moved to the history as a dead letter.
    DeadLettered,
}

/// A task as operators see it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// For whom.
    pub business_unit_id: BusinessUnitId,
    /// What it does.
    pub kind: TaskKind,
    /// Which cap it counts against.
    pub class: TaskClass,
    /// The row that it is about.
    pub subject_id: uuid::Uuid,
    /// Where it stands.
    pub status: TaskStatus,
    /// Where its attempt stands; only while running.
    pub lease_phase: Option<LeasePhase>,
    /// Attempts so far.
    pub attempts: i32,
    /// Attempts at most.
    pub attempts_max: i32,
    /// Due from then on.
    pub run_after: Option<DateTime<Utc>>,
    /// Who holds it.
    pub claimed_by: Option<String>,
    /// The last attempt's error.
    pub last_error: Option<String>,
    /// What a finished short task found; absent in lists.
    pub result: Option<Value>,
    /// The dead letter that this one repeats.
    pub replay_of: Option<TaskId>,
    /// The person who asked; `None` for the system.
    pub requested_by: Option<UserId>,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it left the queue.
    pub finished_at: Option<DateTime<Utc>>,
}

/// What can go wrong with a task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Another attempt owns the task, or it has ended: the caller must stop.
    #[error("the lease on this task was lost: another attempt owns it, or it has ended")]
    LeaseLost,
    /// No such task in this scope.
    #[error("no such task")]
    NotFound,
    /// Only a dead letter whose subject has not ended with it can be replayed.
    #[error("this task cannot be replayed: {0}")]
    NotReplayable(&'static str),
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] crate::access::AccessError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
