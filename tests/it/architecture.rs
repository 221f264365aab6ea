//! The rules of the tree: layers, names, documents.

mod coverage;
mod documents;
mod landmarks;
mod layers;
mod scripts;
mod secret_fields;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every Rust file below a directory.
fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// Every Rust file below a folder of the tree, named from the root, without its unit tests and comments.
pub fn shipped_sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    sources(&root().join(folder), &mut files);
    files.sort();
    assert!(!files.is_empty(), "{folder} has sources");
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code = shipped.lines().filter(|line| !line.trim_start().starts_with("//"));
            let name = path.strip_prefix(root()).expect("below the root").to_owned();
            (name, code.collect::<Vec<_>>().join("\n"))
        })
        .collect()
}

/// The slugs of problems in a source file: a word with dashes, followed by a title.
fn slugs(source: &str) -> Vec<String> {
    let unescaped = source.replace("\\\"", "'");
    let parts: Vec<&str> = unescaped.split('"').collect();
    let is_slug =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let is_title = |text: &str| text.starts_with(|first: char| first.is_ascii_uppercase());
    parts
        .windows(3)
        .filter(|three| is_slug(three[0]) && three[1].trim() == "," && is_title(three[2]))
        .map(|three| three[0].to_owned())
        .collect()
}

#[test]
fn every_problem_has_a_page_that_says_what_to_do() {
    let mut files = Vec::new();
    for function in std::fs::read_dir(root().join("functions")).expect("functions") {
        sources(&function.expect("a function").path().join("src"), &mut files);
    }
    let used: BTreeSet<String> =
        files.iter().flat_map(|file| slugs(&std::fs::read_to_string(file).expect("a source file"))).collect();
    assert!(used.contains("not-found") && used.len() > 20, "slugs are found: {used:?}");
    for slug in used {
        let path = root().join("docs/problems").join(format!("{slug}.md"));
        let page =
            std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("docs/problems/{slug}.md is missing"));
        assert!(page.contains(&format!("urn:plumbline:problem:{slug}")), "{slug}");
        assert!(page.contains("## What happened") && page.contains("## What to do"), "{slug}");
    }
}

/// Integration tests that a document names: words with two colons, the first a folder of `tests/it`.
fn named_tests(document: &str) -> BTreeSet<String> {
    let folders = [
        "api",
        "cli",
        "emulator",
        "executor",
        "faults",
        "provider",
        "queue",
        "reconcile",
        "store",
        "architecture",
    ];
    document
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .filter(|word| word.split("::").next().is_some_and(|first| folders.contains(&first)))
        .filter(|word| word.split("::").count() >= 2 && !word.ends_with(':'))
        .map(str::to_owned)
        .collect()
}

/// Places that a document names as `path/file.rs::symbol`.
fn named_places(document: &str) -> BTreeSet<(String, String)> {
    document
        .split('`')
        .filter_map(|word| word.split_once(".rs::"))
        .filter(|(path, _)| path.contains('/') && !path.contains(' '))
        .map(|(path, symbol)| (format!("{path}.rs"), symbol.to_owned()))
        .collect()
}

fn defines(source: &str, symbol: &str) -> bool {
    ["fn", "struct", "enum", "trait", "const", "type"].iter().any(|kind| {
        source.match_indices(&format!("{kind} {symbol}")).any(|(at, found)| {
            !source[at + found.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
        })
    })
}

#[test]
fn every_place_that_a_document_names_exists() {
    assert!(defines("pub async fn claim(", "claim") && !defines("pub fn claims(", "claim"));
    let mut documents = vec![root().join("ARCHITECTURE.md"), root().join("README.md")];
    for folder in ["docs", "docs/guides", "docs/adr"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder");
        documents.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    let mut places = 0;
    for document in documents.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let text = std::fs::read_to_string(document).expect("a document");
        for (path, symbol) in named_places(&text) {
            places += 1;
            let source = std::fs::read_to_string(root().join(&path))
                .unwrap_or_else(|_| panic!("{} names {path}, which does not exist", document.display()));
            assert!(defines(&source, &symbol), "{} names {path}::{symbol}", document.display());
        }
    }
    assert!(places > 30, "the walk-throughs name places: {places}");
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut files = Vec::new();
    sources(&root().join("tests/it"), &mut files);
    let mut known = String::new();
    for file in files {
        known.push_str(&std::fs::read_to_string(file).expect("a source file"));
    }
    for document in ["ARCHITECTURE.md", "docs/security.md"] {
        let text = std::fs::read_to_string(root().join(document)).expect("a document");
        let named = named_tests(&text);
        assert!(named.len() > 5, "{document} names tests");
        for test in named {
            let name = test.rsplit("::").next().unwrap_or_default();
            assert!(known.contains(&format!("fn {name}(")), "{document} names {test}, which does not exist");
        }
    }
}
