//! What clients, the weather and the sweeps do. The same seed gives the same.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// What becomes of a call on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Seen,
    /// It is done, and nobody hears of it.
    AnswerLost,
    /// It never arrives.
    RequestLost,
    /// Whoever serves it ends after it was woken up so many times.
    Cut {
        wakes: u8,
    },
    /// It is sent twice at once, as by a client that is impatient.
    Twice,
}

/// What a person's client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Lock,
    LockAgain,
    LockOfAnother,
    View,
    Read,
    WriteNext,
    WriteAgain,
    WriteOtherBytes,
    WriteLower,
    WriteOtherLineage,
    WriteWithoutLock,
    WriteUnderOldLock,
    Unlock,
    UnlockAgain,
    UnlockOfAnother,
    Force,
    Rollback,
    Promote,
    Discard,
    AcceptLineage,
    /// The client ends and leaves everything as it is.
    Crash,
    /// Executors only: begin, send the bytes, commit.
    Upload,
    /// Begin, and perhaps send, and leave it.
    UploadHalf,
    CommitLate,
    CommitAgain,
    Heartbeat,
    /// The run is reported as done.
    Done,
}

/// One thing that a client does. `pick` chooses among what there is at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub act: Act,
    pub pick: u32,
    pub server: u8,
    pub padding: u16,
    pub delivery: Delivery,
}

const PEOPLE: [(u32, Act); 21] = [
    (16, Act::Lock),
    (3, Act::LockAgain),
    (2, Act::LockOfAnother),
    (3, Act::View),
    (14, Act::Read),
    (24, Act::WriteNext),
    (5, Act::WriteAgain),
    (3, Act::WriteOtherBytes),
    (3, Act::WriteLower),
    (2, Act::WriteOtherLineage),
    (6, Act::WriteWithoutLock),
    (3, Act::WriteUnderOldLock),
    (8, Act::Unlock),
    (3, Act::UnlockAgain),
    (2, Act::UnlockOfAnother),
    (3, Act::Force),
    (2, Act::Rollback),
    (2, Act::Promote),
    (1, Act::Discard),
    (1, Act::AcceptLineage),
    (2, Act::Crash),
];

const EXECUTORS: [(u32, Act); 15] = [
    (14, Act::Lock),
    (3, Act::LockAgain),
    (10, Act::Read),
    (16, Act::WriteNext),
    (4, Act::WriteAgain),
    (2, Act::WriteLower),
    (16, Act::Upload),
    (6, Act::UploadHalf),
    (4, Act::CommitLate),
    (4, Act::CommitAgain),
    (9, Act::Unlock),
    (2, Act::Force),
    (5, Act::Heartbeat),
    (2, Act::Crash),
    (2, Act::Done),
];

/// What happens to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    RestartPostgres,
    CutConnections,
    KillProgram,
    Advance {
        seconds: u64,
    },
    /// The next calls of the object store, by one of the processes.
    Store {
        server: u8,
        trouble: Trouble,
        calls: u8,
    },
}

/// What is wrong with the object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Error,
    /// An error after a while.
    Timeout,
    Slow,
    /// Done, and then an error.
    AnswerLost,
}

/// The script of one client, of the weather or of the sweeps.
pub struct Script(StdRng);

/// Whose script.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Person(usize),
    Executor(usize),
    Weather,
    Sweeps,
}

impl Script {
    pub fn new(seed: u64, part: Part) -> Self {
        let number = match part {
            Part::Person(number) => 100 + number as u64,
            Part::Executor(number) => 200 + number as u64,
            Part::Weather => 1,
            Part::Sweeps => 2,
        };
        Self(StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number)))
    }

    pub fn person(&mut self) -> Step {
        self.step(&PEOPLE)
    }

    pub fn executor(&mut self) -> Step {
        self.step(&EXECUTORS)
    }

    fn step(&mut self, acts: &[(u32, Act)]) -> Step {
        let all: u32 = acts.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.0.random_range(0..all);
        let act = acts.iter().find(|(weight, _)| {
            let is_it = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            is_it
        });
        Step {
            act: act.expect("the weights say how many there are").1,
            pick: self.0.random(),
            server: self.0.random_range(0..5),
            padding: if self.0.random_bool(0.3) {
                self.0.random_range(2_500..4_000)
            } else {
                self.0.random_range(0..400)
            },
            delivery: self.delivery(),
        }
    }

    fn delivery(&mut self) -> Delivery {
        match self.0.random_range(0..100) {
            0..3 => Delivery::AnswerLost,
            3..5 => Delivery::RequestLost,
            5..10 => Delivery::Cut { wakes: self.0.random_range(1..=16) },
            10..13 => Delivery::Twice,
            _ => Delivery::Seen,
        }
    }

    /// What happens next, after so many operations.
    pub fn blow(&mut self) -> (usize, Blow) {
        let after = self.0.random_range(10..70);
        let server = self.0.random_range(0..2);
        let blow = match self.0.random_range(0..100) {
            0..2 => Blow::RestartPostgres,
            2..14 => Blow::CutConnections,
            14..24 => Blow::KillProgram,
            24..40 => Blow::Advance { seconds: self.0.random_range(10..=80) },
            _ => Blow::Store {
                server,
                trouble: match self.0.random_range(0..4) {
                    0 => Trouble::Error,
                    1 => Trouble::Timeout,
                    2 => Trouble::Slow,
                    _ => Trouble::AnswerLost,
                },
                calls: self.0.random_range(1..=4),
            },
        };
        (after, blow)
    }

    /// How many sweep at once, by which process first, after so many operations.
    pub fn sweep(&mut self) -> (usize, u8, u8) {
        (self.0.random_range(60..200), self.0.random_range(1..=2), self.0.random_range(0..2))
    }
}
