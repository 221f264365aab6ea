//! What the recipes do before anything is built: find terraform, or say in one line what is missing.

use std::path::Path;
use std::process::Output;

use super::root;
use crate::executor::fake_tool;
use crate::executor::tools::{mirror, release};

/// Programs that the recipes may use.
const TOOLS: [&str; 6] = ["bash", "cat", "head", "sed", "sort", "uname"];

/// A directory that is all of PATH: the programs, and a terraform or tofu of each version.
fn machine(tools: &[(&str, &str)]) -> tempfile::TempDir {
    let machine = tempfile::tempdir().expect("a directory");
    let path = std::env::var_os("PATH").expect("a PATH");
    for tool in TOOLS {
        let real = std::env::split_paths(&path).map(|part| part.join(tool)).find(|it| it.is_file());
        let real = real.unwrap_or_else(|| panic!("{tool} is not on PATH"));
        std::os::unix::fs::symlink(real, machine.path().join(tool)).expect("linked");
    }
    // What is called python3 may be a script that needs more than these programs.
    let asked =
        std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let real = text(&asked.expect("python3 runs").stdout);
    std::os::unix::fs::symlink(real.trim(), machine.path().join("python3")).expect("linked");
    for (name, version) in tools {
        fake_tool::install(machine.path(), ".", name, &fake_tool::script(version, ""));
    }
    machine
}

/// Runs a line after the recipes' functions were read, on that machine, with that mirror.
async fn bash(machine: &Path, mirror: &str, line: &str) -> Output {
    // Reading them adds usual places to PATH, which may have a terraform.
    let script = format!(". scripts/lib.sh; PATH='{0}'; CACHE='{0}/cache'; {line}", machine.display());
    let mut bash = tokio::process::Command::new("bash");
    bash.args(["-c", &script]).current_dir(root()).env("PLUMBLINE_TOOL_MIRROR", mirror).kill_on_drop(true);
    bash.output().await.expect("bash runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_terraform_that_is_new_enough_is_found_and_one_that_is_not_is_named_in_one_line() {
    for enough in [
        &[("terraform", "1.10.0")][..],
        &[("terraform", "1.11.4")],
        &[("tofu", "1.10.3")],
        &[("terraform", "1.9.8"), ("tofu", "1.10.3")],
    ] {
        let found = bash(machine(enough).path(), "", "need_terraform && echo found").await;
        assert_eq!(
            (text(&found.stdout).as_str(), text(&found.stderr).as_str()),
            ("found\n", ""),
            "{enough:?}"
        );
    }
    for (tools, names) in [
        (&[][..], "is missing: put it, or OpenTofu, on PATH"),
        (&[("terraform", "1.9.8")], "is missing (there is only terraform 1.9.8): "),
        (&[("terraform", "1.12.0-beta1")], "(there is only terraform 1.12.0-beta1)"),
        (&[("terraform", "0.15.5"), ("tofu", "1.6.0")], "(there is only terraform 0.15.5, tofu 1.6.0)"),
    ] {
        let refused = bash(machine(tools).path(), "", "need_terraform && echo found").await;
        let said = text(&refused.stderr);
        assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(1), ""), "{said}");
        assert!(said.starts_with("error: terraform 1.10 or newer ") && said.contains(names), "{said}");
        assert!(said.contains("PLUMBLINE_TOOL_MIRROR"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[tokio::test]
async fn a_missing_terraform_comes_from_the_mirror_with_the_right_checksum_or_not_at_all() {
    let line = "need_terraform && terraform version -json";
    let machine = machine(&[("terraform", "1.9.8")]);
    let downloaded = machine.path().join("cache/terraform/1.11.4/terraform");

    let wrong = mirror(release("terraform", "1.11.4", false)).await;
    let refused = bash(machine.path(), &wrong, line).await;
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("checksum of terraform_1.11.4_linux_") && said.contains("error: terraform 1.11.4"),
        "{said}"
    );
    assert!(!downloaded.exists());

    let nowhere = bash(machine.path(), "http://127.0.0.1:9", line).await;
    assert!(text(&nowhere.stderr).contains("the mirror: "), "{nowhere:?}");
    assert_eq!(nowhere.status.code(), Some(1));

    let right = mirror(release("terraform", "1.11.4", true)).await;
    for _ in 0..2 {
        let found = bash(machine.path(), &right, line).await;
        assert!(text(&found.stdout).ends_with("{\"terraform_version\":\"1.11.4\"}\n"), "{found:?}");
    }
    assert!(downloaded.exists(), "the next recipe finds it");
    let without = bash(machine.path(), "http://127.0.0.1:9", line).await;
    assert!(without.status.success(), "nothing is downloaded twice: {without:?}");
}
