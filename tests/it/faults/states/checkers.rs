//! What must hold of every history.

use std::collections::BTreeMap;

use super::history::{Event, History, Operation, Tick, Version};
use super::{holds, registers};

/// What is wrong, in words; nothing if it holds.
pub type Checker = fn(&History) -> Vec<String>;

/// Each with its name.
pub const CHECKERS: [(&str, Checker); 16] = [
    ("the lock is linearizable", registers::check_locks),
    ("the head is linearizable", registers::check_heads),
    ("reads never go back", reads_never_go_back),
    ("a workspace has one lineage", a_workspace_has_one_lineage),
    ("serials rise", serials_rise),
    ("no accepted write is lost", no_accepted_write_is_lost),
    ("every version was asked for", every_version_was_asked_for),
    ("no write outside of its lock is the head", holds::no_write_outside_of_its_lock_is_the_head),
    ("the live holder is never refused", holds::the_live_holder_is_never_refused),
    ("no lock is given back before its uploads", holds::no_lock_is_given_back_before_its_uploads),
    ("generations rise", generations_rise),
    ("every body is there", every_body_is_there),
    ("quarantined states are kept", quarantined_states_are_kept),
    ("the audit log is complete", the_audit_log_is_complete),
    ("only faults make errors", only_faults_make_errors),
    ("everything settles", |history| history.left_over.clone()),
];

/// Every violation, with the name of its checker.
pub fn violations(history: &History) -> Vec<(&'static str, String)> {
    CHECKERS.iter().flat_map(|(name, check)| check(history).into_iter().map(|what| (*name, what))).collect()
}

/// A read that began after another one had ended never shows an older head.
fn reads_never_go_back(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for workspace in 0..history.workspaces {
        // The last place of each body: it may have been the head twice.
        let heads = history.heads(workspace);
        let place: BTreeMap<&str, usize> =
            heads.iter().enumerate().map(|(place, head)| (head.state.sha256.as_str(), place + 1)).collect();
        let first = |sha256: &str| {
            heads.iter().position(|head| head.state.sha256 == sha256).map_or(0, |place| place + 1)
        };
        let mut ends = Vec::new();
        let mut begins = Vec::new();
        for event in history.of(workspace).filter(|event| event.operation == Operation::Read && event.is_ok())
        {
            let sha256 =
                event.answer.as_ref().and_then(|answer| answer.state.as_ref()).map(|state| &state.sha256);
            ends.push((event.end(), sha256.map_or(0, |sha256| first(sha256))));
            begins.push((
                event.from,
                sha256.map_or(0, |sha256| place.get(sha256.as_str()).copied().unwrap_or(0)),
                event,
            ));
        }
        ends.sort_unstable();
        begins.sort_by_key(|(from, ..)| *from);
        let (mut next, mut newest) = (0, 0);
        for (from, place, event) in begins {
            while ends.get(next).is_some_and(|(end, _)| *end < from) {
                newest = newest.max(ends[next].1);
                next += 1;
            }
            if place < newest {
                found.push(format!("head {place} after head {newest} was read: {event:?}"));
            }
        }
    }
    found
}

/// Another lineage comes in only by a write after `accept-next-lineage`, once for each; a rollback brings back its own.
fn a_workspace_has_one_lineage(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for workspace in 0..history.workspaces {
        let mut allowed: Vec<&Event> = history
            .of(workspace)
            .filter(|event| event.operation == Operation::AcceptLineage && event.may_have_happened())
            .collect();
        for pair in history.heads(workspace).windows(2) {
            let (old, new) = (pair[0], pair[1]);
            let source = new.rolled_back_from.and_then(|id| history.version(id));
            if old.state.lineage == new.state.lineage
                || source.is_some_and(|source| source.state.lineage == new.state.lineage)
            {
                continue;
            }
            // What was only begun may have been committed whenever a sweep found it.
            let by_then = |event: &Event| match event.operation {
                Operation::Begin { .. } => Tick::MAX,
                _ => event.end(),
            };
            let accepted = registers::asked_for(history, workspace, new).map(by_then).min();
            let used = allowed.iter().position(|allowed| allowed.from < accepted.unwrap_or(Tick::MAX));
            match used {
                Some(index) => drop(allowed.remove(index)),
                None => found.push(format!("{:?} after {:?}", new.state, old.state)),
            }
        }
    }
    found
}

