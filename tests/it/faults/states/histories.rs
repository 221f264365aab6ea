//! Each checker finds what it is for in a history made by hand, and nothing in a sound one.

use uuid::Uuid;

use super::checkers::{CHECKERS, violations};
use super::history::{
    Answer, Entry, Event, History, Kept, Move, Operation, Tick, Version, Who, Window, Written,
};
use super::linear::{Call, Found, search};
use super::registers::{Head, HeadCall, Lock, LockCall, LockState};

const ONE: Who = Who::Person(1);
const TWO: Who = Who::Person(2);
const APPLY: Who = Who::Executor(Uuid::from_u128(9));
const UPLOAD: Uuid = Uuid::from_u128(70);

fn written(serial: i64) -> Written {
    Written { serial, lineage: "l".into(), sha256: format!("body {serial}") }
}

fn ok() -> Answer {
    Answer { status: 200, ..Answer::default() }
}

fn refused(status: u16, slug: &str) -> Answer {
    Answer { status, slug: slug.into(), ..Answer::default() }
}

fn event(who: Who, from: Tick, to: Tick, operation: Operation, answer: Answer) -> Event {
    Event { workspace: Some(0), who, from, to: Some(to), operation, answer: Some(answer) }
}

fn lock(id: &str) -> Operation {
    Operation::Lock { id: id.into() }
}

fn unlock(id: &str) -> Operation {
    Operation::Unlock { id: id.into() }
}

fn write(id: &str, serial: i64) -> Operation {
    Operation::Write { lock: Some(id.into()), state: written(serial), is_next: true }
}

fn read(serial: i64) -> Answer {
    Answer { state: Some(written(serial)), ..ok() }
}

fn version(serial: i64, generation: i64) -> Version {
    let id = Uuid::from_u128(100 + u128::try_from(serial).unwrap());
    Version { id, workspace: 0, state: written(serial), generation, rolled_back_from: None, has_body: true }
}

fn moved(generation: i64, lock: Option<&str>, serial: Option<i64>) -> Move {
    let head = serial.map(|serial| version(serial, 0).id);
    Move { workspace: 0, generation, lock: lock.map(str::to_owned), head }
}

fn entry(action: &str, lock: Option<&str>, serial: Option<i64>) -> Entry {
    let version = serial.map(|serial| version(serial, 0).id);
    Entry { workspace: 0, action: action.into(), version, lock: lock.map(str::to_owned) }
}

/// A person writes one version and an executor uploads the next one.
fn sound() -> History {
    let begin = Operation::Begin { lock: "b".into(), state: written(2) };
    let commit = Operation::Commit { upload: UPLOAD, lock: "b".into(), state: written(2), is_next: true };
    let events = vec![
        event(ONE, 1, 2, lock("a"), ok()),
        event(TWO, 3, 4, lock("x"), Answer { holder: Some("a".into()), ..refused(423, "") }),
        event(ONE, 5, 6, write("a", 1), ok()),
        event(ONE, 7, 8, Operation::Read, read(1)),
        event(ONE, 9, 10, unlock("a"), ok()),
        event(ONE, 11, 12, unlock("a"), ok()),
        event(APPLY, 13, 14, lock("b"), ok()),
        event(APPLY, 15, 16, begin, Answer { id: Some(UPLOAD), ..ok() }),
        event(APPLY, 17, 18, Operation::Put { upload: UPLOAD }, ok()),
        event(APPLY, 19, 20, unlock("b"), refused(409, "upload-unresolved")),
        event(APPLY, 21, 22, commit, Answer { slug: "accepted".into(), ..ok() }),
        event(TWO, 23, 24, Operation::ForceUnlock, refused(409, "holder-may-live")),
        event(APPLY, 25, 26, unlock("b"), ok()),
        event(ONE, 27, 28, Operation::Read, read(2)),
    ];
    let moves = vec![
        moved(1, Some("a"), None),
        moved(1, Some("a"), Some(1)),
        moved(1, None, Some(1)),
        moved(2, Some("b"), Some(1)),
        moved(2, Some("b"), Some(2)),
        moved(2, None, Some(2)),
    ];
    let audit = vec![
        entry("state.lock", Some("a"), None),
        entry("state.write", Some("a"), Some(1)),
        entry("state.unlock", Some("a"), None),
        entry("state.lock", Some("b"), None),
        entry("state.write", Some("b"), Some(2)),
        entry("state.unlock", Some("b"), None),
    ];
    History {
        workspaces: 1,
        events,
        moves,
        audit,
        versions: vec![version(1, 1), version(2, 2)],
        ..History::default()
    }
}

/// A way to break a history.
type Defect = fn(&mut History);

