//! Times in which a lock was held for certain, and what must and must not happen in them.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::history::{Event, History, Operation, Tick, Who};

/// From the answer to a LOCK until the first call that can have ended it.
#[derive(Clone, Debug)]
pub struct Hold {
    pub id: String,
    pub by: Who,
    pub from: Tick,
    pub to: Tick,
}

impl Hold {
    fn covers(&self, from: Tick, to: Tick) -> bool {
        self.from < from && to < self.to
    }
}

/// Every hold of a workspace.
pub fn holds(history: &History, workspace: usize) -> Vec<Hold> {
    let forced: BTreeSet<&str> = history
        .audit
        .iter()
        .filter(|entry| entry.workspace == workspace && entry.action == "state.force_unlock")
        .filter_map(|entry| entry.lock.as_deref())
        .collect();
    let mut found = Vec::new();
    for event in history.of(workspace).filter(|event| event.is_ok()) {
        let Operation::Lock { id } = &event.operation else { continue };
        let Some(from) = event.to else { continue };
        // An executor keeps to its own lock, but a person may have "taken" what another person holds.
        let ends = |other: &&Event| {
            other.may_have_happened()
                && other.end() > event.from
                && match &other.operation {
                    Operation::Unlock { id: other } => other == id,
                    Operation::ForceUnlock => forced.contains(id.as_str()),
                    Operation::Stop { executor } => event.who == Who::Executor(*executor),
                    _ => false,
                }
        };
        let to = history.of(workspace).filter(ends).map(|event| event.from).min().unwrap_or(Tick::MAX);
        if from < to {
            found.push(Hold { id: id.clone(), by: event.who, from, to });
        }
    }
    found
}

fn each<'h>(history: &'h History, check: impl Fn(usize, &[Hold]) -> Vec<String> + 'h) -> Vec<String> {
    (0..history.workspaces).flat_map(|workspace| check(workspace, &holds(history, workspace))).collect()
}

/// A version whose every possible writer named a lock that it cannot have held, or none while somebody held one.
pub fn no_write_outside_of_its_lock_is_the_head(history: &History) -> Vec<String> {
    each(history, |workspace, holds| {
        let claims = claims(history, workspace);
        let is_right = |event: &Event, lock: Option<&str>| {
            let mut others = holds.iter().filter(|hold| lock != Some(hold.id.as_str()));
            let other_holds = others.any(|hold| hold.covers(event.from, event.end()));
            !other_holds && lock.is_none_or(|id| may_be_held(history, workspace, id, event))
        };
        let mut found = Vec::new();
        for version in history.versions.iter().filter(|version| version.workspace == workspace) {
            let of_version: Vec<_> =
                claims.iter().filter(|(.., sha256)| *sha256 == version.state.sha256).collect();
            let is_made_by_decision = version.rolled_back_from.is_some()
                || history.entries("state.promote", |entry| entry.version == Some(version.id)) > 0;
            if let Some((first, ..)) = of_version.first()
                && !is_made_by_decision
                && !of_version.iter().any(|(event, lock, _)| is_right(event, *lock))
            {
                found.push(format!("{:?} by {first:?}", version.state));
            }
        }
        found
    })
}

/// Each call that may have made a body the head, with the lock by which it did. A sweep commits by the lock of the
/// upload, like whoever began it.
fn claims(history: &History, workspace: usize) -> Vec<(&Event, Option<&str>, &str)> {
    let is_sweep = |event: &&Event| event.operation == Operation::Sweep;
    let mut claims = Vec::new();
    for event in history.of(workspace) {
        if let Operation::Begin { lock, state } = &event.operation {
            let sweeps = history.of(workspace).filter(is_sweep).filter(|sweep| sweep.end() > event.from);
            claims.extend(sweeps.map(|sweep| (sweep, Some(lock.as_str()), state.sha256.as_str())));
        }
        if event.known().is_none() || event.is_accepted() {
            let wanted = event.wants_head();
            claims.extend(wanted.map(|(lock, state, _)| (event, lock, state.sha256.as_str())));
        }
    }
    claims
}

