//! What a repository says about itself: `plumbline.yaml`, or `terraducktel.yaml` for those who come from there.

use std::path::Path;

use serde::Deserialize;
use serde_norway::Value;

use crate::error::StepError;
use crate::files::read_left_by_child;

const FILE_BYTES_MAX: u64 = 64 << 10;
const OWN_NAMES: [&str; 2] = ["plumbline.yaml", "plumbline.yml"];
const OTHER_NAMES: [&str; 2] = ["terraducktel.yaml", "terraducktel.yml"];

/// The part of the file that we use. Other keys belong to others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Configuration {
    /// `terraform` or `tofu`.
    pub(crate) tool: Option<String>,
    /// Exact version.
    pub(crate) tool_version: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    tool: Option<String>,
    tool_version: Option<Value>,
    terraform: Option<Terraform>,
}

#[derive(Deserialize)]
struct Terraform {
    version: Option<Value>,
}

/// Reads the file in the working directory. Returns its name with it; `None` if there is none.
pub(crate) fn load(directory: &Path) -> Result<Option<(String, Configuration)>, StepError> {
    let mut found = Vec::new();
    for name in OWN_NAMES.into_iter().chain(OTHER_NAMES) {
        let text = read_left_by_child(&directory.join(name), FILE_BYTES_MAX)
            .map_err(|error| StepError::Permanent(format!("{name} cannot be read: {error}")))?;
        if let Some(text) = text {
            found.push((name, text));
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [(name, text)] => {
            let parsed = parse(text).map_err(|reason| StepError::Permanent(format!("{name}: {reason}")))?;
            Ok(Some(((*name).to_owned(), parsed)))
        }
        [(one, _), (other, _), ..] => {
            Err(StepError::Permanent(format!("both {one} and {other} exist; keep one of them")))
        }
    }
}

fn parse(text: &[u8]) -> Result<Configuration, String> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(Configuration::default());
    }
    let document: Document = serde_norway::from_slice(text).map_err(|error| format!("not valid: {error}"))?;
    let versions = [document.terraform.and_then(|terraform| terraform.version), document.tool_version];
    let mut tool_version = None;
    for version in versions.into_iter().flatten() {
        let version = exact_version(&version)?;
        if tool_version.as_ref().is_some_and(|earlier| *earlier != version) {
            return Err("terraform.version and tool_version differ".into());
        }
        tool_version = Some(version);
    }
    match document.tool.as_deref() {
        None | Some("terraform" | "tofu") => Ok(Configuration { tool: document.tool, tool_version }),
        Some(_) => Err("tool must be terraform or tofu".into()),
    }
}

fn exact_version(value: &Value) -> Result<String, String> {
    let Value::String(text) = value else {
        // 1.10 without quotes is the number 1.1.
        return Err("write the version in quotes, like \"1.11.4\"".into());
    };
    let text = text.strip_prefix('v').unwrap_or(text);
    semver::Version::parse(text)
        .map(|version| version.to_string())
        .map_err(|_| "the version must be exact, like \"1.11.4\"".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Result<Option<String>, String> {
        parse(text.as_bytes()).map(|configuration| configuration.tool_version)
    }

    #[test]
    fn versions_are_exact_and_quoted() {
        assert_eq!(version("terraform:\n  version: v1.9.8\n"), Ok(Some("1.9.8".into())));
        assert_eq!(version("tool: tofu\ntool_version: \"1.8.0\"\n"), Ok(Some("1.8.0".into())));
        assert_eq!(version("helm:\n  chart: x\n"), Ok(None));
        assert_eq!(version(""), Ok(None));
        assert!(version("terraform:\n  version: 1.10\n").is_err());
        assert!(version("terraform:\n  version: \"~> 1.9\"\n").is_err());
        assert!(version("tool_version: \"1.9.8\"\nterraform:\n  version: \"1.9.7\"\n").is_err());
        assert!(version("tool: pulumi\n").is_err());
        assert!(version("- a list").is_err());
    }

    #[test]
    fn two_files_are_refused_and_symlinks_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("terraducktel.yaml"), "terraform:\n  version: \"1.9.8\"\n")
            .unwrap();
        assert!(load(directory.path()).unwrap().is_some());
        std::fs::write(directory.path().join("plumbline.yaml"), "").unwrap();
        assert!(load(directory.path()).is_err());
        std::fs::remove_file(directory.path().join("plumbline.yaml")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("plumbline.yml")).unwrap();
        assert!(load(directory.path()).is_err());
    }
}
