//! The invariants of every schedule, checked on its history.

use std::collections::{BTreeMap, BTreeSet};

use super::history::History;

/// An invariant: what is wrong, in words; nothing if it holds.
pub type Checker = fn(&History) -> Vec<String>;

/// Each with its name.
pub const CHECKERS: [(&str, Checker); 9] = [
    ("no older token is accepted", no_older_token_is_accepted),
    ("running tasks stay within caps", running_stays_within_caps),
    ("state versions have one history", state_versions_have_one_history),
    ("the live holder is never refused", the_live_holder_is_never_refused),
    ("nothing due is overlooked", nothing_due_is_overlooked),
    ("the audit log is complete", the_audit_log_is_complete),
    ("what is applied was approved", what_is_applied_was_approved),
    ("no healthy apply is given up", no_healthy_apply_is_given_up),
    ("every run has an end or a way on", every_run_has_an_end_or_a_way_on),
];

/// Every violation, with the name of its invariant.
pub fn violations(history: &History) -> Vec<(&'static str, String)> {
    CHECKERS.iter().flat_map(|(name, check)| check(history).into_iter().map(|what| (*name, what))).collect()
}

fn no_older_token_is_accepted(history: &History) -> Vec<String> {
    let accepted: Vec<_> = history.reports.iter().filter(|report| report.is_accepted).collect();
    let mut found = Vec::new();
    for newer in &accepted {
        for older in &accepted {
            let is_late =
                older.task == newer.task && older.lease_token < newer.lease_token && older.from > newer.to;
            if is_late {
                found.push(format!("{} of {older:?} after {} of {newer:?}", older.what, newer.what));
            }
        }
    }
    found
}

fn running_stays_within_caps(history: &History) -> Vec<String> {
    let wrong = |running: i32, cap: i32| running > cap || running < 0;
    history
        .running
        .iter()
        .filter(|seen| wrong(seen.running, seen.cap))
        .map(|seen| format!("{} of {} in unit {}", seen.running, seen.cap, seen.unit))
        .collect()
}

fn state_versions_have_one_history(history: &History) -> Vec<String> {
    let mut heads: BTreeMap<_, (&str, i64)> = BTreeMap::new();
    let mut found = Vec::new();
    for version in &history.versions {
        let head = heads.insert(version.workspace, (&version.lineage, version.serial));
        if let Some((lineage, serial)) = head
            && (lineage != version.lineage || version.serial <= serial)
        {
            found.push(format!("{version:?} after {serial} of {lineage}"));
        }
    }
    let kept: BTreeSet<_> =
        history.versions.iter().map(|version| (version.workspace, version.sha256.0)).collect();
    let lost = history
        .writes
        .iter()
        .filter(|write| write.is_accepted && !kept.contains(&(write.workspace, write.sha256.0)));
    found.extend(lost.map(|write| format!("lost: {write:?}")));
    found
}

fn the_live_holder_is_never_refused(history: &History) -> Vec<String> {
    let refused = history.writes.iter().filter(|write| write.holds_lock && !write.is_accepted);
    refused.map(|write| format!("{write:?}")).collect()
}

fn nothing_due_is_overlooked(history: &History) -> Vec<String> {
    history.overlooked.iter().map(|task| format!("task {task}")).collect()
}

fn the_audit_log_is_complete(history: &History) -> Vec<String> {
    let words: BTreeSet<_> = history.told.keys().chain(history.audited.keys()).collect();
    let count = |of: &BTreeMap<String, usize>, word: &String| of.get(word).copied().unwrap_or(0);
    let mut found: Vec<String> = words
        .into_iter()
        .map(|word| (word, count(&history.told, word), count(&history.audited, word)))
        .filter(|(_, told, audited)| told != audited)
        .map(|(word, told, audited)| format!("{word}: {told} were told, {audited} are in the log"))
        .collect();
    if !history.is_chain_whole {
        found.push("a chain does not verify".into());
    }
    found
}

fn what_is_applied_was_approved(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for (run, digest) in &history.begun_with {
        let settled = history.runs.iter().find(|settled| settled.run == *run);
        let is_right = settled
            .is_some_and(|settled| settled.approved.is_some() && settled.plan.as_ref() == Some(digest));
        if !is_right {
            found.push(format!("{run} began with {}: {settled:?}", hex::encode(digest)));
        }
    }
    let unapproved = history.runs.iter().filter(|run| run.apply_begun && run.approved.is_none());
    found.extend(unapproved.map(|run| format!("{run:?}")));
    found
}

fn no_healthy_apply_is_given_up(history: &History) -> Vec<String> {
    let given_up = history.runs.iter().filter(|run| run.apply_begun && run.reason.as_deref() == Some("lost"));
    given_up.filter(|run| !history.killed.contains(&run.run)).map(|run| format!("{run:?}")).collect()
}

fn every_run_has_an_end_or_a_way_on(history: &History) -> Vec<String> {
    let is_stranded = |run: &&super::history::Settled| {
        !(run.is_over || run.waits || run.has_task || run.status == "awaiting_approval")
    };
    let stranded = history.runs.iter().filter(is_stranded).map(|run| format!("{run:?}"));
    stranded.chain(history.left_over.iter().cloned()).collect()
}
