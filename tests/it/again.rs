//! Tests that run other tests of this program again, under another setting.

use std::process::{Command, Stdio};

/// Runs the tests whose names contain one of the filters, with the variable set. They must pass; returns how many did.
pub async fn run_again(filters: &[&str], (variable, value): (&str, &str)) -> usize {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(filters).arg("--test-threads=4").env(variable, value).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || again.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "with {variable}={value}: {said}");
    said.matches(" ... ok").count()
}
