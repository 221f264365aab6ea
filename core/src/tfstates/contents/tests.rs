//! Tests of reading states as streams.

use std::io::Read;

use serde_json::{Value, json};

use super::compare::Comparison;
use super::facts::{Beginning, read_facts};
use super::index::{IndexedResource, index};
use super::{Shared, StateDiff, Unreadable, Withheld, addresses, outputs, shared};

/// Gives a body in pieces of a few bytes, so that every token is cut somewhere.
struct Drops<'a>(&'a [u8], usize);

impl Read for Drops<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.1.min(self.0.len()).min(into.len());
        into[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

fn state(more: &str) -> String {
    format!(r#"{{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l",{more}}}"#)
}

fn diff(older: &str, newer: &str) -> Result<StateDiff, Unreadable> {
    let older = Comparison::default().read_older(Drops(older.as_bytes(), 3))?;
    Ok(older.read_newer(Drops(newer.as_bytes(), 5))?.finish())
}

#[test]
fn resources_are_compared_by_address() {
    let resources = |list: &str| state(&format!(r#""outputs":{{"a":{{"value":1}}}},"resources":[{list}]"#));
    let one = |key: &str, value: &str| {
        format!(
            r#"{{"module":"module.m[\"x\"]","mode":"managed","type":"t","name":"n","instances":[{{"index_key":{key},"attributes":{{"v":{value}}},"private":"{value}"}}]}}"#
        )
    };
    let data = r#"{"mode":"data","type":"d","name":"n","instances":[{"attributes":{}}]}"#;
    let older = resources(&[one("\"k\"", "1"), one("0", "1")].join(","));
    let newer = resources(&[one("\"k\"", "2"), data.to_owned()].join(","))
        .replace(r#"{"value":1}"#, r#"{"value":2}"#);
    let expected = StateDiff {
        added: vec!["data.d.n".into()],
        changed: vec![r#"module.m["x"].t.n["k"]"#.into()],
        removed: vec![r#"module.m["x"].t.n[0]"#.into()],
        outputs_changed: vec!["a".into()],
        truncated: false,
    };
    assert_eq!(diff(&older, &newer), Ok(expected));
    assert_eq!(diff(&older, &older), Ok(StateDiff::default()));
}

#[test]
fn the_order_of_fields_and_white_space_are_no_difference() {
    let one = state(
        r#""resources":[{"mode":"managed","type":"t","name":"n","instances":[{"attributes":{"a":{"x":1,"y":[1,2]},"b":"ä"}}]}]"#,
    );
    let other = r#" { "resources" : [ {"instances":[ {"attributes":{"b":"\u00e4","a":{"y":[1 , 2],"x":1}}} ],
        "name":"n","type":"t","mode":"managed"} ], "lineage":"l","serial":8 } "#;
    assert_eq!(diff(&one, other), Ok(StateDiff::default()));
    let swapped = one.replace("[1,2]", "[2,1]");
    assert_eq!(diff(&one, &swapped).unwrap().changed, ["t.n"]);
    let moved = one.replace(r#""x":1,"y":[1,2]"#, r#""y":1,"x":[1,2]"#);
    assert_eq!(diff(&one, &moved).unwrap().changed, ["t.n"]);
}

#[test]
fn one_huge_value_is_compared_without_being_kept() {
    let huge = |last: char| {
        let value = "x".repeat(3 << 20);
        state(&format!(
            r#""resources":[{{"mode":"managed","type":"t","name":"n","instances":[{{"attributes":{{"v":"{value}{last}"}}}}]}}]"#
        ))
    };
    let whole = |older: &str, newer: &str| {
        let older = Comparison::default().read_older(older.as_bytes()).unwrap();
        older.read_newer(newer.as_bytes()).unwrap().finish()
    };
    assert_eq!(whole(&huge('a'), &huge('a')), StateDiff::default());
    assert_eq!(whole(&huge('a'), &huge('b')).changed, ["t.n"]);
}

#[test]
fn what_is_no_state_or_encrypted_cannot_be_told() {
    let whole = state(r#""resources":[]"#);
    for length in 1..whole.len() {
        let cut = &whole.as_bytes()[..length];
        assert!(addresses(cut).is_err(), "{}", String::from_utf8_lossy(cut));
    }
    for (body, expected) in [
        ("", Unreadable::Broken),
        ("[]", Unreadable::NoState),
        ("{} {}", Unreadable::Broken),
        (r#"{"resources":[7]}"#, Unreadable::NoState),
        (r#"{"resources":[{"instances":[[]]}]}"#, Unreadable::NoState),
        (r#"{"serial":1,"serial":2}"#, Unreadable::NoState),
        (r#"{"serial":1,"encrypted_data":"AAAA"}"#, Unreadable::Encrypted),
    ] {
        assert_eq!(addresses(body.as_bytes()), Err(expected), "{body}");
    }
}

#[test]
fn the_bytes_of_the_serial_are_found_wherever_they_stand() {
    let nested = r#""outputs":{"serial":{"value":1}},"resources":[]"#;
    for body in [state(nested), format!(r#"{{ {nested} , "lineage":"l", "serial" :  12345 }}"#)] {
        let facts = read_facts(Drops(body.as_bytes(), 4)).unwrap();
        let at = facts.serial_at.unwrap();
        let text = &body[usize::try_from(at.start).unwrap()..usize::try_from(at.end).unwrap()];
        assert_eq!(text, facts.says.serial.unwrap().to_string());
    }
}

#[test]
fn the_beginning_of_a_body_is_held_against_what_was_announced() {
    let body = state(r#""resources":[{"mode":"managed","instances":[{},{}]}]"#);
    let read = |body: &str, whole| Beginning::read(body.as_bytes(), whole, 7, "l");
    let good = read(&body, true);
    assert_eq!((good.contradiction, good.resource_count), (None, Some(2)));
    for length in 1..body.len() {
        assert_eq!(read(&body[..length], false).contradiction, None, "{}", &body[..length]);
    }
    for (body, whole) in [
        (body.replace("\"serial\":7", "\"serial\":8"), false),
        (body.replace("\"lineage\":\"l\"", "\"lineage\":\"m\""), false),
        (body.replace("\"version\":4", "\"version\":3"), false),
        ("PK".to_owned(), false),
        ("[]".to_owned(), false),
        (r#"{"format_version":"1.0","#.to_owned(), false),
        ("{}".to_owned(), true),
        (r#"{"version":4,"serial":7}"#.to_owned(), true),
        (body[..body.len() - 1].to_owned(), true),
    ] {
        assert!(read(&body, whole).contradiction.is_some(), "{body}");
    }
    assert!(read(r#"{"serial":7,"lineage":"l","encrypted_data":"AAAA"#, false).is_opaque);
}

#[test]
fn sensitive_outputs_are_withheld_and_long_ones_too() {
    let long = "x".repeat(70_000);
    let body = state(&format!(
        r#""outputs":{{"open":{{"value":{{"a":[1]}},"type":["object",{{"a":["list","number"]}}]}},
            "secret":{{"value":"hunter2","type":"string","sensitive":true}},
            "odd":{{"sensitive":"perhaps","value":"hunter3","type":"string"}},
            "long":{{"value":"{long}","type":"string"}}}},"resources":[]"#
    ));
    let masked = outputs(Drops(body.as_bytes(), 7), false).unwrap();
    assert!(!serde_json::to_string(&masked).unwrap().contains("hunter"));
    let facts: Vec<_> = masked
        .items
        .iter()
        .map(|output| (output.name.as_str(), output.value.clone(), output.withheld))
        .collect();
    assert_eq!(
        facts,
        [
            ("open", json!({ "a": [1] }), None),
            ("secret", Value::Null, Some(Withheld::Sensitive)),
            ("odd", Value::Null, Some(Withheld::Sensitive)),
            ("long", Value::Null, Some(Withheld::TooLong)),
        ]
    );
    assert_eq!(masked.items[1].kind, json!("string"), "the type is shown");
    let shown = outputs(body.as_bytes(), true).unwrap();
    assert_eq!(shown.items[1].value, json!("hunter2"));
    assert_eq!(outputs(br#"{"encrypted_data":"A"}"#.as_slice(), true), Err(Unreadable::Encrypted));
}

fn indexed(resource: &Value) -> Vec<IndexedResource> {
    let body = state(&format!(r#""resources":[{resource}]"#));
    let (index, readable) = index(Drops(body.as_bytes(), 11));
    readable.unwrap();
    index.resources.values().map(|json| serde_json::from_str(json).unwrap()).collect()
}

#[test]
fn a_resource_is_indexed_by_what_names_it() {
    let rows = indexed(&json!({
        "module": "module.net", "mode": "managed", "type": "aws_instance", "name": "web",
        "provider": "module.net.provider[\"registry.terraform.io/hashicorp/aws\"].west",
        "instances": [
            { "index_key": "a", "attributes": { "id": "i-1", "arn": "ARN:1", "tags": { "Name": "Front" },
              "user_data": "no name", "private_ip": "10.0.0.1", "count": 3 }, "sensitive_attributes": [] },
            { "index_key": "a", "deposed": "0badcafe", "attributes": { "id": "i-0" } },
        ],
    }));
    assert_eq!(
        rows.iter().map(|row| row.address.as_str()).collect::<Vec<_>>(),
        [
            r#"module.net.aws_instance.web["a"]"#,
            r#"module.net.aws_instance.web["a"] (deposed object 0badcafe)"#
        ]
    );
    let web = &rows[0];
    assert_eq!(web.provider, "registry.terraform.io/hashicorp/aws");
    assert_eq!((web.resource_id.as_deref(), web.arn.as_deref()), (Some("i-1"), Some("ARN:1")));
    assert_eq!(web.names["tags.Name"], "Front");
    assert!(web.haystack.contains("arn:1") && web.haystack.contains("front"), "{}", web.haystack);
    assert!(!web.haystack.contains("no name"));
}

#[test]
fn what_is_sensitive_is_never_indexed() {
    let of = |attributes: Value, sensitive: Value| {
        let rows = indexed(&json!({ "mode": "managed", "type": "t", "name": "n", "provider": "provider.x",
            "instances": [{ "attributes": attributes, "sensitive_attributes": sensitive }] }));
        serde_json::to_string(&rows).unwrap()
    };
    let path = |name: &str| json!([[{ "type": "get_attr", "value": name }]]);
    assert!(!of(json!({ "id": "hunter2" }), path("id")).contains("hunter2"));
    // Under another name it is as secret.
    assert!(!of(json!({ "id": "hunter2", "password": "hunter2" }), path("password")).contains("hunter2"));
    let deep = json!([[{ "type": "get_attr", "value": "tags" },
                       { "type": "index", "value": { "value": "Name", "type": "string" } }]]);
    assert!(!of(json!({ "id": "i", "tags": { "Name": "hunter2" } }), deep).contains("hunter2"));
    for unknown in [json!("all"), json!([["id"]]), json!([[]]), json!([[{ "type": "index", "value": 1 }]])] {
        assert!(
            !of(json!({ "id": "hunter2", "name": "hunter2" }), unknown.clone()).contains("hunter2"),
            "{unknown}"
        );
    }
    let random = indexed(&json!({ "mode": "managed", "type": "random_string", "name": "n", "provider": "",
        "instances": [{ "attributes": { "id": "hunter2", "result": "hunter2" } }] }));
    assert!(!serde_json::to_string(&random).unwrap().contains("hunter2"));
}

#[test]
fn of_a_state_that_cannot_be_read_nothing_is_indexed() {
    let body = state(
        r#""resources":[{"mode":"managed","type":"t","name":"n","instances":[{}]}],"encrypted_data":"A""#,
    );
    let (encrypted, readable) = index(body.as_bytes());
    assert_eq!((encrypted.resources.len(), readable), (0, Err(Unreadable::Encrypted)));
    let (broken, readable) = index(&body.as_bytes()[..body.len() - 1]);
    assert!(broken.resources.is_empty() && readable.is_err());
}

fn shared_of(body: &str, bytes_max: usize) -> Result<Option<Value>, Unreadable> {
    Ok(match shared(body.as_bytes(), 7, "l", bytes_max)? {
        Shared::State(state) => Some(serde_json::from_slice(&state).unwrap()),
        Shared::TooLong => None,
    })
}

#[test]
fn other_workspaces_see_the_outputs_and_nothing_else() {
    let outputs = json!({
        "a\"": { "value": 1, "type": "number" },
        "b": { "value": { "x": ["y"] }, "type": ["map", ["list", "string"]], "sensitive": true },
    });
    let state = state(&format!(
        r#""outputs":{outputs},"resources":[{{"type":"t","instances":[{{"attributes":{{"password":"hunter2"}}}}]}}],"private":"hunter2""#
    ));
    let expected = json!({
        "version": 4, "terraform_version": "1.9.0", "serial": 7, "lineage": "l",
        "outputs": outputs, "resources": [], "check_results": null,
    });
    assert_eq!(shared_of(&state, 1_000).unwrap().unwrap(), expected);
    assert_eq!(shared_of(&state, 20).unwrap(), None);
    let bare = shared_of(r#"{"version":4,"serial":7,"lineage":"l"}"#, 1_000).unwrap().unwrap();
    assert_eq!(bare["outputs"], json!({}));
}

#[test]
fn what_has_no_outputs_to_see_is_an_error() {
    for (body, error) in [
        ("[]", Unreadable::NoState),
        ("x", Unreadable::NoState),
        (r#"{"version":3,"serial":7,"lineage":"l","modules":[]}"#, Unreadable::NoState),
        (r#"{"serial":7,"lineage":"l","encrypted_data":"AAAA"}"#, Unreadable::Encrypted),
        (r#"{"version":4,"outputs":{"a":{"value":1,"#, Unreadable::Broken),
    ] {
        assert_eq!(shared_of(body, 1_000), Err(error), "{body}");
    }
}
