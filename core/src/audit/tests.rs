//! The pure parts of the audit log.

use serde_json::{Value, json};

use super::model::{Action, ChainId, Cursor, Entry};
use super::rules::{
    ChainWalk, Draft, Fault, Link, NO_HASH, canonical_json, link_hash, same_json, without_nul,
};
use crate::access::Actor;
use crate::digest::Sha256Digest;

fn entry(resource_id: &str, details: Value) -> Entry {
    Entry {
        business_unit_id: None,
        actor: Actor::System,
        action: Action::TaskReplay,
        resource_type: "task",
        resource_id: resource_id.into(),
        workspace_id: None,
        run_id: None,
        details,
    }
}

/// What `audit_append` makes of a draft.
fn canonical_bytes(entry: &Entry, sequence: i64, at: chrono::DateTime<chrono::Utc>) -> Vec<u8> {
    let Draft { before, middle, after, .. } = Draft::of(entry);
    let at = at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    [before, at, middle, sequence.to_string(), after].concat().into_bytes()
}

fn chain(length: i64) -> Vec<(i64, Sha256Digest, Sha256Digest, Vec<u8>)> {
    let mut previous = NO_HASH;
    (1..=length)
        .map(|sequence| {
            let canonical = canonical_bytes(
                &entry("x", json!({ "n": sequence })),
                sequence,
                chrono::DateTime::UNIX_EPOCH,
            );
            let hash = link_hash(previous, &canonical);
            let link = (sequence, previous, hash, canonical);
            previous = hash;
            link
        })
        .collect()
}

fn faults(links: &[(i64, Sha256Digest, Sha256Digest, Vec<u8>)]) -> Vec<(i64, Fault)> {
    let mut walk = ChainWalk::new(ChainId::of(None));
    links
        .iter()
        .filter_map(|(sequence, previous_hash, hash, canonical)| {
            let link = Link { sequence: *sequence, previous_hash: *previous_hash, hash: *hash, canonical };
            walk.step(&link).and_then(|()| walk.read(&link)).err().map(|fault| (*sequence, fault))
        })
        .collect()
}

#[test]
fn the_bytes_are_sorted_and_complete() {
    let at = chrono::DateTime::from_timestamp_micros(1_700_000_000_000_001).expect("a time");
    let bytes = canonical_bytes(&entry("a\"b", json!({ "z": 1, "a": [true, null] })), 7, at);
    assert_eq!(
        String::from_utf8(bytes).expect("text"),
        concat!(
            r#"{"action":"task.replay","business_unit_id":null,"chain_id":"00000000-0000-0000-0000-000000000000","#,
            r#""created_at":"2023-11-14T22:13:20.000001Z","details":{"a":[true,null],"z":1},"format":1,"#,
            r#""resource_id":"a\"b","resource_type":"task","run_id":null,"sequence":7,"user_id":null,"#,
            r#""workspace_id":null}"#
        )
    );
}

#[test]
fn fields_cannot_run_into_each_other() {
    let at = chrono::DateTime::UNIX_EPOCH;
    let one = canonical_bytes(&entry(r#"x","run_id":"y"#, json!({})), 1, at);
    let other = canonical_bytes(&entry("x", json!({})), 1, at);
    assert_ne!(one, other);
    assert_eq!(canonical_json(&json!({ "b": 1, "a": { "d": 2, "c": 3 } })), r#"{"a":{"c":3,"d":2},"b":1}"#);
}

#[test]
fn an_unbroken_chain_has_no_faults() {
    assert_eq!(faults(&chain(5)), []);
}

#[test]
fn a_changed_a_missing_and_a_swapped_entry_are_each_found_once() {
    let mut changed = chain(5);
    changed[2].3 = b"{}".to_vec();
    assert_eq!(faults(&changed), [(3, Fault::Content)]);

    let mut missing = chain(5);
    missing.remove(2);
    assert_eq!(faults(&missing), [(4, Fault::Gap)]);

    let mut rehashed = chain(5);
    rehashed[2].3 = canonical_bytes(&entry("y", json!({})), 3, chrono::DateTime::UNIX_EPOCH);
    rehashed[2].2 = link_hash(rehashed[2].1, &rehashed[2].3);
    assert_eq!(faults(&rehashed), [(4, Fault::Link)]);
}

#[test]
fn an_entry_of_another_place_is_found() {
    let canonical = canonical_bytes(&entry("x", json!({})), 9, chrono::DateTime::UNIX_EPOCH);
    assert_eq!(faults(&[(1, NO_HASH, link_hash(NO_HASH, &canonical), canonical)]), [(1, Fault::Place)]);
}

#[test]
fn numbers_are_the_same_however_they_are_written() {
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert!(same_json(&parse("{\"n\":[1e2]}"), &parse("{\"n\":[100.0]}")));
    assert!(!same_json(&parse("{\"n\":1}"), &parse("{\"n\":\"1\"}")));
    assert!(!same_json(&parse("{\"n\":1}"), &parse("{\"n\":1,\"m\":2}")));
}

#[test]
fn nul_is_replaced_everywhere() {
    assert_eq!(without_nul(&json!({ "a\0": ["\0b"] })), json!({ "a\u{fffd}": ["\u{fffd}b"] }));
}

#[test]
fn a_cursor_survives_its_text_and_others_are_refused() {
    let cursor = Cursor { micros: -5, sequence: 7, chain_id: ChainId(uuid::Uuid::from_u128(9)) };
    assert_eq!(cursor.to_string().parse(), Ok(cursor));
    for bad in ["", "1.2", "1.2.x", "1.2.3.4", "x.1.00000000000000000000000000000009"] {
        assert_eq!(bad.parse::<Cursor>(), Err(()), "{bad}");
    }
}
