//! What a workspace's settings may be. Every way to make or edit one passes [`Settings::validate`].

use std::collections::BTreeMap;

use super::model::{NewWorkspace, StateWrites, Tool, WorkspaceKind};
use super::{RepoUrl, check_branch};
use crate::ids::ClusterId;
use crate::state_stores::StateBackend;

/// The word for "in no account" and "in no region".
const GLOBAL: &str = "global";
const NAME_CHARS_MAX: usize = 255;
const ENVIRONMENT_CHARS_MAX: usize = 63;
const REGION_CHARS_MAX: usize = 32;
const WORKING_DIR_BYTES_MAX: usize = 512;
const TAGS_MAX: usize = 50;
const TAG_KEY_CHARS_MAX: usize = 63;
const TAG_VALUE_CHARS_MAX: usize = 255;

/// Whether repositories may be paths on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalRepos {
    /// Below the root that the process was given.
    Allowed,
    /// Nowhere.
    Refused,
}

/// A value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct InvalidField {
    /// The field's name on the wire.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl InvalidField {
    /// The named field is wrong.
    pub fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

/// Settings that passed every rule. Cannot be made otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    name: String,
    kind: WorkspaceKind,
    environment: String,
    aws_account_id: String,
    region: String,
    repo_url: RepoUrl,
    repo_ref: String,
    tf_working_dir: String,
    tool: Tool,
    tool_version: Option<String>,
    tags: BTreeMap<String, String>,
    state_writes: StateWrites,
    state_backend: StateBackend,
    webhook_enabled: bool,
    links: Links,
}

/// Whose credentials runs get. Whether the unit has registered them is for the database to say: each is a foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of Workspace")]
pub struct Links {
    pub state_aws_account_id: Option<String>,
    pub azure_subscription_id: Option<String>,
    pub gcp_project_id: Option<String>,
    pub cluster_id: Option<ClusterId>,
}

