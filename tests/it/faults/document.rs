//! The document's table is the table of the tests.

use std::path::Path;

use super::points::{POINTS, Phase, Victim};

#[test]
fn the_document_has_the_table_that_the_tests_check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/faults.md");
    let text = std::fs::read_to_string(path).unwrap();
    let table = text.split_once("|---|---|---|---|\n").unwrap().1.split_once("\n\n").unwrap().0;
    let rows: Vec<String> = POINTS
        .iter()
        .map(|point| {
            let phase = match point.phase {
                Phase::Plan => "plan",
                Phase::Apply => "apply",
            };
            let victim = match point.victim {
                Victim::Executor => "executor",
                Victim::Worker => "worker",
            };
            format!("| {} | {phase} | {victim} | {} |", point.name, point.becomes.words())
        })
        .collect();
    assert_eq!(table.lines().collect::<Vec<_>>(), rows);
}
