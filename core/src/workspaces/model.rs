//! Workspaces as plain data.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

use super::TagFilter;
use crate::ids::{BusinessUnitId, ClusterId, RunId, UserId, WorkspaceId};
use crate::state_stores::StateBackend;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
        )]
        // The document's generator does not see words that come from a macro.
        #[schema(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The word in the database and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// `None` for an unknown word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What lies in the workspace's directory.
    WorkspaceKind {
        /// Terraform or OpenTofu code.
        Terraform => "terraform",
        /// A Helm chart.
        Helm => "helm",
    }
}

words! {
    /// Which program plans and applies.
    Tool {
        /// HashiCorp Terraform.
        Terraform => "terraform",
        /// OpenTofu.
        Tofu => "tofu",
    }
}

words! {
    /// Who may write the workspace's state.
    StateWrites {
        /// Approved runs alone.
        RunsOnly => "runs_only",
        /// Also people with the permission.
        RunsAndPeople => "runs_and_people",
    }
}

words! {
    /// Whether the directory is still in the repository.
    PathStatus {
        /// It is.
        Ok => "ok",
        /// It was gone when last looked for. The workspace stays.
        Orphaned => "orphaned",
        /// Nobody has looked.
        Unknown => "unknown",
    }
}

words! {
    /// Whether the real world still is as the state says.
    DriftStatus {
        /// It was at the last good look.
        Clean => "clean",
        /// It was not.
        Drifted => "drifted",
        /// Nobody has looked.
        Unknown => "unknown",
    }
}

/// Why a workspace takes no run that could change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Blocked {
    /// Since when.
    pub at: DateTime<Utc>,
    /// A sentence for people.
    pub reason: String,
    /// The run that left it so.
    pub run_id: Option<RunId>,
}

/// A person's lock: no run that could change the workspace starts meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Locked {
    /// Since when.
    pub at: DateTime<Utc>,
    /// The person who holds it.
    pub by: UserId,
    /// What they were called when they took it, or what their API key was.
    pub who: String,
    /// Why, in their words.
    pub reason: String,
}

impl std::fmt::Display for Locked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "workspace is locked by {}: {}", self.who, self.reason)
    }
}

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Whose it is.
    pub business_unit_id: BusinessUnitId,
    /// For people; need not be unique.
    pub name: String,
    /// What lies in its directory.
    pub kind: WorkspaceKind,
    /// Such as `dev` or `prod`.
    pub environment: String,
    /// Twelve digits, or `global`.
    pub aws_account_id: String,
    /// Such as `eu-west-1`, or `global`.
    pub region: String,
    /// Where the code is.
    pub repo_url: String,
    /// Branch or tag that runs use unless they name another.
    pub repo_ref: String,
    /// The directory in the repository; `.` is its root.
    pub tf_working_dir: String,
    /// Which program plans and applies.
    pub tool: Tool,
    /// Its exact version; none means the newest one found that is new enough.
    pub tool_version: Option<String>,
    /// Labels; keys are lower case.
    pub tags: BTreeMap<String, String>,
    /// Who may write its state.
    pub state_writes: StateWrites,
    /// Which kind of store new versions of its state go to.
    pub state_backend: StateBackend,
    /// Whether a push starts runs.
    pub webhook_enabled: bool,
    /// A registered AWS account whose credentials runs get instead of those of `aws_account_id`.
    pub state_aws_account_id: Option<String>,
    /// A registered Azure subscription whose credentials runs get.
    pub azure_subscription_id: Option<String>,
    /// A registered GCP project whose credentials runs get.
    pub gcp_project_id: Option<String>,
    /// A registered cluster that runs get into.
    pub cluster_id: Option<ClusterId>,
    /// Whether its directory is still there.
    pub path_status: PathStatus,
    /// Whether the real world is as its state says.
    pub drift_status: DriftStatus,
    /// The one run that may change it now.
    pub active_run_id: Option<RunId>,
    /// Set while it takes no run that could change it.
    pub blocked: Option<Blocked>,
    /// Set while a person keeps such runs away.
    pub locked: Option<Locked>,
    /// Rises at every edit: the value behind `ETag` and `If-Match`.
    pub version: i32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was edited last.
    pub updated_at: DateTime<Utc>,
}

impl Workspace {
    /// Whether the run that has waited longest may begin.
    pub fn takes_next_run(&self) -> bool {
        self.active_run_id.is_none() && self.blocked.is_none() && self.locked.is_none()
    }
}