/// Checker by checker, what it must find.
const DEFECTS: [(&str, Defect); 22] = [
    ("the lock is linearizable", |history| history.events[6].answer = Some(refused(423, ""))),
    ("the lock is linearizable", |history| {
        history.events[1].answer = Some(Answer { holder: Some("b".into()), ..refused(423, "") });
    }),
    ("the lock is linearizable", |history| history.events[11].answer = Some(ok())),
    ("the lock is linearizable", |history| {
        history.events.push(event(TWO, 30, 31, unlock("never held"), ok()));
    }),
    ("the head is linearizable", |history| history.events[3].answer = Some(read(7))),
    ("the head is linearizable", |history| history.events[3].answer = Some(read(2))),
    ("reads never go back", |history| history.events.push(event(TWO, 30, 31, Operation::Read, read(1)))),
    ("a workspace has one lineage", |history| {
        history.versions[1].state.lineage = "m".into();
    }),
    ("serials rise", |history| {
        history.versions[0].state.serial = 2;
    }),
    ("no accepted write is lost", |history| history.versions[0].has_body = false),
    ("no accepted write is lost", |history| history.events.push(event(ONE, 30, 31, write("a", 3), ok()))),
    ("every version was asked for", |history| {
        history.events.remove(2);
    }),
    ("no write outside of its lock is the head", |history| history.events[2].operation = write("z", 1)),
    ("the live holder is never refused", |history| {
        history.events.push(event(ONE, 5, 6, write("a", 4), refused(409, "state-refused")));
    }),
    ("the live holder is never refused", |history| {
        history.events[10].answer = Some(Answer { slug: "quarantined".into(), ..ok() });
    }),
    ("no lock is given back before its uploads", |history| history.events[9].answer = Some(ok())),
    ("generations rise", |history| history.moves[3].generation = 1),
    ("every body is there", |history| {
        history.kept.push(Kept { id: UPLOAD, workspace: 0, state: written(5), has_body: false });
    }),
    ("quarantined states are kept", |history| {
        history.events.push(event(TWO, 30, 31, write("a", 5), refused(409, "state-quarantined")));
    }),
    ("the audit log is complete", |history| drop(history.audit.pop())),
    ("only faults make errors", |history| {
        history.events.push(event(TWO, 30, 31, Operation::View, refused(503, "unavailable")));
    }),
    ("everything settles", |history| history.left_over.push("an upload".into())),
];

#[test]
fn each_checker_finds_what_it_is_for_and_nothing_in_a_sound_history() {
    assert_eq!(violations(&sound()), []);
    for (name, plant) in DEFECTS {
        let mut history = sound();
        plant(&mut history);
        let found = violations(&history);
        assert!(found.iter().any(|(checker, _)| *checker == name), "{name}: {found:#?}");
    }
    for (name, _) in CHECKERS {
        assert!(DEFECTS.iter().any(|(planted, _)| *planted == name), "no history is bad for: {name}");
    }
}

#[test]
fn what_has_no_answer_may_have_happened_then_later_or_never() {
    let mut history = sound();
    // The writer does not hear of its success; somebody's LOCK never arrives; a fault excuses an error.
    history.events[2].to = None;
    history.events[2].answer = None;
    history.events.push(Event { to: None, answer: None, ..event(TWO, 3, 4, lock("y"), ok()) });
    // It asks again when it has given back the lock, and others have read it by then.
    history.events.push(event(ONE, 11, 12, write("a", 1), ok()));
    history.events.push(event(TWO, 30, 31, Operation::View, refused(503, "unavailable")));
    history.windows.push(Window { from: 29, to: 30 });
    assert_eq!(violations(&history), []);
}

fn other_lineage(serial: i64, name: &str) -> Version {
    let mut version = version(serial, 2);
    version.state.lineage = name.into();
    version
}

/// Two quarantined states of other lineages become the head, each after the switch was set for it.
#[test]
fn each_change_of_lineage_uses_a_switch_of_its_own() {
    let mut history = sound();
    for (at, serial, name) in [(30, 3, "m"), (40, 4, "n")] {
        let promote = Operation::Promote { id: Uuid::from_u128(u128::try_from(serial).unwrap()) };
        let version = other_lineage(serial, name);
        let made = Answer { state: Some(version.state.clone()), id: Some(version.id), ..ok() };
        history.events.push(event(TWO, at, at + 1, Operation::AcceptLineage, ok()));
        history.events.push(event(TWO, at + 2, at + 3, promote, made));
        history.moves.push(moved(2, None, Some(serial)));
        history.audit.push(entry("state.promote", None, Some(serial)));
        history.versions.push(version);
    }
    let of_lineages = |history: &History| {
        violations(history).into_iter().filter(|(name, _)| *name == "a workspace has one lineage").count()
    };
    assert_eq!(of_lineages(&history), 0, "{:#?}", violations(&history));
    // The second one was set too late.
    let late = history.events.iter().rposition(|event| event.operation == Operation::AcceptLineage).unwrap();
    (history.events[late].from, history.events[late].to) = (50, Some(51));
    assert_eq!(of_lineages(&history), 1);
}