#[expect(missing_docs, reason = "the fields are those of Workspace")]
impl Settings {
    /// Checks and normalises every field.
    pub fn validate(new: NewWorkspace, local: LocalRepos) -> Result<Self, InvalidField> {
        check_name(&new.name).map_err(|reason| InvalidField::new("name", reason))?;
        check_environment(&new.environment).map_err(|reason| InvalidField::new("environment", reason))?;
        check_account(&new.aws_account_id).map_err(|reason| InvalidField::new("aws_account_id", reason))?;
        check_region(&new.region).map_err(|reason| InvalidField::new("region", reason))?;
        check_branch(&new.repo_ref).map_err(|reason| InvalidField::new("repo_ref", reason))?;
        if let Some(version) = &new.tool_version {
            check_version(version).map_err(|reason| InvalidField::new("tool_version", reason))?;
        }
        Ok(Self {
            repo_url: RepoUrl::parse(&new.repo_url, local)
                .map_err(|reason| InvalidField::new("repo_url", reason))?,
            tf_working_dir: check_working_dir(&new.tf_working_dir)
                .map_err(|reason| InvalidField::new("tf_working_dir", reason))?,
            tags: check_tags(new.tags).map_err(|reason| InvalidField::new("tags", reason))?,
            name: new.name,
            kind: new.kind,
            environment: new.environment,
            aws_account_id: new.aws_account_id,
            region: new.region,
            repo_ref: new.repo_ref,
            tool: new.tool,
            tool_version: new.tool_version,
            state_writes: new.state_writes,
            state_backend: new.state_backend,
            webhook_enabled: new.webhook_enabled,
            links: Links {
                state_aws_account_id: new.state_aws_account_id,
                // Azure takes its ids in any case and prints them in this one.
                azure_subscription_id: new.azure_subscription_id.map(|id| id.to_ascii_lowercase()),
                gcp_project_id: new.gcp_project_id,
                cluster_id: new.cluster_id,
            },
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> WorkspaceKind {
        self.kind
    }

    pub fn environment(&self) -> &str {
        &self.environment
    }

    pub fn aws_account_id(&self) -> &str {
        &self.aws_account_id
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    pub fn repo_url(&self) -> &str {
        self.repo_url.as_str()
    }

    pub fn repo_ref(&self) -> &str {
        &self.repo_ref
    }

    pub fn tf_working_dir(&self) -> &str {
        &self.tf_working_dir
    }

    pub fn tool(&self) -> Tool {
        self.tool
    }

    pub fn tool_version(&self) -> Option<&str> {
        self.tool_version.as_deref()
    }

    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    pub fn state_writes(&self) -> StateWrites {
        self.state_writes
    }

    pub fn state_backend(&self) -> StateBackend {
        self.state_backend
    }

    pub fn webhook_enabled(&self) -> bool {
        self.webhook_enabled
    }

    pub fn links(&self) -> &Links {
        &self.links
    }
}

/// A tag to look for: `key:value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagFilter {
    /// Lower case, as stored.
    pub key: String,
    /// Exactly this value.
    pub value: String,
}

impl TagFilter {
    /// Reads `key:value`; the key ends at the first colon.
    pub fn parse(text: &str) -> Result<Self, InvalidField> {
        let invalid = || InvalidField::new("tag", "must have the form key:value");
        let (key, value) = text.split_once(':').ok_or_else(invalid)?;
        let key = check_tag_key(key).map_err(|reason| InvalidField::new("tag", reason))?;
        check_tag_value(value).map_err(|reason| InvalidField::new("tag", reason))?;
        Ok(Self { key, value: value.to_owned() })
    }
}

/// A directory of a repository in its one spelling: relative, `/` between parts, `.` for the root.
pub fn check_working_dir(path: &str) -> Result<String, &'static str> {
    if path.len() > WORKING_DIR_BYTES_MAX {
        return Err("must have at most 512 bytes");
    }
    if path.starts_with('/') {
        return Err("must be relative to the root of the repository");
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        return Err("must not contain backslashes or control characters");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err("must not contain ..");
    }
    if parts.first().is_some_and(|first| first.starts_with('-')) {
        return Err("must not begin with a dash");
    }
    if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err("must not lie in .git");
    }
    Ok(if parts.is_empty() { ".".into() } else { parts.join("/") })
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let ok = name.len() <= NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./-".contains(&b));
    if ok { Ok(()) } else { Err("must be 1 to 255 letters, digits and _ . / -, a letter or digit first") }
}

fn check_environment(environment: &str) -> Result<(), &'static str> {
    let ok = environment.len() <= ENVIRONMENT_CHARS_MAX
        && environment.starts_with(|c: char| c.is_ascii_alphanumeric())
        && environment.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if ok { Ok(()) } else { Err("must be 1 to 63 letters, digits and _ -, a letter or digit first") }
}

fn check_account(account: &str) -> Result<(), &'static str> {
    let digits = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
    if digits || account == GLOBAL { Ok(()) } else { Err("must be 12 digits, or global") }
}

fn check_region(region: &str) -> Result<(), &'static str> {
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let ok = region.len() <= REGION_CHARS_MAX && region.split('-').all(part);
    if ok { Ok(()) } else { Err("must be lower-case words and digits with dashes between, or global") }
}

/// Refuses anything but one exact version of a tool.
pub fn check_version(version: &str) -> Result<(), &'static str> {
    match semver::Version::parse(version) {
        Ok(parsed) if parsed.build.is_empty() => Ok(()),
        _ => Err("must be one exact version, such as 1.10.5"),
    }
}

fn check_tags(tags: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    if tags.len() > TAGS_MAX {
        return Err(format!("there may be at most {TAGS_MAX}"));
    }
    let mut checked = BTreeMap::new();
    for (key, value) in tags {
        let lower = check_tag_key(&key)?;
        check_tag_value(&value)?;
        if checked.insert(lower, value).is_some() {
            return Err("two keys differ only in case".into());
        }
    }
    Ok(checked)
}

fn check_tag_key(key: &str) -> Result<String, &'static str> {
    let ok = !key.is_empty()
        && key.len() <= TAG_KEY_CHARS_MAX
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./-".contains(&b));
    if ok { Ok(key.to_ascii_lowercase()) } else { Err("a key must be 1 to 63 letters, digits and _ . / -") }
}

fn check_tag_value(value: &str) -> Result<(), &'static str> {
    let ok = value.chars().count() <= TAG_VALUE_CHARS_MAX && !value.chars().any(char::is_control);
    if ok { Ok(()) } else { Err("a value must have at most 255 characters and no control characters") }
}
