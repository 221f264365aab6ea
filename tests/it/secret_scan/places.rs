//! Where a secret could be left: a dump of the database, files of its cluster, logs, objects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::scanner::{Hit, Scanner};

/// `pg_dump` of the usual places; `None`, with the reason printed, where there is none.
fn pg_dump() -> Option<PathBuf> {
    let usual = (14..30).rev().map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = usual.chain(std::env::split_paths(&path)).map(|place| place.join("pg_dump"));
    let found = found.into_iter().find(|program| program.is_file());
    if found.is_none() {
        eprintln!("SKIP: no pg_dump was found, so no dump is scanned");
    }
    found
}

/// Everything in the database, as `pg_dump` writes it; also what a table of the dump says about rows that are gone.
pub fn dump(database_url: &str) -> Option<Vec<u8>> {
    let program = pg_dump()?;
    let url = url::Url::parse(database_url).unwrap();
    // The password goes by the environment: arguments are looked at, too.
    let output = Command::new(program)
        .args(["--host", url.host_str().unwrap(), "--port", &url.port().unwrap().to_string()])
        .args(["--username", url.username(), "--no-owner", url.path().trim_start_matches('/')])
        .env("PGPASSWORD", url.password().unwrap_or_default())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

/// Every file below a directory, by its path in it.
pub fn files(root: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        // What is removed meanwhile was not left.
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.push((path.strip_prefix(root).unwrap().display().to_string(), path));
            }
        }
    }
    found.sort();
    found
}

/// Looks at the names and contents of all files below a directory.
pub fn scan_files(scanner: &Scanner, kind: &str, root: &Path) -> BTreeSet<Hit> {
    let mut hits = BTreeSet::new();
    for (name, path) in files(root) {
        let place = format!("{kind} {name}");
        hits.extend(scanner.scan(&place, name.as_bytes()));
        if let Ok(bytes) = std::fs::read(&path) {
            hits.extend(scanner.scan(&place, &bytes));
        }
    }
    hits
}
