//! The matrix of real clients against our own backend, and against a naive one with planted defects; and what no client
//! sends.

mod bodies;
mod conformance;
mod naive;
mod ours;
mod paths;
mod planted;
mod socket;

use std::sync::Arc;

use plumbline_tests::clients::{Case, Program, Report, Target, cases, find, run_all};

use ours::Ours;

/// How many cases run at a time: they wait more than they compute.
const AT_ONCE: usize = 6;

/// `None`, with the reason printed, where there is no such client.
async fn program(name: &'static str) -> Option<Program> {
    let found = find(name).await;
    if found.is_none() {
        eprintln!("SKIP: {name} was not found on the PATH");
    }
    found
}

async fn run_on_ours(program: &Program, cases: Vec<Case>) -> Report {
    let target: Arc<dyn Target> = Arc::new(Ours::start().await);
    let report = run_all(program, &target, cases, AT_ONCE).await;
    eprintln!("{report}matrix: {} cases with {} {}", report.held(), program.name, program.version);
    assert!(report.failed().is_empty(), "{report}");
    report
}

/// Runs a part of the matrix with terraform: every case of it that is not tofu's alone.
async fn part(name: &str) {
    let Some(terraform) = program("terraform").await else { return };
    let (_, mut cases) = cases::groups().into_iter().find(|(group, _)| *group == name).unwrap();
    // For whoever looks into one case.
    if let Ok(wanted) = std::env::var("PLUMBLINE_MATRIX_CASE") {
        cases.retain(|case| case.name.contains(&wanted));
    }
    let skipped: Vec<_> =
        cases.iter().filter(|case| case.only == Some("tofu")).map(|case| case.name).collect();
    let report = run_on_ours(&terraform, cases).await;
    assert_eq!(report.skipped(), skipped, "our own backend can be prepared for every case");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everyday_work_sends_the_expected_requests_and_leaves_the_expected_versions() {
    part("everyday").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushed_states_are_stored_refused_or_kept_for_a_person() {
    part("pushes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_are_shown_waited_for_given_back_and_taken_away() {
    part("locks").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_costs_a_repetition_and_nothing_else() {
    part("lost").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_busy_or_away_loses_nothing() {
    part("unavailable").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_interrupted_and_long_applies_leave_what_they_made() {
    part("crashes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_of_every_size_are_read_and_written_or_refused_with_the_way_out() {
    part("sizes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_every_script_come_back_as_they_were() {
    part("names").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_spelling_method_and_credential_leads_to_the_same_state() {
    part("ways_in").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_is_told_so_by_the_client() {
    part("refusals").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_matrix_holds_with_tofu() {
    let Some(tofu) = program("tofu").await else { return };
    run_on_ours(&tofu, cases::all()).await;
}

#[tokio::test]
async fn the_matrix_has_thirty_cases_and_more_and_says_how_many() {
    let all = cases::all();
    let names: std::collections::BTreeSet<_> = all.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), all.len(), "a name is one case's");
    let mut counts = Vec::new();
    for name in ["terraform", "tofu"] {
        let cases = all.iter().filter(|case| case.only.is_none_or(|only| only == name)).count();
        assert!(cases >= 30, "{cases} with {name}");
        counts.push(match find(name).await {
            Some(program) => format!("{cases} cases with {name} {}", program.version),
            None => format!("0 with {name} (not found)"),
        });
    }
    println!("matrix: {}", counts.join(", "));
}
