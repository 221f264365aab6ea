//! A "terraform" that is a script: it can do in a plan what only a hostile provider could.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Plan JSON that everything accepts.
pub(crate) const PLAN_JSON: &str =
    r#"{"format_version":"1.2","terraform_version":"1.99.0","resource_changes":[]}"#;

/// Writes `<directory>/<version>/terraform`. `plan` is the body of the plan command; `$out` names the plan file.
pub(crate) fn write(directory: &Path, version: &str, plan: &str) -> PathBuf {
    install(directory, version, "terraform", &script(version, plan))
}

/// Writes `<directory>/<version>/<name>`, where every user can run it.
pub(crate) fn install(directory: &Path, version: &str, name: &str, script: &str) -> PathBuf {
    let path = directory.join(version).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, script).unwrap();
    for part in [directory, path.parent().unwrap(), &path] {
        std::fs::set_permissions(part, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    path
}

pub(crate) fn script(version: &str, plan: &str) -> String {
    script_that_says("", version, plan)
}

/// A script that runs `says` at the beginning of each call.
pub(crate) fn script_that_says(says: &str, version: &str, plan: &str) -> String {
    format!(
        r#"#!/bin/bash
{says}
case "$1" in
version) echo '{{"terraform_version":"{version}"}}' ;;
init)
  mkdir -p .terraform
  echo '{{"backend":{{"type":"http","config":{{"address":null}}}}}}' > .terraform/terraform.tfstate
  ;;
plan)
  for argument in "$@"; do case "$argument" in -out=*) out="${{argument#-out=}}" ;; esac; done
  {plan}
  ;;
show)
  if [ "$2" = -json ]; then echo '{PLAN_JSON}'; else echo "the plan"; fi
  ;;
*) exit 1 ;;
esac
"#
    )
}
