//! The integration tests live in `it/`, what `make bench` measures in `src/bench/`; here is what both need, and the matrix
//! of real clients, which also runs against servers that are not ours.

pub mod clients;
pub mod wire;

use std::path::PathBuf;

/// A program of this workspace, built with the same profile as the tests.
///
/// # Panics
///
/// If it is not built: cargo builds the programs of other packages only when asked to.
pub fn bin(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests lie in target/<profile>/deps");
    let program = profile.join(name);
    assert!(
        program.is_file(),
        "{} does not exist: build it with `cargo build --workspace --bins`, or run `make test`",
        program.display()
    );
    program
}