/// Within a lineage the serial of each head is above that of the head before; and the list that people see, by id, is
/// in that order, too.
fn serials_rise(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for workspace in 0..history.workspaces {
        let heads = history.heads(workspace);
        let listed: Vec<&Version> =
            history.versions.iter().filter(|version| version.workspace == workspace).collect();
        for (order, versions) in [("heads", &heads), ("list", &listed)] {
            for pair in versions.windows(2).filter(|pair| pair[0].state.lineage == pair[1].state.lineage) {
                if pair[1].state.serial <= pair[0].state.serial {
                    found.push(format!("{order}: {:?} after {:?}", pair[1], pair[0]));
                }
            }
        }
    }
    found
}

/// Whatever was answered with success is a version, with exactly its bytes, and was the head.
fn no_accepted_write_is_lost(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for workspace in 0..history.workspaces {
        let heads = history.heads(workspace);
        for event in history.of(workspace).filter(|event| event.is_accepted()) {
            let made = match &event.operation {
                Operation::Rollback { .. } | Operation::Promote { .. } => {
                    event.answer.as_ref().and_then(|answer| answer.state.as_ref())
                }
                _ => event.wants_head().map(|(_, state, _)| state),
            };
            let Some(made) = made else { continue };
            let is_kept = heads.iter().any(|head| head.state == *made && head.has_body);
            if !is_kept {
                found.push(format!("{event:?}"));
            }
        }
    }
    found
}

fn every_version_was_asked_for(history: &History) -> Vec<String> {
    let unasked =
        |version: &&Version| registers::asked_for(history, version.workspace, version).next().is_none();
    history.versions.iter().filter(unasked).map(|version| format!("{version:?}")).collect()
}

/// The generation never falls, rises whenever the lock is taken, and each version has that of its moment.
fn generations_rise(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for workspace in 0..history.workspaces {
        let moves: Vec<_> = history.moves.iter().filter(|step| step.workspace == workspace).collect();
        for pair in moves.windows(2) {
            let is_taken = pair[1].lock.is_some() && pair[1].lock != pair[0].lock;
            let least = pair[0].generation + i64::from(is_taken);
            if pair[1].generation < least {
                found.push(format!("{:?} after {:?}", pair[1], pair[0]));
            }
        }
        for step in moves {
            let version = step.head.and_then(|id| history.version(id));
            if version.is_some_and(|version| version.generation > step.generation) {
                found.push(format!("{step:?} with {version:?}"));
            }
        }
    }
    found
}

fn every_body_is_there(history: &History) -> Vec<String> {
    let versions = history.versions.iter().filter(|version| !version.has_body);
    let kept = history.kept.iter().filter(|kept| !kept.has_body);
    // To whoever reads, the service must never say that a state is lost.
    let lost = |event: &&Event| event.answer.as_ref().is_some_and(|answer| answer.status == 424);
    let told = history.events.iter().filter(lost);
    versions
        .map(|version| format!("{version:?}"))
        .chain(kept.map(|kept| format!("{kept:?}")))
        .chain(told.map(|event| format!("{event:?}")))
        .collect()
}

/// What was answered with "in quarantine" is there.
fn quarantined_states_are_kept(history: &History) -> Vec<String> {
    let is_missing = |event: &&Event| {
        let Some((_, answer)) = event.known() else { return false };
        let Some((_, state, _)) = event.wants_head() else { return false };
        let is_quarantined = matches!(answer.slug.as_str(), "state-quarantined" | "quarantined");
        let is_kept = history.kept.iter().any(|kept| {
            Some(kept.workspace) == event.workspace
                && kept.state.sha256 == state.sha256
                && answer.id.is_none_or(|id| id == kept.id)
        });
        is_quarantined && !is_kept
    };
    history.events.iter().filter(is_missing).map(|event| format!("{event:?}")).collect()
}

