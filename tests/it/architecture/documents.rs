//! Documents say what is there: commands that `plumb` has, settings that functions read, pages of one shape.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::CommandFactory as _;

use super::{root, sources};

/// Every document: the ones at the root, and all below `docs`.
fn documents() -> Vec<PathBuf> {
    let mut found =
        vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("CHANGELOG.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What a document shows as code: between backticks, and lines that are indented or in a fence.
fn code(document: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            found.push(line);
        } else {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// The first word after `plumb` that is no command there, if there is one.
fn unknown_command(code: &str) -> Option<String> {
    let (before, after) = code.split_once("plumb ")?;
    if before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '/') {
        return None;
    }
    let mut command = plumbline_cli::args::Args::command();
    command.build();
    for word in after.split_whitespace() {
        let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
        if !is_name || !command.has_subcommands() {
            break;
        }
        match command.find_subcommand(word) {
            Some(found) => command = found.clone(),
            None => return Some(format!("plumb … {word}")),
        }
    }
    None
}

#[test]
fn every_command_that_a_document_shows_exists() {
    assert_eq!(unknown_command("plumb state quarantine list WORKSPACE"), None);
    assert_eq!(unknown_command("plumb state burn"), Some("plumb … burn".to_owned()));
    let mut shown = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        for code in code(&text) {
            shown += usize::from(code.contains("plumb "));
            assert_eq!(unknown_command(code), None, "{}: {code}", document.display());
        }
    }
    assert!(shown > 20, "documents show commands: {shown}");
}

#[test]
fn every_target_of_make_that_a_document_shows_exists() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("a Makefile");
    let targets: BTreeSet<&str> =
        makefile.lines().filter_map(|line| line.split_once(": ##")).map(|(target, _)| target).collect();
    assert!(targets.contains("test"));
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        for code in code(&text) {
            let Some(target) = code.trim_start().strip_prefix("make ") else { continue };
            let target = target.split_whitespace().next().unwrap_or_default();
            assert!(targets.contains(target), "{}: make {target}", document.display());
        }
    }
}

/// Names of settings in sources, unit tests aside.
fn settings(folders: &[&str]) -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in folders {
        sources(&root().join(folder), &mut files);
    }
    let mut found = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        let names = shipped.split('"').filter(|word| {
            word.starts_with("PLUMBLINE_") && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        });
        found.extend(names.map(str::to_owned));
    }
    found
}

#[test]
fn every_setting_is_documented() {
    // What one part of a program tells another, or a launcher its executor; nobody sets these.
    let inner = [
        "PLUMBLINE_ASKPASS_FILE",
        "PLUMBLINE_GIT_LOGIN_FILE",
        "PLUMBLINE_TASK_ID",
        "PLUMBLINE_TICKET",
        "PLUMBLINE_WORK_DIR",
    ];
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).expect("the page");
    let read = settings(&["functions", "adapters", "executor-task/src"]);
    assert!(read.len() > 20, "settings are found: {read:?}");
    for name in read.iter().filter(|name| !inner.contains(&name.as_str())) {
        assert!(page.contains(name.as_str()), "docs/configuration.md does not have {name}");
    }
}

#[test]
fn every_limit_is_documented_with_its_name() {
    let limits = std::fs::read_to_string(root().join("core/src/limits.rs")).expect("the limits");
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).expect("the page");
    let names: Vec<&str> = limits
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, _)| name)
        .collect();
    assert!(names.len() > 25, "limits are found: {names:?}");
    for name in names {
        let row = format!("| `{}` |", name.to_uppercase());
        assert!(page.contains(&row), "docs/configuration.md has no row {row}");
    }
}

#[test]
fn every_problem_page_has_the_same_shape() {
    let mut pages = 0;
    for entry in std::fs::read_dir(root().join("docs/problems")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a page");
        let slug = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let head = format!("`urn:plumbline:problem:{slug}` · HTTP ");
        for part in [head.as_str(), "## What happened", "## What to do"] {
            assert!(text.contains(part), "{} does not have {part:?}", path.display());
        }
        pages += 1;
    }
    assert!(pages > 40, "there are pages: {pages}");
}