/// Whether a lock of this id may be held at some moment of the call.
fn may_be_held(history: &History, workspace: usize, id: &str, call: &Event) -> bool {
    let is_over = |who: Who| {
        history.of(workspace).any(|event| {
            matches!(event.operation, Operation::Stop { executor } if who == Who::Executor(executor))
                && event.end() < call.from
        })
    };
    let taken: Vec<&Event> = history
        .of(workspace)
        .filter(|event| matches!(&event.operation, Operation::Lock { id: own } if own == id))
        .filter(|event| event.may_have_happened() && event.from < call.end() && !is_over(event.who))
        .collect();
    // Given back for certain before the call, and not asked for since.
    let given_back = history
        .of(workspace)
        .filter(|event| matches!(&event.operation, Operation::Unlock { id: own } if own == id))
        .filter(|event| event.is_ok() && event.end() < call.from)
        .map(|event| event.from)
        .max()
        .unwrap_or(0);
    taken.iter().any(|event| event.end() > given_back)
}

/// What the holder writes next, while it holds the lock for certain, is accepted.
pub fn the_live_holder_is_never_refused(history: &History) -> Vec<String> {
    each(history, |workspace, holds| {
        let of_lock = |event: &Event, id: &str| event.wants_head().is_some_and(|(lock, ..)| lock == Some(id));
        let mut found = Vec::new();
        for event in history.of(workspace) {
            let Some((Some(lock), _, true)) = event.wants_head() else { continue };
            let Some((to, _)) = event.known().filter(|_| !event.is_accepted()) else { continue };
            let hold = holds
                .iter()
                .find(|hold| hold.id == lock && hold.by.lets(event.who) && hold.covers(event.from, to));
            let Some(hold) = hold else { continue };
            // Somebody else wrote by the same lock: then the holder does not know what comes next.
            let is_shared = history.of(workspace).any(|other| {
                other.who != event.who && of_lock(other, lock) && other.end() > hold.from && other.from < to
            });
            let is_unsent = match &event.operation {
                Operation::Commit { upload, .. } => !is_sent(history, *upload, hold, event.from),
                _ => false,
            };
            if !is_shared && !is_unsent {
                found.push(format!("{event:?} within {hold:?}"));
            }
        }
        found
    })
}

/// Whether an upload was begun under the hold, and its bytes have arrived before.
fn is_sent(history: &History, upload: Uuid, hold: &Hold, before: Tick) -> bool {
    let began = |event: &&Event| {
        matches!(event.operation, Operation::Begin { .. })
            && event
                .known()
                .is_some_and(|(to, answer)| answer.id == Some(upload) && hold.covers(event.from, to))
    };
    let put = |event: &&Event| {
        event.operation == Operation::Put { upload } && event.is_ok() && event.end() < before
    };
    history.events.iter().any(|event| began(&event)) && history.events.iter().any(|event| put(&event))
}

/// While an upload of a lock is neither committed nor given up, its lock is not given back.
pub fn no_lock_is_given_back_before_its_uploads(history: &History) -> Vec<String> {
    each(history, |workspace, holds| {
        let mut found = Vec::new();
        for begin in history.of(workspace).filter(|event| event.is_ok()) {
            let Operation::Begin { lock, .. } = &begin.operation else { continue };
            let (Some(begun), Some(upload)) = (begin.to, begin.answer.as_ref().and_then(|answer| answer.id))
            else {
                continue;
            };
            let Some(hold) = holds.iter().find(|hold| hold.id == *lock && hold.covers(begin.from, begun))
            else {
                continue;
            };
            // What else may end the upload or the hold.
            let resolved = history
                .of(workspace)
                .filter(|event| match &event.operation {
                    Operation::Commit { upload: other, .. } => *other == upload,
                    Operation::Sweep => event.end() > begin.from,
                    Operation::Stop { executor } => hold.by == Who::Executor(*executor),
                    Operation::ForceUnlock => event.may_have_happened() && event.end() > hold.from,
                    _ => false,
                })
                .map(|event| event.from)
                .min()
                .unwrap_or(Tick::MAX);
            let given_back = history.of(workspace).find(|event| {
                matches!(&event.operation, Operation::Unlock { id } if id == lock)
                    && event.is_ok()
                    && event.from > begun
                    && event.end() < resolved
            });
            found.extend(given_back.map(|event| format!("{event:?} although {upload} was under way")));
        }
        found
    })
}
