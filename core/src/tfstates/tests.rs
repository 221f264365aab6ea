//! Tests of the pure files.

use super::*;
use crate::digest::Sha256Digest;
use crate::ids::{ExecutorId, StateVersionId, UserId};

fn state(serial: i64, lineage: &str) -> String {
    format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":{serial},"lineage":"{lineage}","outputs":{{}},"resources":[]}}"#
    )
}

#[test]
fn a_state_says_serial_lineage_and_version() {
    let facts = parse_state(state(7, "a-b").as_bytes()).unwrap();
    assert_eq!((facts.serial, facts.lineage.as_str(), facts.opaque), (7, "a-b", false));
    assert_eq!(facts.terraform_version.as_deref(), Some("1.11.4"));
}

#[test]
fn a_client_side_encrypted_state_is_opaque() {
    let body = br#"{"serial":3,"lineage":"x","meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}"#;
    let facts = parse_state(body).unwrap();
    assert!(facts.opaque);
    assert_eq!(facts.resource_count, None);
}

#[test]
fn what_is_no_state_is_refused_with_its_own_sentence() {
    let cases: &[(&[u8], BadState)] = &[
        (b"", BadState::Empty),
        (b" \n", BadState::Empty),
        (b"\xff\xfe{}", BadState::NotUtf8),
        (b"PK\x03\x04", BadState::NotJson),
        (b"{\"version\":4,\"serial\":1,\"lineage\":\"x\"", BadState::NotJson),
        (b"[]", BadState::NotAnObject),
        (b"7", BadState::NotAnObject),
        (b"null", BadState::NotAnObject),
        (b"{}", BadState::EmptyObject),
        (br#"{"format_version":"1.2","planned_values":{},"resource_changes":[]}"#, BadState::PlanJson),
        (br#"{"format_version":"1.0","values":{}}"#, BadState::ShowJson),
        (br#"{"version":3,"serial":1,"lineage":"x"}"#, BadState::OldVersion),
        (br#"{"version":5,"serial":1,"lineage":"x"}"#, BadState::NewVersion),
        (br#"{"version":"4","serial":1,"lineage":"x"}"#, BadState::NoVersion),
        (br#"{"serial":1,"lineage":"x"}"#, BadState::NoVersion),
        (br#"{"version":4,"serial":1,"serial":2,"lineage":"x"}"#, BadState::TwiceTheSame),
        (br#"{"version":4,"serial":1}"#, BadState::NoLineage),
        (br#"{"version":4,"serial":1,"lineage":"a\nb"}"#, BadState::NoLineage),
        (br#"{"version":4,"serial":9007199254740992,"lineage":"x"}"#, BadState::NoSerial),
        (br#"{"version":4,"serial":1,"lineage":""}"#, BadState::NoLineage),
        (br#"{"version":4,"serial":1,"lineage":9}"#, BadState::NoLineage),
        (br#"{"version":4,"lineage":"x"}"#, BadState::NoSerial),
        (br#"{"version":4,"serial":-1,"lineage":"x"}"#, BadState::NoSerial),
        (br#"{"version":4,"serial":1.5,"lineage":"x"}"#, BadState::NoSerial),
        (br#"{"version":4,"serial":99999999999999999999,"lineage":"x"}"#, BadState::NoSerial),
    ];
    for (body, expected) in cases {
        assert_eq!(parse_state(body), Err(*expected), "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn resources_are_counted_whatever_stands_in_their_place() {
    let count = |resources: &str| {
        let body = format!(r#"{{"version":4,"serial":1,"lineage":"x","resources":{resources}}}"#);
        parse_state(body.as_bytes()).unwrap().resource_count
    };
    assert_eq!(count("[]"), Some(0));
    assert_eq!(
        count(
            r#"[{"instances":[{"a":[1]},{}],"mode":"managed"},{"mode":"data","instances":[{}]},{"mode":"managed"},
               {"mode":"managed","instances":[{}]}]"#
        ),
        Some(3)
    );
    for odd in ["null", "7", "-7", "0.5", "true", r#""text""#, "{}", r#"{"a":[1,{"b":2}]}"#, "[null,7,[{}]]"]
    {
        assert_eq!(count(odd), Some(0), "{odd}");
    }
    for odd in [r#"[{"mode":{},"instances":7}]"#, r#"[{"mode":["data"],"instances":{"a":1}}]"#] {
        assert_eq!(count(odd), Some(0), "{odd}");
    }
}

#[test]
fn a_lock_info_is_kept_as_it_came() {
    let body = br#"{ "ID":"l-1", "Who":"me", "Extra":[1] }"#;
    let info = LockInfo::parse(body).unwrap();
    assert_eq!((info.id(), info.as_str().as_bytes()), ("l-1", body.as_slice()));
    assert_eq!(LockInfo::parse(b"[]"), Err(BadLock::NotAnObject));
    assert_eq!(LockInfo::parse(b""), Err(BadLock::NotAnObject));
    assert_eq!(LockInfo::parse(br#"{"ID":7}"#), Err(BadLock::NotAnObject));
    assert_eq!(LockInfo::parse(br#"{"ID":""}"#), Err(BadLock::NoId));
    assert_eq!(LockInfo::parse(br#"{"id":"x"}"#), Err(BadLock::NoId));
    assert_eq!(LockInfo::parse(br#"{"ID":"\u0000"}"#), Err(BadLock::NoId));
}

fn head(serial: i64, lineage: &str, body: &str) -> StateHead {
    StateHead {
        version_id: StateVersionId(uuid::Uuid::nil()),
        serial,
        lineage: lineage.into(),
        size_bytes: 1,
        sha256: Sha256Digest::of(body.as_bytes()),
        md5: [0; 16],
        key: "k".into(),
        store_id: None,
    }
}

#[test]
fn writes_are_judged_by_lock_lineage_and_serial() {
    use QuarantineReason as Q;
    let person = HeldBy::Person(UserId(uuid::Uuid::nil()));
    let apply = HeldBy::Executor(ExecutorId(uuid::Uuid::nil()));
    let other_apply = HeldBy::Executor(ExecutorId(uuid::Uuid::max()));
    let lock_of = |by| Lock { id: "l".into(), generation: 5, by: Some(by) };
    let stored = head(3, "x", "three");
    let judge = |lock: Option<&Lock>, accept, fence, serial, lineage, body: &str| {
        let sha256 = Sha256Digest::of(body.as_bytes());
        judge_write(Some(&stored), lock, accept, &Write { fence, serial, lineage, sha256 })
    };
    let under = |id, by| WriteFence::Lock { id, by };
    let (held, free) = (lock_of(apply), None);

    assert_eq!(judge(Some(&held), false, under("l", apply), 4, "x", "new"), Verdict::Accept);
    assert_eq!(
        judge(Some(&held), false, under("l", other_apply), 4, "x", "new"),
        Verdict::Quarantine(Q::LostLock)
    );
    assert_eq!(
        judge(Some(&held), false, under("l", person), 4, "x", "new"),
        Verdict::Quarantine(Q::LostLock)
    );
    assert_eq!(judge(Some(&held), false, under("m", apply), 4, "x", "new"), Verdict::Quarantine(Q::LostLock));
    assert_eq!(judge(free, false, under("l", apply), 4, "x", "new"), Verdict::Quarantine(Q::LostLock));
    assert_eq!(judge(free, false, under("l", apply), 3, "x", "three"), Verdict::AlreadyStored);
    assert_eq!(
        judge(Some(&held), false, under("l", apply), 3, "x", "other"),
        Verdict::Quarantine(Q::SameSerial)
    );
    assert_eq!(
        judge(Some(&held), false, under("l", apply), 2, "x", "old"),
        Verdict::Quarantine(Q::LowerSerial)
    );
    assert_eq!(
        judge(Some(&held), false, under("l", apply), 9, "y", "new"),
        Verdict::Quarantine(Q::OtherLineage)
    );
    assert_eq!(judge(Some(&held), true, under("l", apply), 1, "y", "new"), Verdict::Accept);

    let upload = |generation| WriteFence::Upload { id: "l", generation, by: None };
    assert_eq!(judge(Some(&held), false, upload(5), 4, "x", "new"), Verdict::Accept);
    assert_eq!(judge(Some(&held), false, upload(4), 4, "x", "new"), Verdict::Quarantine(Q::LostLock));

    let unlocked = WriteFence::Unlocked;
    assert_eq!(judge(Some(&held), false, unlocked, 4, "x", "new"), Verdict::Refuse(RefuseReason::Locked));
    assert_eq!(judge(free, false, unlocked, 4, "x", "new"), Verdict::Accept);
    assert_eq!(judge(free, false, unlocked, 2, "x", "old"), Verdict::Refuse(RefuseReason::LowerSerial));
    assert_eq!(judge(free, false, unlocked, 9, "y", "new"), Verdict::Refuse(RefuseReason::OtherLineage));
    assert_eq!(judge(free, false, unlocked, 3, "x", "other"), Verdict::Quarantine(Q::SameSerial));
}

#[test]
fn a_state_may_be_as_deep_as_terraform_reads_and_brackets_in_its_texts_do_not_count() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"{{"version":4,"serial":1,"lineage":"x","resources":{open}{close}}}"#)
    };
    assert!(parse_state(nested(10_000).as_bytes()).is_ok());
    assert_eq!(parse_state(nested(10_001).as_bytes()), Err(BadState::TooDeep));
    let text = format!(r#"{{"version":4,"serial":1,"lineage":"x","outputs":"\"{}"}}"#, "[".repeat(20_000));
    assert!(parse_state(text.as_bytes()).is_ok());
}
