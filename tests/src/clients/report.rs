//! Running many cases, and saying what came of each.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;

use super::case::Case;
use super::program::Program;
use super::target::Target;

/// What came of a case that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was as expected.
    Held,
    /// It could not be run here, and why.
    Skipped(&'static str),
}

/// What came of each.
#[derive(Debug)]
pub struct Report {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    case: &'static str,
    program: &'static str,
    took: Duration,
    outcome: Result<Outcome, String>,
}

/// Runs the cases, `at_once` at a time.
pub async fn run_all(
    program: &Program,
    target: &Arc<dyn Target>,
    cases: Vec<Case>,
    at_once: usize,
) -> Report {
    let rows = futures::stream::iter(cases).map(|case| async move {
        let began = Instant::now();
        let outcome = if case.only_exact && !target.is_exact() {
            Ok(Outcome::Skipped("it is about Plumbline alone"))
        } else if case.only.is_some_and(|only| only != program.name) {
            Ok(Outcome::Skipped("another client does it in another way"))
        } else {
            Box::pin(super::run(program, target, &case)).await.map_err(|error| format!("{error:#}"))
        };
        Row { case: case.name, program: program.name, took: began.elapsed(), outcome }
    });
    Report { rows: rows.buffered(at_once).collect().await }
}

impl Report {
    /// How many cases were run to their end.
    pub fn held(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome == Ok(Outcome::Held)).count()
    }

    /// The cases that found something.
    pub fn failed(&self) -> Vec<&'static str> {
        self.rows.iter().filter(|row| row.outcome.is_err()).map(|row| row.case).collect()
    }

    /// The cases that could not be run.
    pub fn skipped(&self) -> Vec<&'static str> {
        let is_skipped = |row: &&Row| matches!(row.outcome, Ok(Outcome::Skipped(_)));
        self.rows.iter().filter(is_skipped).map(|row| row.case).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { case, program, took, outcome } in &self.rows {
            let (word, reason) = match outcome {
                Ok(Outcome::Held) => ("ok", ""),
                Ok(Outcome::Skipped(reason)) => ("skipped", *reason),
                Err(reason) => ("FAILED", reason.as_str()),
            };
            writeln!(f, "{:>6.1} s  {word:<8} {program:<10} {case}", took.as_secs_f64())?;
            for line in reason.lines() {
                writeln!(f, "                    {line}")?;
            }
        }
        Ok(())
    }
}
