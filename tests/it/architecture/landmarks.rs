//! What a stranger looks for is where they look: documents, guides, targets, a line for every folder.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Names of the directories below one.
fn folders(path: &str) -> BTreeSet<String> {
    let entries =
        std::fs::read_dir(root().join(path)).expect("a folder").map(|entry| entry.expect("an entry"));
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect()
}

#[test]
fn every_feature_is_one_folder_with_a_line_in_the_map_and_says_what_it_is() {
    let map = read("ARCHITECTURE.md");
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `core/src/")?.split_once('`'));
    let named: BTreeSet<String> = rows
        .filter(|(_, what)| what.len() > " | a word |".len())
        .filter_map(|(path, _)| path.strip_suffix('/').map(str::to_owned))
        .filter(|name| name != "<feature>")
        .collect();
    assert_eq!(named, folders("core/src"), "the rows of ARCHITECTURE.md, and the folders");
    for folder in folders("core/src") {
        let text = read(&format!("core/src/{folder}/mod.rs"));
        assert!(text.starts_with("//! "), "core/src/{folder}/mod.rs says what it is");
    }
    // Beside them only what all of them share.
    let entries = std::fs::read_dir(root().join("core/src")).expect("a folder").flatten();
    let files: BTreeSet<String> = entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect();
    let shared = [
        "callers.rs",
        "deps.rs",
        "digest.rs",
        "dispatch.rs",
        "ids.rs",
        "lib.rs",
        "limits.rs",
        "page.rs",
        "sweeps.rs",
        "text.rs",
    ];
    assert_eq!(files, shared.map(str::to_owned).into());
}

#[test]
fn every_part_of_the_tree_and_every_function_is_in_the_map() {
    let map = read("ARCHITECTURE.md");
    let hidden = |name: &String| name.starts_with('.') || name == "target";
    let parts = folders("").into_iter().filter(|name| !hidden(name));
    for part in parts {
        assert!(map.contains(&format!("`{part}/")), "ARCHITECTURE.md has no `{part}/`");
    }
    let readme = read("README.md");
    for function in folders("functions").iter().filter(|name| *name != "runtime") {
        let page = read("docs/configuration.md");
        assert!(page.contains(&format!("`{function}`")), "docs/configuration.md has no `{function}`");
    }
    for document in
        ["ARCHITECTURE.md", "docs/cli.md", "docs/configuration.md", "docs/coverage.md", "docs/guides/"]
    {
        assert!(readme.contains(&format!("`{document}`")), "README.md does not lead to {document}");
    }
}

#[test]
fn the_documents_that_everybody_looks_for_exist_and_are_about_something() {
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "docs/cli.md",
        "docs/configuration.md",
        "docs/faults.md",
        "docs/guides/add-an-endpoint.md",
        "docs/guides/add-a-task-kind.md",
        "docs/guides/add-a-migration.md",
        "docs/guides/add-a-run-step.md",
        "docs/guides/add-a-cli-command.md",
        "docs/guides/use-the-state-backend.md",
        "docs/runbook/README.md",
    ] {
        let text = read(document);
        assert!(
            text.starts_with("# ") && text.split_whitespace().count() > 30,
            "{document} has a title and says something"
        );
    }
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(root().join("docs/adr")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        numbers.push(name[..4].parse::<usize>().unwrap_or_else(|_| panic!("{name} has no number")));
        let text = std::fs::read_to_string(&path).expect("a decision");
        assert!(text.starts_with("# ") && text.lines().count() < 80, "{name} is more than a page");
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "decisions are numbered without a gap");
}

#[test]
fn every_target_of_make_says_what_it_does() {
    let makefile = read("Makefile");
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .filter(is_name)
        .collect();
    for wanted in ["demo", "up", "test", "ci", "bench", "soak", "clean", "help"] {
        assert!(targets.contains(wanted), "make has no {wanted}");
    }
    let help = Command::new("make").arg("help").current_dir(root()).output().expect("make runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let phony =
        makefile.lines().find_map(|line| line.strip_prefix(".PHONY: ")).expect("targets without files");
    for target in targets {
        let line = help.lines().find(|line| line.split_whitespace().nth(1) == Some(target));
        let said = line.unwrap_or_else(|| panic!("make help does not have {target}"));
        assert!(said.split_whitespace().count() > 3, "{said}");
        assert!(phony.split(' ').any(|name| name == target), "a file called {target} would hide the target");
    }
}

/// What may not be linked, by `deny.toml`.
fn banned(rules: &str) -> Vec<&str> {
    rules.split("crate = \"").skip(1).filter_map(|after| after.split('"').next()).collect()
}

/// Also where `cargo deny` is not installed. A lock file has every platform and every feature.
#[test]
fn no_lock_file_has_a_banned_crate() {
    let rules = read("deny.toml");
    let banned = banned(&rules);
    assert_eq!(banned, ["aws-lc-sys", "openssl-sys"]);
    for lock in ["Cargo.lock", "tests/provider/Cargo.lock"] {
        assert!(Path::new(&root()).join(lock).is_file());
        let text = read(lock);
        let has = |name: &str| text.lines().any(|line| line == format!("name = \"{name}\""));
        assert!(has("tokio"), "{lock} is read");
        for name in &banned {
            assert!(!has(name), "{lock} has {name}");
        }
    }
}
