//! Seeded schedules: many runs of two tenants at once, with people, workers, sweeps, lost answers and kills in between.
//! The same seed gives the same schedule of operations and faults; the history is checked by [`checkers`].

mod actors;
mod checkers;
mod history;
mod operations;
mod planted;
mod steps;
mod witness;
mod world;

use std::time::{Duration, Instant};

use operations::{Operation, schedule};
use world::{World, limits};

use crate::plane::TestPlane;

/// Set by `make soak`: where to begin, and for how long to go on with the seeds that follow.
const SEED_VARIABLE: &str = "PLUMBLINE_TEST_SEED";
const MINUTES_VARIABLE: &str = "PLUMBLINE_TEST_MINUTES";
/// The suite's own seed.
const SEED: u64 = 20_260_101;
const OPERATIONS: usize = 400;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a whole number")))
}

#[test]
fn the_same_seed_gives_the_same_schedule_and_another_one_another() {
    assert_eq!(schedule(1, OPERATIONS), schedule(1, OPERATIONS));
    assert_ne!(schedule(1, OPERATIONS), schedule(2, OPERATIONS));
    // A longer schedule begins as the shorter one: a failing seed can be cut down.
    assert_eq!(schedule(1, OPERATIONS)[..50], schedule(1, 50));
    let has_kill = |operation: &Operation| matches!(operation, Operation::Kill { .. });
    assert!(schedule(SEED, OPERATIONS).iter().any(has_kill));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_schedule_breaks_an_invariant() {
    let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_test_writer().try_init();
    let first = setting(SEED_VARIABLE).unwrap_or(SEED);
    let minutes = setting(MINUTES_VARIABLE).unwrap_or(0);
    let ends_at = Instant::now() + Duration::from_secs(60 * minutes);
    for seed in first.. {
        // Before anything can fail: `make soak` shows the last of these.
        println!("seed {seed}");
        run(seed).await;
        if Instant::now() >= ends_at {
            break;
        }
    }
}

#[expect(clippy::print_stdout, reason = "what a soak shows of each seed")]
async fn run(seed: u64) {
    let plane = TestPlane::start_with(limits(), 16).await;
    let history = World::new(&plane).await.run(&schedule(seed, OPERATIONS)).await;
    let applied = history.runs.iter().filter(|run| run.status == "applied").count();
    let accepted = history.reports.iter().filter(|report| report.is_accepted).count();
    println!(
        "  {} runs, {applied} applied; {accepted} of {} reports accepted; {} states; {} kills of applies",
        history.runs.len(),
        history.reports.len(),
        history.versions.len(),
        history.killed.len(),
    );
    let violations = checkers::violations(&history);
    assert!(violations.is_empty(), "seed {seed} breaks {violations:#?}");
    assert!(applied > 0 && accepted > 50, "seed {seed} did too little to show anything");
}
