//! Requests and results of discovery and import.

use serde::{Deserialize, Serialize};

use crate::ids::WorkspaceId;
use crate::secrets::SecretText;
use crate::workspaces::WorkspaceKind;

/// Which repository to look into.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoverRequest {
    /// `https`, `http` or `ssh`; never with a password in it.
    pub repo_url: String,
    /// Branch or tag; the repository's default branch if absent.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// Goes with `token`; `x-access-token` if absent. For `https` alone.
    #[serde(default)]
    pub username: Option<String>,
    /// A token or password for this one request. Sealed with the task; never shown again.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub token: Option<SecretText>,
}

/// What to import from a repository.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// `https`, `http` or `ssh`; never with a password in it.
    pub repo_url: String,
    /// Branch or tag; the repository's default branch if absent.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// Goes with `token`; `x-access-token` if absent. For `https` alone.
    #[serde(default)]
    pub username: Option<String>,
    /// A token or password for this one request. Sealed with the task; never shown again.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub token: Option<SecretText>,
    /// Absent: everything that discovery finds.
    #[serde(default)]
    pub entries: Option<Vec<ImportEntry>>,
}

/// One directory to import. What is absent is what discovery suggests.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of a workspace")]
pub struct ImportEntry {
    /// The directory in the repository.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws_account_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<WorkspaceKind>,
}

/// A directory that could become a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Candidate {
    /// The directory; `.` is the root of the repository.
    pub path: String,
    /// A name made from the path.
    pub name: String,
    /// Twelve digits, or `global`.
    pub aws_account_id: String,
    /// A region, or `global`.
    pub region: String,
    /// A guess from whole words of the path.
    pub environment: String,
    /// What lies in it.
    pub kind: WorkspaceKind,
    /// Whether a workspace of this unit has this directory of this repository, in this place.
    pub already_imported: bool,
}

/// Something that looks like a mistake, or cannot be a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Oddity {
    /// Where.
    pub path: String,
    /// What is odd about it.
    pub reason: String,
}

/// What discovery found: the result of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Discovered {
    /// The repository, in its one spelling.
    pub repo_url: String,
    /// The branch or tag that was looked at.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit that was looked at.
    pub commit_sha: String,
    /// What could be imported, by path.
    pub candidates: Vec<Candidate>,
    /// What was not understood, by path.
    pub errors: Vec<Oddity>,
}

/// What an import did: the result of its task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ImportResult {
    /// New workspaces.
    pub created: Vec<ImportedWorkspace>,
    /// What was left out, and why.
    pub skipped: Vec<SkippedEntry>,
}

/// A workspace that an import made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[expect(missing_docs, reason = "the fields are those of a workspace")]
pub struct ImportedWorkspace {
    pub id: WorkspaceId,
    pub path: String,
    pub name: String,
}

/// A directory that an import left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SkippedEntry {
    /// The directory.
    pub path: String,
    /// Why.
    pub reason: String,
}
