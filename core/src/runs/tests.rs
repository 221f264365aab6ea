//! Tests of the pure half.

use serde_json::json;

use super::lifecycle::RunStatus;
use super::rules::end_without_report;
use super::{
    ApprovalFacts, EndReason, PlanUnreadable, approval_digest, has_changes, read_changes, steps_of, summarise,
};
use crate::digest::Sha256Digest;

fn plan(changes: serde_json::Value) -> Vec<u8> {
    let mut plan = json!({"format_version": "1.2", "errored": false, "complete": true});
    plan.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::to_vec(&plan).unwrap()
}

fn one(actions: &[&str]) -> serde_json::Value {
    json!({"resource_changes": [{"address": "a.b", "mode": "managed", "change": {"actions": actions}}]})
}

#[test]
fn every_status_reaches_an_end_and_ends_lead_nowhere() {
    for status in RunStatus::ALL {
        assert_eq!(RunStatus::parse(status.as_str()), Some(status));
        assert!(status.is_terminal() || status.may_become(RunStatus::Failed), "{status} cannot fail");
    }
    assert!(RunStatus::Applied.is_terminal());
}

#[test]
fn applying_is_reached_only_through_approval_and_never_cancelled() {
    assert_eq!(RunStatus::Applying.sources(), ["awaiting_approval"]);
    assert!(!RunStatus::Cancelled.sources().contains(&"applying"));
    assert!(!RunStatus::Planned.may_become(RunStatus::Applying));
}

#[test]
fn positions_are_the_same_for_every_command() {
    let all = steps_of(true);
    assert!(all.iter().map(|step| step.0).eq(1..=10));
    assert_eq!(steps_of(false), all[..6]);
}

#[test]
fn each_action_is_counted_where_it_belongs() {
    let cases: [(&[&str], [u32; 6]); 7] = [
        (&["create"], [1, 0, 0, 0, 0, 0]),
        (&["update"], [0, 1, 0, 0, 0, 0]),
        (&["delete"], [0, 0, 1, 0, 0, 0]),
        (&["delete", "create"], [1, 0, 1, 1, 0, 0]),
        (&["create", "delete"], [1, 0, 1, 1, 0, 0]),
        (&["forget"], [0, 0, 0, 0, 1, 0]),
        (&["levitate"], [0, 0, 0, 0, 0, 1]),
    ];
    for (actions, [add, change, destroy, replace, forget, unknown]) in cases {
        let got = summarise(&plan(one(actions))).unwrap();
        let counts = [got.add, got.change, got.destroy, got.replace, got.forget, got.unknown];
        assert_eq!(counts, [add, change, destroy, replace, forget, unknown], "{actions:?}");
        assert!(has_changes(Some(&got)), "{actions:?}");
    }
}

#[test]
fn only_a_readable_plan_without_any_kind_of_change_has_no_changes() {
    let empty = json!({"resource_changes": [
        {"address": "a.b", "mode": "managed", "change": {"actions": ["no-op"]}},
        {"address": "data.c.d", "mode": "data", "change": {"actions": ["read"]}},
    ]});
    assert!(!has_changes(Some(&summarise(&plan(empty)).unwrap())));

    let changing = [
        json!({"output_changes": {"o": {"actions": ["update"]}}}),
        json!({"deferred_changes": [{}]}),
        json!({"errored": true}),
        json!({"complete": false}),
        json!({"resource_changes": [{"address": "a.b", "change": {"actions": ["no-op"], "importing": {"id": "x"}}}]}),
        json!({"resource_changes": [{"address": "a.b", "previous_address": "a.c", "change": {"actions": ["no-op"]}}]}),
    ];
    for case in changing {
        assert!(has_changes(Some(&summarise(&plan(case.clone())).unwrap())), "{case}");
    }
    assert!(has_changes(None), "an unreadable plan is not empty");
}

#[test]
fn what_is_not_a_plan_is_refused_by_name() {
    for not_a_plan in [&b""[..], b"{}", b"\"\"", b"[]", b"null", b"{\"format_version\":1}", b"\xff\xfe{}"] {
        assert!(matches!(summarise(not_a_plan), Err(PlanUnreadable::NotAPlan(_))), "{not_a_plan:?}");
    }
    let future = serde_json::to_vec(&json!({"format_version": "2.0"})).unwrap();
    assert_eq!(summarise(&future), Err(PlanUnreadable::Format("2.0".into())));
}

#[test]
fn changes_are_listed_without_those_that_stay() {
    let listed = read_changes(&plan(json!({"resource_changes": [
        {"address": "a.stays", "change": {"actions": ["no-op"]}},
        {"address": "module.m.a.new", "module_address": "module.m", "change": {"actions": ["create"]}},
    ]})))
    .unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].module.as_deref(), Some("module.m"));
}

#[test]
fn any_changed_fact_changes_the_approval_digest() {
    let digest = |byte| Sha256Digest([byte; 32]);
    let facts = ApprovalFacts {
        plan_sha256: digest(1),
        plan_json_sha256: digest(2),
        gates_sha256: None,
        lock_file_sha256: Some(digest(3)),
        commit_sha: "c0ffee",
        tool: Some("terraform"),
        tool_version: "1.11.4",
        base: Some(("lineage", 4)),
    };
    let base = approval_digest(&facts);
    let others = [
        ApprovalFacts { plan_sha256: digest(9), ..facts.clone() },
        ApprovalFacts { plan_json_sha256: digest(9), ..facts.clone() },
        ApprovalFacts { gates_sha256: Some(digest(9)), ..facts.clone() },
        ApprovalFacts { lock_file_sha256: None, ..facts.clone() },
        ApprovalFacts { commit_sha: "c0ffe", ..facts.clone() },
        ApprovalFacts { tool: Some("tofu"), ..facts.clone() },
        ApprovalFacts { tool_version: "1.11.5", ..facts.clone() },
        ApprovalFacts { base: Some(("lineage", 5)), ..facts.clone() },
        ApprovalFacts { base: None, ..facts.clone() },
    ];
    for other in &others {
        assert_ne!(approval_digest(other), base, "{other:?}");
    }
}

#[test]
fn a_run_without_a_report_is_lost_unless_its_end_was_asked_for_in_time() {
    use RunStatus::{Applying, Cancelled, Failed, Planning};
    for begun_and_asked in [false, true] {
        assert_eq!(end_without_report(Applying, true, begun_and_asked), (Failed, EndReason::Lost));
    }
    assert_eq!(end_without_report(Planning, false, false), (Failed, EndReason::Lost));
    assert_eq!(end_without_report(Planning, false, true), (Cancelled, EndReason::Cancelled));
    assert_eq!(end_without_report(Applying, false, true), (Failed, EndReason::Cancelled));
}
