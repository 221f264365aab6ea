//! The contract of `docs/coverage.md`: whatever a row names exists, where the row says that it does.

use std::collections::BTreeMap;
use std::path::Path;

use super::{root, sources};

/// Test sources by the path of their module.
struct Modules(Vec<(Vec<String>, String)>);

impl Modules {
    /// Every module below a directory, whose own files are the root module.
    fn below(directory: &Path) -> Self {
        let mut files = Vec::new();
        sources(directory, &mut files);
        let module_of = |file: &Path| {
            let inside = file.strip_prefix(directory).expect("it lies below").with_extension("");
            let mut path: Vec<String> =
                inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if path.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
                path.pop();
            }
            path
        };
        let read = |file: &Path| std::fs::read_to_string(file).expect("a source file");
        Self(files.iter().map(|file| (module_of(file), read(file))).collect())
    }

    /// Whether a path names a test, or a module that has some. Modules inside of a file count.
    fn has(&self, path: &str) -> bool {
        let segments: Vec<&str> = path.split("::").collect();
        let is_inside = |module: &[String], source: &str| {
            segments.len() >= module.len()
                && module.iter().zip(&segments).all(|(own, wanted)| own == wanted)
                && within(source, &segments[module.len()..])
        };
        self.0.iter().any(|(module, source)| is_inside(module, source))
    }
}

/// Whether a file has the test, or the tests, at the rest of a path.
fn within(source: &str, rest: &[&str]) -> bool {
    let is_test = |name: &str| {
        source.split("fn ").zip(source.split("fn ").skip(1)).any(|(before, after)| {
            let attributes = &before[before.rfind('}').unwrap_or(0)..];
            after.strip_prefix(name).is_some_and(|more| more.starts_with('(')) && attributes.contains("test")
        })
    };
    let is_module = |name: &&&str| source.contains(&format!("mod {name} {{"));
    match rest.split_last() {
        None => source.contains("#[test]"),
        Some((last, modules)) if modules.iter().all(|name| is_module(&name)) => {
            is_test(last) || (is_module(&last) && source.contains("#[test]"))
        }
        Some(_) => false,
    }
}

/// The directory of each crate of the workspace.
fn crates() -> BTreeMap<String, std::path::PathBuf> {
    let mut found = BTreeMap::new();
    for folder in ["", "adapters", "functions"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let directory = entry.expect("an entry").path();
            let Ok(manifest) = std::fs::read_to_string(directory.join("Cargo.toml")) else { continue };
            if let Some(name) = manifest.lines().find_map(|line| line.strip_prefix("name = ")) {
                found.insert(name.trim_matches('"').to_owned(), directory);
            }
        }
    }
    found
}

/// What the second column of the tables names.
fn named(document: &str) -> Vec<&str> {
    let rows = document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what |"));
    rows.flat_map(|row| row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default().split("<br>"))
        .collect()
}

#[test]
fn every_row_names_what_exists() {
    let integration = Modules::below(&root().join("tests/it"));
    let crates = crates();
    let steps = std::fs::read_to_string(root().join("scripts/ci.sh")).expect("the steps of CI");
    let mut units: BTreeMap<&str, Modules> = BTreeMap::new();
    let document = std::fs::read_to_string(root().join("docs/coverage.md")).expect("the contract");
    let named = named(&document);
    assert!(named.len() > 300, "the contract has rows: {}", named.len());
    let mut missing = Vec::new();
    for name in named {
        let exists = match name.split_once(' ') {
            None => integration.has(name),
            Some(("ci:", step)) => steps.contains(&format!("check \"{step}\" ")),
            Some((package, path)) => crates.get(package).is_some_and(|directory| {
                units.entry(package).or_insert_with(|| Modules::below(&directory.join("src"))).has(path)
            }),
        };
        if !exists {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "docs/coverage.md names what does not exist: {missing:#?}");
}

#[test]
fn a_name_is_wrong_if_any_part_of_it_is() {
    let modules = Modules(vec![
        (
            vec!["queue".into()],
            "#[test]\nfn one() {}\nfn helper() {}\nmod tests {\n#[test]\nfn two() {}".into(),
        ),
        (vec!["queue".into(), "tests".into()], "#[test]\nfn three() {}".into()),
    ]);
    for right in ["queue::one", "queue::tests::two", "queue::tests::three", "queue::tests", "queue"] {
        assert!(modules.has(right), "{right}");
    }
    for wrong in
        ["one", "state::one", "queue::other::two", "queue::helper", "queue::tests::one_more", "queue::tes"]
    {
        assert!(!modules.has(wrong), "{wrong}");
    }
}
