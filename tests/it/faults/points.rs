//! Every named point of a run at which a test kills somebody, and what becomes of the run. The table of
//! `docs/faults.md` says the same for people; a test compares the two.

use super::gate::{Side, Wanted};
use super::sql_barrier::Statement;
use super::stage::SLOW_STATE;

/// Which phase the run is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Plan,
    Apply,
}

/// What stops the run at the point.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// A request of the executor.
    Request(Wanted),
    /// A statement of the worker.
    Statement(Statement),
    /// The second resource of the stack waits while it is made.
    SecondResource,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The supervisor; what it started ends with it.
    Executor,
    /// The worker's own program.
    Worker,
}

/// What becomes of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Becomes {
    /// The attempt provably did nothing: the task is queued again and the attempt does not count.
    GivenBack,
    /// The attempt counts, and the task is tried again.
    TriedAgain,
    /// What was reported stands; the run goes on from there.
    GoesOn,
    /// The run is `failed` with the reason `lost`, and its workspace is blocked.
    LostAndBlocked,
}

impl Becomes {
    /// As the document says it.
    pub fn words(self) -> &'static str {
        match self {
            Self::GivenBack => "queued again, the attempt does not count",
            Self::TriedAgain => "tried again, the attempt counts",
            Self::GoesOn => "goes on",
            Self::LostAndBlocked => "`failed` (`lost`), workspace blocked",
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub name: &'static str,
    pub phase: Phase,
    pub stop: Stop,
    pub victim: Victim,
    pub becomes: Becomes,
}

const fn request(method: &'static str, path_end: &'static str, side: Side) -> Stop {
    Stop::Request(Wanted { method, path_end, step_status: None, side })
}

const fn step(path_end: &'static str, status: &'static str, side: Side) -> Stop {
    Stop::Request(Wanted { method: "PUT", path_end, step_status: Some(status), side })
}

const fn executor(name: &'static str, phase: Phase, stop: Stop, becomes: Becomes) -> Point {
    Point { name, phase, stop, victim: Victim::Executor, becomes }
}

const fn worker(name: &'static str, phase: Phase, statement: Statement, becomes: Becomes) -> Point {
    Point { name, phase, stop: Stop::Statement(statement), victim: Victim::Worker, becomes }
}

/// What terraform reads while it plans.
pub const SLOW_STATE_READ: Wanted =
    Wanted { method: "GET", path_end: SLOW_STATE, step_status: None, side: Side::Before };

/// In the order in which a run comes by.
pub const POINTS: &[Point] = {
    use Becomes::{GivenBack, GoesOn, LostAndBlocked, TriedAgain};
    use Phase::{Apply, Plan};
    use Side::{After, Before};
    use Statement::{PrepareLaunch, RecordLaunched};
    &[
        worker("plan claimed, not launched", Plan, PrepareLaunch, GivenBack),
        worker("plan launched, not recorded", Plan, RecordLaunched, GoesOn),
        executor("plan launched, ticket not traded", Plan, request("POST", "/trade", Before), GivenBack),
        executor("plan's ticket traded, answer lost", Plan, request("POST", "/trade", After), TriedAgain),
        executor("cloned", Plan, step("/steps/1", "succeeded", After), TriedAgain),
        executor("terraform plans", Plan, Stop::Request(SLOW_STATE_READ), TriedAgain),
        executor("plan uploaded, not reported", Plan, request("POST", "/plan/complete", Before), TriedAgain),
        executor("plan reported, answer lost", Plan, request("POST", "/plan/complete", After), GoesOn),
        worker("apply claimed, not launched", Apply, PrepareLaunch, GivenBack),
        worker("apply launched, not recorded", Apply, RecordLaunched, GoesOn),
        executor("apply launched, ticket not traded", Apply, request("POST", "/trade", Before), GivenBack),
        executor("apply's ticket traded, answer lost", Apply, request("POST", "/trade", After), TriedAgain),
        executor("apply not begun", Apply, request("POST", "/apply/begin", Before), TriedAgain),
        executor("apply begun, answer lost", Apply, request("POST", "/apply/begin", After), LostAndBlocked),
        executor("first resource made", Apply, Stop::SecondResource, LostAndBlocked),
        executor("state arrives", Apply, request("PUT", "/state", Before), LostAndBlocked),
        executor("state written, answer lost", Apply, request("PUT", "/state", After), LostAndBlocked),
        executor("state lock given back", Apply, request("DELETE", "/state/lock", After), LostAndBlocked),
        executor("apply not reported", Apply, request("POST", "/apply/complete", Before), LostAndBlocked),
        executor("apply reported, answer lost", Apply, request("POST", "/apply/complete", After), GoesOn),
    ]
};
