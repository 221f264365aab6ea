//! No command is forgotten.

use std::collections::BTreeSet;

use clap::CommandFactory as _;

use super::rows;

/// The words of every command that has none below it.
fn leaves(command: &clap::Command, before: &str, into: &mut BTreeSet<String>) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let words = format!("{before} {}", below.get_name());
        if below.has_subcommands() {
            leaves(below, &words, into);
        } else {
            into.insert(words.trim().to_owned());
        }
    }
}

#[test]
fn no_command_is_without_its_row() {
    let mut all = BTreeSet::new();
    leaves(&plumbline_cli::args::Args::command(), "", &mut all);
    // It needs no server, and has a test of its own.
    assert!(all.remove("completions") && all.len() > 40, "{all:?}");
    // They speak the state's own protocol: `tests/it/tf` runs them against the real server.
    for own in ["tf", "backend-config", "state push"] {
        assert!(all.remove(own), "{own}");
    }
    let lines: Vec<&str> = rows().iter().map(|row| row.0).collect();
    let missing: Vec<&String> = all
        .iter()
        .filter(|words| !lines.iter().any(|line| format!("{line} ").starts_with(&format!("{words} "))))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
}
