//! From the paths of a repository's files to candidates. Pure.

use std::collections::BTreeMap;

use super::{Candidate, Oddity};
use crate::workspaces::{WorkspaceKind, check_working_dir};

/// Candidates that one look returns at most.
pub const CANDIDATES_MAX: usize = 1000;
/// Oddities that one look returns at most.
const ODDITIES_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 255;
const GLOBAL: &str = "global";
const DEFAULT_ENVIRONMENT: &str = "dev";
const ACCOUNT_PREFIX: &str = "account-";
/// So many digits in a row make a directory's name look like an account's.
const ACCOUNT_LIKE_DIGITS: usize = 6;

/// Directories that hold no stacks of their own, with everything below them.
const SKIPPED: [&str; 7] = [".git", ".terraform", "modules", "node_modules", ".github", ".idea", ".vscode"];

/// Words that name an environment when they are a whole part of a path, with `_` read as `-`.
const ENVIRONMENTS: [(&str, &[&str]); 5] = [
    ("shared", &["shared", "region-shared-resources", "iam", "s3", "monitoring", "ops-tools"]),
    ("preprod", &["preprod", "pre-prod", "prerel"]),
    ("prod", &["prod", "production", "prd", "prodrel", "relprod"]),
    ("staging", &["staging", "stage", "stg"]),
    ("dev", &["dev", "develop", "development", "test", "pretest", "qa"]),
];
/// Words that, followed by nothing but digits, name what customers use.
const CUSTOMER_WORDS: [&str; 3] = ["cust", "preset", "rc"];

/// What is in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// By path; at most [`CANDIDATES_MAX`].
    pub candidates: Vec<Candidate>,
    /// By path.
    pub oddities: Vec<Oddity>,
}

/// The Azure subscription and the GCP project that a directory is for, by its path: `azure/subscription-<id>/…` and
/// `gcp/project-<id>/…`.
pub(super) fn clouds_of(path: &str) -> (Option<String>, Option<String>) {
    let parts: Vec<&str> = path.split('/').collect();
    let named = |cloud: &str, prefix: &str| {
        let mut pairs = parts.windows(2).filter(|pair| pair[0] == cloud);
        pairs.find_map(|pair| pair[1].strip_prefix(prefix)).filter(|id| !id.is_empty()).map(str::to_owned)
    };
    (named("azure", "subscription-"), named("gcp", "project-"))
}

/// Finds every directory with Terraform code or a Helm chart. `repository` names a stack in the root.
pub fn discover<'p>(files: impl IntoIterator<Item = &'p str>, repository: &str) -> Found {
    let directories = directories(files);
    let mut found = Found::default();
    for (path, code) in &directories {
        let parts: Vec<&str> = path.split('/').collect();
        let skipped = parts.iter().any(|part| SKIPPED.contains(part)) || is_subchart(&directories, &parts);
        let Some(kind) = code.kind().filter(|_| !skipped) else { continue };
        match candidate(path, kind, repository) {
            Ok(candidate) => found.candidates.push(candidate),
            Err(reason) => found.oddities.push(Oddity { path: (*path).to_owned(), reason }),
        }
    }
    let beyond = found.candidates.len().saturating_sub(CANDIDATES_MAX);
    if beyond > 0 {
        found.candidates.truncate(CANDIDATES_MAX);
        let reason = format!("{beyond} more directories are not shown: import them by their paths");
        found.oddities.insert(0, Oddity { path: ".".into(), reason });
    }
    found.oddities.truncate(ODDITIES_MAX);
    found
}

/// The candidate in one directory that a person named, also where discovery would not look. `None` if there is no
/// code in it. What its path does not say is `global` or the default.
pub fn candidate_at<'p>(
    files: impl IntoIterator<Item = &'p str>,
    path: &str,
    repository: &str,
) -> Option<Candidate> {
    let directory = if path == "." { "" } else { path };
    let inside = files.into_iter().filter(|file| split(file).0 == directory);
    let kind = directories(inside).get(directory)?.kind()?;
    Some(candidate(directory, kind, repository).unwrap_or_else(|_| {
        let parts: Vec<&str> = path.split('/').collect();
        assemble(path, &parts, GLOBAL, GLOBAL, kind, repository)
    }))
}

/// The last word of a repository's address, for naming a stack in its root.
pub fn repository_name(repo_url: &str) -> &str {
    let name = repo_url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    name.strip_suffix(".git").unwrap_or(name)
}

#[derive(Clone, Copy, Default)]
struct Code {
    terraform: bool,
    chart: bool,
}

impl Code {
    fn kind(self) -> Option<WorkspaceKind> {
        match self {
            Self { terraform: true, .. } => Some(WorkspaceKind::Terraform),
            Self { chart: true, .. } => Some(WorkspaceKind::Helm),
            Self { .. } => None,
        }
    }
}

fn split(file: &str) -> (&str, &str) {
    file.rsplit_once('/').unwrap_or(("", file))
}

/// Every directory with code in it; the root is the empty text.
fn directories<'p>(files: impl IntoIterator<Item = &'p str>) -> BTreeMap<&'p str, Code> {
    let mut directories: BTreeMap<&str, Code> = BTreeMap::new();
    for file in files {
        let (directory, name) = split(file);
        // Terraform itself ignores hidden files.
        let terraform = (name.ends_with(".tf") || name.ends_with(".tf.json")) && !name.starts_with('.');
        let chart = name == "Chart.yaml";
        if terraform || chart {
            let code = directories.entry(directory).or_default();
            code.terraform |= terraform;
            code.chart |= chart;
        }
    }
    directories
}