fn call<C>(from: Tick, to: impl Into<Option<Tick>>, call: C) -> Call<C> {
    Call { from, to: to.into(), gone: None, call }
}

fn take(id: &str) -> LockCall {
    LockCall::Take(id.into(), ONE)
}

fn give_back(id: &str) -> LockCall {
    LockCall::GiveBack(id.into(), ONE)
}

fn seen(id: Option<&str>) -> LockCall {
    LockCall::See(id.map(str::to_owned))
}

fn has_order(calls: &[Call<LockCall>]) -> bool {
    match search(&Lock, LockState::default(), calls) {
        Found::AnOrder => true,
        Found::None { .. } => false,
        Found::TooMany { call } => panic!("undecided at {call}"),
    }
}

#[test]
fn calls_that_overlap_may_have_happened_in_either_order() {
    let both = |second: Tick| [call(1, 4, take("a")), call(second, 6, seen(None))];
    assert!(has_order(&both(2)), "it looked while the lock was being taken");
    assert!(!has_order(&both(5)), "it looked afterwards");
    let two = [call(1, 9, take("a")), call(2, 8, take("b"))];
    assert!(!has_order(&two), "two cannot both have it");
    let and_back = [call(1, 9, take("a")), call(2, 8, take("b")), call(3, 7, give_back("a"))];
    assert!(has_order(&and_back), "one after the other");
}

#[test]
fn a_call_without_an_answer_happens_once_at_most() {
    let lost = call(1, None, take("a"));
    let held = |at: Tick| call(at, at + 1, seen(Some("a")));
    let free = |at: Tick| call(at, at + 1, seen(None));
    assert!(has_order(&[lost.clone(), free(2), held(4), held(6)]), "it happened late");
    assert!(has_order(&[lost.clone(), free(2), free(4)]), "it never happened");
    assert!(!has_order(&[lost.clone(), held(2), free(4)]), "nobody gave it back");
    let back = call(1, None, give_back("a"));
    assert!(has_order(&[lost.clone(), back.clone(), held(2), free(4)]));
    assert!(!has_order(&[lost.clone(), back.clone(), held(2), free(4), held(6)]), "it was taken once");
    assert!(!has_order(&[held(2), call(5, None, take("a"))]), "it cannot happen before it is asked for");
}

#[test]
fn what_is_gone_has_happened_before_or_never() {
    let lost = Call { gone: Some(5), ..call(1, None, take("a")) };
    let (held, free) = (call(2, 3, seen(Some("a"))), |at: Tick| call(at, at + 1, seen(None)));
    assert!(has_order(&[lost.clone(), held.clone(), call(7, 8, seen(Some("a")))]), "it happened in time");
    assert!(has_order(&[lost.clone(), free(2), free(7)]), "it never happened");
    assert!(has_order(&[lost.clone(), held, call(6, 7, give_back("a")), free(8)]));
    assert!(!has_order(&[lost, free(2), call(7, 8, seen(Some("a")))]), "it is too late");
}

#[test]
fn many_calls_without_an_answer_are_searched_in_time() {
    let mut calls = Vec::new();
    for number in 0..60 {
        let at = 10 * number;
        let id = format!("lost-{number}");
        calls.push(call(at, None, take(&id)));
        calls.push(call(at + 1, None, give_back(&id)));
        calls.push(call(at + 2, None, LockCall::Force));
        let id = format!("own-{number}");
        calls.push(call(at + 3, at + 4, take(&id)));
        calls.push(call(at + 5, at + 6, seen(Some(&id))));
        calls.push(call(at + 7, at + 8, give_back(&id)));
    }
    assert!(has_order(&calls));
    calls.push(call(1_000, 1_001, seen(Some("nobody"))));
    assert!(!has_order(&calls));
}

#[test]
fn reads_see_the_last_write_and_never_an_older_one() {
    let set = |from, to: Option<Tick>, serial: i64| call(from, to, HeadCall::Set(format!("body {serial}")));
    let got = |from, serial: i64| call(from, from + 1, HeadCall::Read(Some(format!("body {serial}"))));
    let head = || {
        let known = (1..9).map(|serial| (format!("body {serial}"), (serial, "l".to_owned())));
        Head::knowing(known)
    };
    let has_order = |calls: &[Call<HeadCall>]| search(&head(), None, calls) == Found::AnOrder;
    assert!(has_order(&[set(1, Some(2), 1), got(3, 1), set(5, Some(8), 2), got(6, 1), got(9, 2)]));
    assert!(!has_order(&[set(1, Some(2), 1), set(3, Some(4), 2), got(5, 1)]), "an old one");
    assert!(!has_order(&[set(1, Some(2), 2), set(3, Some(4), 1)]), "a lower serial");
    assert!(has_order(&[set(1, Some(2), 1), set(3, None, 2), got(5, 1), got(7, 2)]), "a lost answer");
    assert!(!has_order(&[set(1, Some(2), 1), set(3, None, 2), got(5, 2), got(7, 1)]), "and back");
}