/// One entry for each change, none for what was refused, and the chain is whole.
fn the_audit_log_is_complete(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for version in &history.versions {
        let count = |action: &str| history.entries(action, |entry| entry.version == Some(version.id));
        let made = count("state.write") + count("state.rollback") + count("state.promote");
        if made != 1 {
            found.push(format!("{made} entries for {version:?}"));
        }
    }
    for workspace in 0..history.workspaces {
        found.extend(lock_entries(history, workspace));
        found.extend(counted_entries(history, workspace));
    }
    found.extend(history.chain_fault.iter().map(|fault| format!("a chain does not verify: {fault}")));
    found
}

/// Each change of the lock's row has its entry.
fn lock_entries(history: &History, workspace: usize) -> Vec<String> {
    let moves: Vec<_> = history.moves.iter().filter(|step| step.workspace == workspace).collect();
    let before = std::iter::once(None).chain(moves.iter().map(|step| step.lock.as_ref()));
    let (mut taken, mut given_back) = (BTreeMap::new(), BTreeMap::new());
    let mut generation = 0;
    for (step, before) in moves.iter().zip(before) {
        match (before, &step.lock) {
            (None, Some(id)) => *taken.entry(id).or_insert(0) += 1,
            // Whoever takes a lock away raises the generation.
            (Some(id), None) if step.generation == generation => *given_back.entry(id).or_insert(0) += 1,
            _ => {}
        }
        generation = step.generation;
    }
    let mut found = Vec::new();
    for (action, changes) in [("state.lock", taken), ("state.unlock", given_back)] {
        for (id, count) in &changes {
            let entries = history
                .entries(action, |entry| entry.workspace == workspace && entry.lock.as_ref() == Some(id));
            if entries != *count {
                found.push(format!("workspace {workspace}: {entries} entries for {count} {action} of {id}"));
            }
        }
        let all = history.entries(action, |entry| entry.workspace == workspace);
        let changed: usize = changes.values().sum();
        if all != changed {
            found.push(format!("workspace {workspace}: {all} entries for {changed} {action}"));
        }
    }
    found
}

/// As many entries as successes that were told, and at most as many more as nobody was told of.
fn counted_entries(history: &History, workspace: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |action: &str, is_of: &dyn Fn(&Event) -> bool| {
        let of_kind = || history.of(workspace).filter(|event| is_of(event));
        let told = of_kind().filter(|event| event.is_ok()).count();
        let unknown = of_kind().filter(|event| event.known().is_none()).count();
        let entries = history.entries(action, |entry| entry.workspace == workspace);
        if entries < told || entries > told + unknown {
            found.push(format!(
                "workspace {workspace}: {entries} of {action} for {told} to {}",
                told + unknown
            ));
        }
    };
    compare("state.force_unlock", &|event| event.operation == Operation::ForceUnlock);
    compare("state.accept_lineage", &|event| event.operation == Operation::AcceptLineage);
    compare("state.discard", &|event| matches!(event.operation, Operation::Discard { .. }));
    found
}

/// A server's error comes only while something is broken, and then it is 503.
fn only_faults_make_errors(history: &History) -> Vec<String> {
    let is_wrong = |event: &&Event| {
        let Some(answer) = event.answer.as_ref().filter(|answer| answer.status >= 500) else { return false };
        let to = event.to.unwrap_or(u64::MAX);
        let is_excused = history.windows.iter().any(|window| window.from <= to && window.to >= event.from);
        answer.status != 503 || !is_excused
    };
    history.events.iter().filter(is_wrong).map(|event| format!("{event:?}")).collect()
}