/// Whether the directory is a chart's vendored dependency: `<chart>/charts/<this>`.
fn is_subchart(directories: &BTreeMap<&str, Code>, parts: &[&str]) -> bool {
    parts.iter().enumerate().any(|(at, part)| {
        *part == "charts"
            && at + 1 < parts.len()
            && directories.get(parts[..at].join("/").as_str()).is_some_and(|code| code.chart)
    })
}

fn candidate(path: &str, kind: WorkspaceKind, repository: &str) -> Result<Candidate, String> {
    let path = if path.is_empty() { "." } else { path };
    match check_working_dir(path) {
        Ok(same) if same == path => {}
        Ok(_) => return Err("the path has empty parts".into()),
        Err(reason) => return Err(format!("the path {reason}")),
    }
    let parts: Vec<&str> = path.split('/').collect();
    let (account, region) = account_and_region(&parts)?;
    Ok(assemble(path, &parts, account, region, kind, repository))
}

fn assemble(
    path: &str,
    parts: &[&str],
    account: &str,
    region: &str,
    kind: WorkspaceKind,
    repository: &str,
) -> Candidate {
    let last = if path == "." { repository } else { parts.last().copied().unwrap_or(repository) };
    Candidate {
        path: path.to_owned(),
        name: name_from(last),
        aws_account_id: account.to_owned(),
        region: region.to_owned(),
        environment: environment(parts).to_owned(),
        kind,
        already_imported: false,
    }
}

/// `account-<12 digits>/<region>/…` says both; a region in one of the first two parts says where; anything else is
/// everywhere. What was meant to be an account's directory and is not is an error.
fn account_and_region<'p>(parts: &[&'p str]) -> Result<(&'p str, &'p str), String> {
    let first = parts.first().copied().unwrap_or_default();
    let second = parts.get(1).copied();
    if let Some(account) = first.strip_prefix(ACCOUNT_PREFIX).filter(|digits| is_account(digits)) {
        return match second {
            None => Ok((account, GLOBAL)),
            Some(region) if region == GLOBAL || is_region(region) => Ok((account, region)),
            Some(other) => Err(format!("{other} should be a region, such as eu-west-1, or global")),
        };
    }
    if looks_like_account(first) {
        return Err(format!("{first} looks like an account's directory, but is not account- and 12 digits"));
    }
    let region = [Some(first), second].into_iter().flatten().find(|part| is_region(part));
    Ok((GLOBAL, region.unwrap_or(GLOBAL)))
}

fn is_account(digits: &str) -> bool {
    digits.len() == 12 && digits.bytes().all(|b| b.is_ascii_digit())
}

fn looks_like_account(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    let prefixed =
        ["account-", "account_", "acount-", "acct-"].iter().any(|prefix| lower.starts_with(prefix));
    let mut run = 0;
    let many_digits = part.bytes().any(|b| {
        run = if b.is_ascii_digit() { run + 1 } else { 0 };
        run >= ACCOUNT_LIKE_DIGITS
    });
    prefixed && lower.bytes().any(|b| b.is_ascii_digit()) || many_digits
}

/// `eu-west-1`, `us-gov-east-1`, `us-isob-east-1`, `cn-northwest-1`, `il-central-1`, `mx-central-1` and so on.
fn is_region(part: &str) -> bool {
    const AREAS: [&str; 10] = ["us", "eu", "ap", "sa", "ca", "me", "af", "il", "mx", "cn"];
    const PARTITIONS: [&str; 5] = ["gov", "iso", "isob", "isoe", "isof"];
    const DIRECTIONS: [&str; 9] =
        ["north", "south", "east", "west", "central", "northeast", "northwest", "southeast", "southwest"];
    let words: Vec<&str> = part.split('-').collect();
    let (area, direction, number) = match words[..] {
        [area, direction, number] => (area, direction, number),
        [area, partition, direction, number] if PARTITIONS.contains(&partition) => (area, direction, number),
        _ => return false,
    };
    AREAS.contains(&area)
        && DIRECTIONS.contains(&direction)
        && number.len() == 1
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// Whole parts only, the deepest first: `product` is not `prod`, and `latest` is not `test`.
fn environment(parts: &[&str]) -> &'static str {
    let customers = |word: &str| {
        CUSTOMER_WORDS.iter().any(|prefix| {
            word.strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    for part in parts.iter().rev() {
        let word = part.to_ascii_lowercase().replace('_', "-");
        if customers(&word) {
            return "prod";
        }
        let known = ENVIRONMENTS.iter().find(|(_, words)| words.contains(&word.as_str()));
        if let Some((environment, _)) = known {
            return environment;
        }
    }
    DEFAULT_ENVIRONMENT
}

/// A workspace's name from a directory's: `_` and what names cannot have become dashes.
fn name_from(directory: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let name: String =
        directory.chars().map(|c| if fits(c) { c } else { '-' }).take(NAME_CHARS_MAX).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "root".into() } else { name.to_owned() }
}
