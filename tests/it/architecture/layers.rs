//! Which layer may know what. Visibility already keeps one feature's `store` from another's; what the compiler cannot
//! see is read from the sources.

use std::path::{Path, PathBuf};

use super::{root, sources};

/// The code of a file, without its unit tests and comments.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file");
    let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
    shipped.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    sources(&root().join(folder), &mut found);
    found.sort();
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

/// `file: word` for each forbidden word that a file has.
fn offences(files: &[PathBuf], forbidden: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in files {
        let code = code(path);
        let words = forbidden.iter().filter(|word| code.contains(**word));
        found.extend(words.map(|word| format!("{}: {word}", path.display())));
    }
    found
}

fn is_pure(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    ["model.rs", "lifecycle.rs", "rules.rs"].iter().any(|pure| name == *pure)
}

#[test]
fn pure_files_know_no_clock_no_database_and_no_io() {
    let pure: Vec<PathBuf> = files("core/src").into_iter().filter(|path| is_pure(path)).collect();
    assert!(pure.len() > 15, "pure files are found: {}", pure.len());
    let forbidden = [
        "async fn",
        ".await",
        "Utc::now",
        "Instant::now",
        "SystemTime",
        "rand::",
        "std::fs",
        "std::env",
        "tokio::",
        "super::store",
        "super::service",
        "Tx<",
        "Conn<",
        "impl Query",
    ];
    assert_eq!(offences(&pure, &forbidden), Vec::<String>::new());
}

#[test]
fn edges_know_no_sql() {
    let mut edges = files("cli/src");
    for function in ["api", "tfstate", "callback", "worker", "outbound", "reconciler"] {
        edges.extend(files(&format!("functions/{function}/src")));
    }
    edges.extend(files("executor-task/src"));
    edges.extend(files("state-proxy/src"));
    let forbidden = ["tokio_postgres", "SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "query_opt("];
    assert_eq!(offences(&edges, &forbidden), Vec::<String>::new());
}

#[test]
fn cloud_sdks_stay_in_their_adapters() {
    let mut others = Vec::new();
    // Everything but the adapters; the wiring names them, and still sees no SDK.
    for folder in
        ["core/src", "functions", "executor-task/src", "state-proxy/src", "cli/src", "local-emulator/src"]
    {
        others.extend(files(folder));
    }
    let wired = others.iter().filter(|path| path.starts_with(root().join("functions/runtime"))).count();
    assert!(wired > 5, "the functions' wiring is looked at");
    assert_eq!(offences(&others, &["aws_sdk", "aws_config", "aws_smithy"]), Vec::<String>::new());
}

#[test]
fn sql_is_never_put_together_from_text() {
    let with_sql: Vec<PathBuf> = files("core/src")
        .into_iter()
        .filter(|path| {
            path.components().any(|part| part.as_os_str() == "store") || path.ends_with("store.rs")
        })
        .collect();
    assert!(with_sql.len() > 8, "stores are found: {}", with_sql.len());
    let mut found = Vec::new();
    for path in with_sql {
        let code = code(&path);
        let built = code.match_indices("format!(").filter(|(at, _)| {
            let text: String = code[*at..].chars().take(120).collect();
            ["SELECT", "INSERT", "UPDATE", "DELETE", "WHERE"].iter().any(|word| text.contains(word))
        });
        found.extend(built.map(|(at, _)| format!("{}: byte {at}", path.display())));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn nothing_hangs_on_a_connection() {
    let mut all = files("core/src");
    all.extend(files("functions"));
    // Locks, listeners, settings and temporary tables of a session break behind a transaction pooler.
    let forbidden = ["pg_advisory_lock(", "pg_try_advisory_lock(", "LISTEN ", "CREATE TEMP", "SET SESSION"];
    assert_eq!(offences(&all, &forbidden), Vec::<String>::new());
}

#[test]
fn servers_send_their_answers_at_once() {
    let mut all = files("local-emulator/src");
    all.extend(files("executor-task/src"));
    all.extend(files("state-proxy/src"));
    let serves = |text: &str| text.contains("axum::serve(") || text.contains(".serve_connection(");
    let sends_at_once = |text: &str| text.contains("send_at_once") || text.contains("set_nodelay(true)");
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a source file");
    let serving: Vec<PathBuf> = all.into_iter().filter(|path| serves(&read(path))).collect();
    assert!(serving.len() > 3, "{serving:?}");
    let waiting: Vec<PathBuf> = serving.into_iter().filter(|path| !sends_at_once(&read(path))).collect();
    assert_eq!(waiting, Vec::<PathBuf>::new());
}

#[test]
fn files_are_short_enough_to_be_read() {
    const LINES_MAX: usize = 400;
    let mut all = Vec::new();
    for folder in ["core", "adapters", "functions", "executor-task", "local-emulator", "cli", "tests"] {
        sources(&root().join(folder), &mut all);
    }
    let long: Vec<String> = all
        .iter()
        .filter(|path| !path.components().any(|part| part.as_os_str() == "target"))
        .map(|path| (path, std::fs::read_to_string(path).expect("a source file").lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn no_file_is_a_place_for_everything() {
    let mut all = Vec::new();
    for folder in
        ["core", "adapters", "functions", "executor-task", "local-emulator", "cli", "tests/src", "tests/it"]
    {
        sources(&root().join(folder), &mut all);
    }
    let vague = ["utils", "util", "common", "helpers", "manager", "types", "misc"];
    let named: Vec<_> = all
        .iter()
        .filter(|path| path.file_stem().is_some_and(|stem| vague.iter().any(|word| stem == *word)))
        .collect();
    assert_eq!(named, Vec::<&PathBuf>::new());
}
