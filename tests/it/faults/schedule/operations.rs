//! What a schedule is made of. The same seed gives the same schedule.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// What becomes of an executor's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It arrives.
    Seen,
    /// It is lost: the executor will call again.
    Lost,
    /// The call is sent twice at once.
    Twice,
}

/// One thing that happens. `pick` chooses among what there is at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Trigger {
        pick: u32,
        mutates: bool,
    },
    Approve {
        pick: u32,
    },
    Reject {
        pick: u32,
    },
    Cancel {
        pick: u32,
    },
    Unblock {
        pick: u32,
    },
    /// As many wake-ups at once.
    Wake {
        times: u8,
    },
    /// As many reconcilers at once.
    Sweep {
        times: u8,
    },
    Advance {
        seconds: u64,
    },
    /// Every living executor reports that it lives.
    Beat,
    /// An executor does its next step.
    Step {
        pick: u32,
        answer: Answer,
    },
    /// An executor wants to apply another plan than the approved one.
    SwapPlan {
        pick: u32,
    },
    /// An executor reports that it failed.
    Fail {
        pick: u32,
        is_transient: bool,
    },
    /// SIGKILL of an executor.
    Kill {
        pick: u32,
    },
}

/// The operations of a seed.
pub fn schedule(seed: u64, count: usize) -> Vec<Operation> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count).map(|_| one(&mut rng)).collect()
}

fn one(rng: &mut StdRng) -> Operation {
    let pick = rng.random::<u32>();
    match rng.random_range(0..100) {
        0..7 => Operation::Trigger { pick, mutates: rng.random_bool(0.8) },
        7..17 => Operation::Approve { pick },
        17..18 => Operation::Reject { pick },
        18..20 => Operation::Cancel { pick },
        20..23 => Operation::Unblock { pick },
        23..31 => Operation::Wake { times: rng.random_range(1..=3) },
        31..37 => Operation::Sweep { times: rng.random_range(1..=3) },
        37..42 => Operation::Advance { seconds: rng.random_range(1..=80) },
        42..47 => Operation::Beat,
        47..96 => Operation::Step { pick, answer: answer(rng) },
        96..97 => Operation::SwapPlan { pick },
        97..98 => Operation::Fail { pick, is_transient: rng.random() },
        _ => Operation::Kill { pick },
    }
}

fn answer(rng: &mut StdRng) -> Answer {
    match rng.random_range(0..10) {
        0 => Answer::Lost,
        1 => Answer::Twice,
        _ => Answer::Seen,
    }
}
