//! The history checker of the state service: clients that lock, read, write, unlock, crash and try again at once, over
//! several processes, while the database, the object store and the processes fail. Each writes down what it asked and
//! what it heard, by one clock; [`checkers`] look at that and at what the database says in the end.
//!
//! The same seed gives the same script of operations and faults. Which of them meet is up to the machine.

mod answers;
mod checkers;
mod chronicle;
mod client;
mod defects;
mod executors;
mod histories;
mod history;
mod holds;
mod linear;
mod people;
mod platform;
mod program;
mod registers;
mod script;
mod servers;
mod store;
mod truth;
mod weather;
mod world;

use std::time::{Duration, Instant};

use history::History;
use script::{Part, Script};
use world::{Cast, World};

/// Set by `make soak`: where to begin, and for how long to go on with the seeds that follow.
const SEED_VARIABLE: &str = "PLUMBLINE_TEST_SEED";
const MINUTES_VARIABLE: &str = "PLUMBLINE_TEST_MINUTES";
/// The suite's own seed.
const SEED: u64 = 7;
/// How long clients act with one seed.
const ROUND: Duration = Duration::from_secs(60);
const VIOLATIONS_SHOWN: usize = 8;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a whole number")))
}

#[test]
fn the_same_seed_gives_the_same_script_and_another_one_another() {
    let script = |seed, part| {
        let mut script = Script::new(seed, part);
        let steps: Vec<_> =
            (0..200).map(|_| (script.person(), script.executor(), script.blow(), script.sweep())).collect();
        steps
    };
    for part in [Part::Person(0), Part::Executor(0), Part::Weather, Part::Sweeps] {
        assert_eq!(script(1, part), script(1, part));
        assert_ne!(script(1, part), script(2, part));
    }
    assert_ne!(script(1, Part::Person(0)), script(1, Part::Person(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_history_breaks_a_promise_of_the_state_service() {
    let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_test_writer().try_init();
    let first = setting(SEED_VARIABLE).unwrap_or(SEED);
    let minutes = setting(MINUTES_VARIABLE).unwrap_or(0);
    let ends_at = Instant::now() + Duration::from_secs(60 * minutes);
    for seed in first.. {
        // Before anything can fail: `make soak` shows the last of these.
        println!("seed {seed}");
        round(seed).await;
        if Instant::now() >= ends_at {
            break;
        }
    }
}

async fn round(seed: u64) {
    let cast = Cast { seed, people: 8, workspaces: 3, is_broken_hard: true, defect: None };
    let world = World::new(cast).await;
    world.run(ROUND, usize::MAX).await;
    world.settle().await;
    let history = truth::history(&world).await;
    tell(seed, &history);
    assert!(history.versions.len() > 50, "something happens");
    for hard in ["restarts of Postgres", "kills of the program", "lost store answers", "lost answers"] {
        assert!(history.faults.contains_key(hard), "none of {hard}");
    }
    let is_upload = |event: &history::Event| {
        matches!(event.operation, history::Operation::Commit { .. }) && event.is_accepted()
    };
    assert!(history.events.iter().any(is_upload), "executors upload");
    let violations = checkers::violations(&history);
    if !violations.is_empty() {
        let file = std::env::temp_dir().join(format!("plumbline-states-{seed}.txt"));
        std::fs::write(&file, written_out(&history)).unwrap();
        let shown = &violations[..violations.len().min(VIOLATIONS_SHOWN)];
        panic!(
            "seed {seed}: {} violations, the history is in {}: {shown:#?}",
            violations.len(),
            file.display()
        );
    }
}

/// One line for each call, in the order in which they began; then what the database says.
fn written_out(history: &History) -> String {
    use std::fmt::Write as _;
    let mut events = history.events.clone();
    events.sort_by_key(|event| event.from);
    let mut text = String::new();
    for event in &events {
        writeln!(text, "{event:?}").unwrap();
    }
    for window in &history.windows {
        writeln!(text, "{window:?}").unwrap();
    }
    for version in &history.versions {
        writeln!(text, "{version:?}").unwrap();
    }
    for step in &history.moves {
        writeln!(text, "{step:?}").unwrap();
    }
    for entry in &history.audit {
        writeln!(text, "{entry:?}").unwrap();
    }
    text
}

#[expect(clippy::print_stdout, reason = "what a soak shows of each seed")]
fn tell(seed: u64, history: &History) {
    let faults: Vec<String> = history.faults.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let unknown = history.events.iter().filter(|event| event.known().is_none()).count();
    println!(
        "states: seed {seed}, {} s, {} operations ({unknown} of unknown outcome), {} faults: {}; {} versions, {} in quarantine",
        ROUND.as_secs(),
        history.events.len(),
        history.faults.values().sum::<usize>(),
        faults.join(", "),
        history.versions.len(),
        history.kept.len(),
    );
}
