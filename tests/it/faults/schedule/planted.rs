//! Each checker finds the defect that it is for, and nothing in a sound history.

use plumbline_core::digest::Sha256Digest;
use uuid::Uuid;

use super::checkers::{CHECKERS, violations};
use super::history::{History, Report, Running, Settled, StateWrite, Version};

const TASK: Uuid = Uuid::from_u128(1);
const WORKSPACE: Uuid = Uuid::from_u128(2);
const RUN: Uuid = Uuid::from_u128(3);

fn report(lease_token: i64, from: u64, to: u64) -> Report {
    Report { task: TASK, lease_token, what: "heartbeat".into(), from, to, is_accepted: true }
}

fn version(serial: i64, lineage: &str) -> Version {
    let sha256 = Sha256Digest::of(&serial.to_be_bytes());
    Version { workspace: WORKSPACE, serial, lineage: lineage.into(), sha256 }
}

/// Two attempts, two states, one applied run.
fn sound() -> History {
    let write = |serial: i64| StateWrite {
        workspace: WORKSPACE,
        sha256: version(serial, "l").sha256,
        holds_lock: true,
        is_accepted: true,
    };
    let applied = Settled {
        run: RUN,
        status: "applied".into(),
        is_over: true,
        apply_begun: true,
        approved: Some(vec![7]),
        plan: Some(vec![9]),
        ..Settled::default()
    };
    History {
        reports: vec![report(1, 1, 2), report(2, 3, 4)],
        writes: vec![write(1), write(2)],
        versions: vec![version(1, "l"), version(2, "l")],
        running: vec![Running { unit: WORKSPACE, running: 2, cap: 2 }],
        told: [("run.trigger".into(), 1)].into(),
        audited: [("run.trigger".into(), 1)].into(),
        is_chain_whole: true,
        runs: vec![applied],
        begun_with: vec![(RUN, vec![9])],
        ..History::default()
    }
}

/// A way to break a history.
type Defect = fn(&mut History);

/// Checker by checker, what it must find.
const DEFECTS: [(&str, Defect); 16] = [
    ("no older token is accepted", |history| history.reports.push(report(1, 5, 6))),
    ("running tasks stay within caps", |history| history.running[0].running = 3),
    ("running tasks stay within caps", |history| history.running[0].running = -1),
    ("state versions have one history", |history| history.versions.push(version(3, "other"))),
    ("state versions have one history", |history| history.versions.push(version(2, "l"))),
    ("state versions have one history", |history| drop(history.versions.pop())),
    ("the live holder is never refused", |history| history.writes[1].is_accepted = false),
    ("nothing due is overlooked", |history| history.overlooked.push(TASK)),
    ("the audit log is complete", |history| history.audited.clear()),
    ("the audit log is complete", |history| history.audited.extend([("run.approve".into(), 1)])),
    ("the audit log is complete", |history| history.is_chain_whole = false),
    ("what is applied was approved", |history| history.begun_with[0].1 = vec![8]),
    ("what is applied was approved", |history| history.runs[0].approved = None),
    ("no healthy apply is given up", |history| history.runs[0].reason = Some("lost".into())),
    ("every run has an end or a way on", |history| history.runs[0].is_over = false),
    ("every run has an end or a way on", |history| history.left_over.push("a counter".into())),
];

#[test]
fn each_checker_finds_the_defect_that_it_is_for_and_only_that() {
    assert_eq!(violations(&sound()), []);
    for (name, plant) in DEFECTS {
        let mut history = sound();
        plant(&mut history);
        let found = violations(&history);
        assert!(!found.is_empty() && found.iter().all(|(checker, _)| *checker == name), "{name}: {found:?}");
    }
    for (name, _) in CHECKERS {
        assert!(DEFECTS.iter().any(|(planted, _)| *planted == name), "no defect is planted for: {name}");
    }
}

#[test]
fn what_overlaps_and_what_was_killed_is_no_violation() {
    let mut history = sound();
    // Sent before the newer attempt's answer was there: either order is right.
    history.reports.push(report(1, 3, 9));
    history.runs[0].reason = Some("lost".into());
    history.killed.push(RUN);
    assert_eq!(violations(&history), []);
}