/// A workspace to make, as a caller sends it; nothing is checked yet.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// Letters, digits and `_ . / -`, at most 255.
    pub name: String,
    /// Such as `dev` or `prod`.
    pub environment: String,
    /// `https`, `http`, `ssh` or `user@host:path`; never with a password in it.
    pub repo_url: String,
    /// Terraform unless said otherwise.
    #[serde(default = "terraform_kind")]
    pub kind: WorkspaceKind,
    /// Twelve digits, or `global`.
    #[serde(default = "global")]
    pub aws_account_id: String,
    /// Such as `eu-west-1`, or `global`.
    #[serde(default = "global")]
    pub region: String,
    /// Branch or tag.
    #[serde(default = "main_ref")]
    pub repo_ref: String,
    /// The directory in the repository.
    #[serde(default = "root_dir")]
    pub tf_working_dir: String,
    /// Which program plans and applies.
    #[serde(default = "terraform_tool")]
    pub tool: Tool,
    /// An exact version, such as `1.10.5`.
    #[serde(default)]
    pub tool_version: Option<String>,
    /// Labels; keys become lower case.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Who may write its state.
    #[serde(default = "runs_only")]
    pub state_writes: StateWrites,
    /// Which kind of store new versions of its state go to.
    #[serde(default)]
    pub state_backend: StateBackend,
    /// Whether a push starts runs.
    #[serde(default)]
    pub webhook_enabled: bool,
    /// A registered AWS account whose credentials runs get instead of those of `aws_account_id`.
    #[serde(default)]
    pub state_aws_account_id: Option<String>,
    /// A registered Azure subscription, by its id at Azure.
    #[serde(default)]
    pub azure_subscription_id: Option<String>,
    /// A registered GCP project, by its id at GCP.
    #[serde(default)]
    pub gcp_project_id: Option<String>,
    /// A registered cluster.
    #[serde(default)]
    pub cluster_id: Option<ClusterId>,
}

fn terraform_kind() -> WorkspaceKind {
    WorkspaceKind::Terraform
}

fn terraform_tool() -> Tool {
    Tool::Terraform
}

fn runs_only() -> StateWrites {
    StateWrites::RunsOnly
}

fn global() -> String {
    "global".into()
}

fn main_ref() -> String {
    "main".into()
}

fn root_dir() -> String {
    ".".into()
}

/// An edit: what is absent stays as it is. A workspace's kind cannot be changed.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the fields are those of NewWorkspace")]
pub struct WorkspaceChange {
    pub name: Option<String>,
    pub environment: Option<String>,
    pub repo_url: Option<String>,
    pub aws_account_id: Option<String>,
    pub region: Option<String>,
    pub repo_ref: Option<String>,
    pub tf_working_dir: Option<String>,
    pub tool: Option<Tool>,
    /// `null` goes back to the newest version found.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub tool_version: Option<Option<String>>,
    /// Replaces all tags.
    pub tags: Option<BTreeMap<String, String>>,
    pub state_writes: Option<StateWrites>,
    pub state_backend: Option<StateBackend>,
    pub webhook_enabled: Option<bool>,
    /// `null` goes back to the credentials of `aws_account_id`.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub state_aws_account_id: Option<Option<String>>,
    /// `null` unlinks.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub azure_subscription_id: Option<Option<String>>,
    /// `null` unlinks.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub gcp_project_id: Option<Option<String>>,
    /// `null` unlinks.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub cluster_id: Option<Option<ClusterId>>,
}

/// Tells `null` (clear it) from an absent field (keep it).
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

impl WorkspaceChange {
    /// What the workspace would be after the edit; still to be validated.
    pub fn over(self, now: Workspace) -> NewWorkspace {
        NewWorkspace {
            name: self.name.unwrap_or(now.name),
            environment: self.environment.unwrap_or(now.environment),
            repo_url: self.repo_url.unwrap_or(now.repo_url),
            kind: now.kind,
            aws_account_id: self.aws_account_id.unwrap_or(now.aws_account_id),
            region: self.region.unwrap_or(now.region),
            repo_ref: self.repo_ref.unwrap_or(now.repo_ref),
            tf_working_dir: self.tf_working_dir.unwrap_or(now.tf_working_dir),
            tool: self.tool.unwrap_or(now.tool),
            tool_version: self.tool_version.unwrap_or(now.tool_version),
            tags: self.tags.unwrap_or(now.tags),
            state_writes: self.state_writes.unwrap_or(now.state_writes),
            state_backend: self.state_backend.unwrap_or(now.state_backend),
            webhook_enabled: self.webhook_enabled.unwrap_or(now.webhook_enabled),
            state_aws_account_id: self.state_aws_account_id.unwrap_or(now.state_aws_account_id),
            azure_subscription_id: self.azure_subscription_id.unwrap_or(now.azure_subscription_id),
            gcp_project_id: self.gcp_project_id.unwrap_or(now.gcp_project_id),
            cluster_id: self.cluster_id.unwrap_or(now.cluster_id),
        }
    }
}

/// Which workspaces a list shows.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceFilter {
    /// Exactly this environment.
    pub environment: Option<String>,
    /// Exactly this region.
    pub region: Option<String>,
    /// Exactly this account.
    pub aws_account_id: Option<String>,
    /// The name contains this, whatever the case.
    pub name_contains: Option<String>,
    /// Has this tag.
    pub tag: Option<TagFilter>,
}
