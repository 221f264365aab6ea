//! What claims, mappings and codes mean.

use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use serde_json::{Map, Value, json};

use super::mapping::{MappingError, RoleMapping};
use super::rules::{CodeFacts, CodeVerdict, is_over, judge_code};
use super::{ClaimsError, Identity};
use crate::access::Role;
use crate::digest::Sha256Digest;

fn identity(claims: Value) -> Result<Identity, ClaimsError> {
    let Value::Object(claims) = claims else { panic!("an object") };
    Identity::read("https://id.example.com", &claims, "groups")
}

#[test]
fn an_address_is_verified_only_if_the_provider_says_so_itself() {
    for (claim, expected) in [
        (json!(true), true),
        (json!("true"), true),
        (json!(false), false),
        (json!("false"), false),
        (json!("True"), false),
        (json!(1), false),
        (json!([true]), false),
        (Value::Null, false),
    ] {
        let read =
            identity(json!({ "sub": "1", "email": "a@b.test", "email_verified": claim })).expect("somebody");
        assert_eq!(read.email_verified, expected, "{claim}");
    }
    assert!(!identity(json!({ "sub": "1", "email": "a@b.test" })).expect("somebody").email_verified);
}

#[test]
fn without_a_subject_there_is_nobody() {
    for subject in [json!(""), json!("  "), json!(7), Value::Null, json!("a\0b"), json!("x".repeat(256))] {
        assert_eq!(identity(json!({ "sub": subject })), Err(ClaimsError::NoSubject), "{subject}");
    }
    assert_eq!(identity(json!({})), Err(ClaimsError::NoSubject));
    // Two people whose subjects differ in a blank are two people.
    assert_eq!(identity(json!({ "sub": " 1" })).expect("somebody").subject, " 1");
}

#[test]
fn a_provider_that_says_nothing_of_groups_is_told_from_one_that_says_there_are_none() {
    let groups = |claims: Value| identity(claims).expect("somebody").groups;
    assert_eq!(groups(json!({ "sub": "1" })), None);
    assert_eq!(groups(json!({ "sub": "1", "groups": [] })), Some(vec![]));
    assert_eq!(groups(json!({ "sub": "1", "groups": "one" })), Some(vec!["one".into()]));
    assert_eq!(groups(json!({ "sub": "1", "groups": ["a", 1, "b"] })), Some(vec!["a".into(), "b".into()]));
}

#[test]
fn claims_may_be_empty_or_huge_and_never_more_than_a_name_is_kept() {
    let name = identity(json!({ "sub": "1", "name": "x".repeat(10_000) })).expect("somebody").display_name;
    assert_eq!(name.map(|name| name.len()), Some(255));
    let groups: Vec<String> = (0..6000).map(|n| n.to_string()).collect();
    let read = identity(json!({ "sub": "1", "groups": groups })).expect("somebody").groups;
    assert_eq!(read.map(|groups| groups.len()), Some(5000));
    assert_eq!(Identity::read("x", &Map::new(), "groups"), Err(ClaimsError::NoSubject));
}

#[test]
fn a_mapping_names_groups_units_and_roles_and_nothing_else() {
    for (text, expected) in [
        ("", MappingError::Shape),
        ("null", MappingError::Shape),
        ("{\"a\": null}", MappingError::Shape),
        ("{\"a\": \"admin\"}", MappingError::Shape),
        ("{\"a\": {\"unit\": \"superadmin\"}}", MappingError::Shape),
        ("{\"a\": {\"unit\": {\"x\": \"viewer\"}}}", MappingError::Shape),
        ("{\"a\": {\"u\": \"viewer\"}}", MappingError::Shape),
        ("{\" \": \"superadmin\"}", MappingError::Shape),
        ("{\"a\": \"superadmin\", \" A \": \"superadmin\"}", MappingError::Repeated),
        ("{\"a\": {\"unit\": \"viewer\", \"unit\": \"admin\"}}", MappingError::Repeated),
    ] {
        assert_eq!(RoleMapping::parse(text), Err(expected), "{text}");
    }
    let many: Map<String, Value> = (0..501).map(|n| (n.to_string(), json!("superadmin"))).collect();
    assert_eq!(RoleMapping::parse(&json!(many).to_string()), Err(MappingError::TooMany));
    let deep = format!("{}{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    assert_eq!(RoleMapping::parse(&deep), Err(MappingError::Shape));
}

#[test]
fn the_highest_role_of_all_groups_counts_and_the_default_only_where_nothing_is_given() {
    let mapping = json!({
        "Ops": { "alpha": "viewer", "beta": "admin" }, "devs": { "alpha": "operator" }, "root": "superadmin",
    });
    let mapping = RoleMapping::parse(&mapping.to_string()).expect("a mapping");
    let given = |groups: &[&str]| {
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let given = mapping.given(&groups, Some(("alpha", Role::Viewer)));
        let roles: Vec<(String, Role)> = given.roles.into_iter().collect();
        (given.superadmin, roles)
    };
    let roles = |pairs: &[(&str, Role)]| -> Vec<(String, Role)> {
        pairs.iter().map(|(slug, role)| ((*slug).to_owned(), *role)).collect()
    };
    assert_eq!(given(&[]), (false, roles(&[("alpha", Role::Viewer)])));
    assert_eq!(
        given(&["OPS", " devs "]),
        (false, roles(&[("alpha", Role::Operator), ("beta", Role::Admin)]))
    );
    assert_eq!(given(&["devs", "ops"]), (false, roles(&[("alpha", Role::Operator), ("beta", Role::Admin)])));
    assert_eq!(given(&["ROOT"]), (true, vec![]));
    assert_eq!(given(&["strangers"]), (false, roles(&[("alpha", Role::Viewer)])));
}

#[test]
fn a_code_is_judged_by_whose_it_is_before_anything_else() {
    let challenge = Some(Sha256Digest::of(b"secret"));
    let code = |challenge, expired, traded| CodeFacts { challenge, expired, traded };
    for (code, secret, expected) in [
        (code(None, false, false), None, CodeVerdict::Trade),
        (code(None, true, false), None, CodeVerdict::Expired),
        (code(None, false, true), None, CodeVerdict::Reused),
        // Long after, too.
        (code(None, true, true), None, CodeVerdict::Reused),
        (code(None, false, false), Some("secret"), CodeVerdict::OtherProgram),
        (code(challenge, false, false), Some("secret"), CodeVerdict::Trade),
        (code(challenge, false, true), Some("secret"), CodeVerdict::Reused),
        (code(challenge, false, false), Some("Secret"), CodeVerdict::OtherProgram),
        (code(challenge, false, false), None, CodeVerdict::OtherProgram),
        // Who lacks the secret ends nobody's session.
        (code(challenge, false, true), None, CodeVerdict::OtherProgram),
    ] {
        assert_eq!(judge_code(code, secret), expected, "{code:?} {secret:?}");
    }
}

#[test]
fn what_began_in_the_future_is_over_too() {
    let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
    let age = Duration::from_secs(600);
    for (began, expected) in [(0, false), (600, false), (601, true), (-1, true)] {
        assert_eq!(is_over(now - TimeDelta::seconds(began), now, age), expected, "{began}");
    }
}
