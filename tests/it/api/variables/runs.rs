//! What a run gets: merged when it first begins, the same ever after, never less than all.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::db::Query as _;
use plumbline_core::protocol::Variable;
use serde_json::{Value, json};

use super::{SECRET, text};
use crate::executors::{ADDS_ONE, FakeExecutor, NO_CHANGES, claim_and_prepare, nonce, trade};
use crate::world::World;

fn pairs(variables: &[Variable]) -> Vec<(&str, &str)> {
    variables.iter().map(|one| (one.key.as_str(), one.value.as_str())).collect()
}

/// What the API says of a run's variables.
async fn shown(world: &World, run: &str) -> Value {
    let (status, view) = world.get(&format!("runs/{run}/variables")).await;
    assert_eq!(status, StatusCode::OK, "{view}");
    view
}

#[tokio::test]
async fn a_run_is_pinned_when_it_first_begins_and_its_retry_and_apply_get_the_same() {
    let world = World::new().await;
    world.set("variables", json!({"key": "a", "value": "unit"})).await;
    let unit = world.set("variables", json!({"key": "b", "value": "unit"})).await;
    world.set(&world.own(), json!({"key": "b", "value": SECRET, "is_secret": true})).await;
    let body = json!({"workspace_id": world.workspace, "command": "apply",
                      "variables": [{"key": "c", "value": "[1]", "is_hcl": true}]});
    let (status, run) = world.post("runs", body).await;
    assert_eq!(status, StatusCode::CREATED, "{run}");
    let id = text(&run["id"]);
    let before = shown(&world, id).await;
    assert_eq!((&before["pinned"], &before["items"][0]["source"]["scope"]), (&json!(false), &json!("run")));

    // Whatever is there when the first attempt begins counts.
    world.set(&world.own(), json!({"key": "a", "value": "workspace"})).await;
    let first = FakeExecutor::start(&world.plane).await;
    let expected = [("a", "workspace"), ("b", SECRET), ("c", "[1]")];
    assert_eq!(pairs(&first.bundle.variables), expected);
    let flags: Vec<(bool, bool)> =
        first.bundle.variables.iter().map(|one| (one.is_secret, one.is_hcl)).collect();
    assert_eq!(flags, [(false, false), (true, false), (false, true)]);

    // From now on nothing that is done to them reaches this run.
    let one = format!("variables/{}", text(&unit["id"]));
    assert_eq!(world.api("DELETE", &one, None).await.0, StatusCode::NO_CONTENT);
    let conn = world.plane.db().conn().await.unwrap();
    conn.execute("DELETE FROM variables", &[]).await.unwrap();
    drop(conn);
    world.set("variables", json!({"key": "d", "value": "late"})).await;
    assert_eq!(first.fail("transient", "the machine went away").await.0, StatusCode::NO_CONTENT);
    world.plane.advance(Duration::from_secs(3600)).await;
    let second = FakeExecutor::start(&world.plane).await;
    assert_eq!((second.bundle.attempt, pairs(&second.bundle.variables).as_slice()), (2, expected.as_slice()));
    assert_eq!(second.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    let (status, answer) = world.post(&format!("approvals/{id}/approve"), json!({})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let apply = FakeExecutor::start(&world.plane).await;
    assert_eq!(pairs(&apply.bundle.variables), expected);

    let after = shown(&world, id).await;
    assert_eq!(after["pinned"], json!(true));
    let b = &after["items"][1];
    assert_eq!((&b["key"], &b["value"], &b["masked_tail"]), (&json!("b"), &json!(null), &json!("…91c4")));
    assert_eq!(
        (&b["source"]["scope"], &b["overrides"]),
        (&json!("workspace"), &json!([{"scope": "global"}]))
    );
    assert_eq!(after["items"][2]["is_hcl"], json!(true));
    assert!(!after.to_string().contains(SECRET) && !world.run(id).await.to_string().contains(SECRET));
}

#[tokio::test]
async fn a_promoted_run_keeps_its_own_variables_and_is_pinned_anew() {
    let world = World::new().await;
    world.set("variables", json!({"key": "a", "value": "then"})).await;
    let body = json!({"workspace_id": world.workspace, "command": "plan",
                      "variables": [{"key": "own", "value": SECRET, "is_secret": true}]});
    let (_, run) = world.post("runs", body).await;
    let plan = FakeExecutor::start(&world.plane).await;
    assert_eq!(pairs(&plan.bundle.variables), [("a", "then"), ("own", SECRET)]);
    assert_eq!(plan.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);

    world.set(&world.own(), json!({"key": "a", "value": "now"})).await;
    let (status, promoted) = world.post(&format!("runs/{}/promote", text(&run["id"])), json!({})).await;
    assert_eq!(status, StatusCode::CREATED, "{promoted}");
    let again = FakeExecutor::start(&world.plane).await;
    assert_eq!(pairs(&again.bundle.variables), [("a", "now"), ("own", SECRET)]);
    assert!(again.bundle.variables[1].is_secret);
    let first = shown(&world, text(&run["id"])).await;
    assert_eq!(first["items"][0]["value"], "then", "the plan-only run is what it was");
}

/// Begins a run whose stored values somebody has tampered with, and gives what the run then says.
async fn begun_after(world: &World, id: &str, tampering: &str) -> Value {
    let conn = world.plane.db().conn().await.unwrap();
    conn.batch(tampering).await.unwrap();
    drop(conn);
    let (_, launch) = claim_and_prepare(&world.plane).await.unwrap();
    let (status, problem) = trade(&world.plane, &launch.ticket, &nonce(1)).await;
    assert_eq!(status, StatusCode::GONE, "{problem}");
    assert!(FakeExecutor::try_start(&world.plane).await.is_none(), "it is not tried again");
    world.run(id).await
}

#[tokio::test]
async fn a_run_that_needs_a_value_that_cannot_be_opened_fails_and_says_which_and_whose() {
    for (place, whose) in
        [("variables", "the business unit"), ("own", "the workspace"), ("set", "the variable set s")]
    {
        let world = World::new().await;
        let set = world.variable_set(json!({"name": "s", "all_workspaces": true})).await;
        let place = match place {
            "own" => world.own(),
            "set" => format!("variable-sets/{set}/variables"),
            other => other.to_owned(),
        };
        world.set(&place, json!({"key": "db_password", "value": SECRET, "is_secret": true})).await;
        world.set(&place, json!({"key": "fine", "value": "v"})).await;
        let id = world.trigger("plan").await;
        let broken = "UPDATE variables SET value_sealed = 'other' || value_sealed WHERE key = 'db_password'";
        let run = begun_after(&world, &id, broken).await;
        assert_eq!(run["status"], "failed", "{run}");
        let error = text(&run["error"]);
        assert!(error.contains("the variable db_password") && error.contains(whose), "{error}");
        assert!(error.contains("sealed under another root key"), "{error}");
        let view = shown(&world, &id).await;
        assert_eq!((&view["pinned"], &view["items"]), (&json!(false), &json!([])));
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_opened_does_not_matter_where_another_wins_over_it() {
    let world = World::new().await;
    world.set("variables", json!({"key": "k", "value": "lost"})).await;
    let conn = world.plane.db().conn().await.unwrap();
    conn.execute("UPDATE variables SET value_sealed = ''", &[]).await.unwrap();
    drop(conn);
    world.set(&world.own(), json!({"key": "k", "value": "v"})).await;
    world.trigger("plan").await;
    assert_eq!(pairs(&FakeExecutor::start(&world.plane).await.bundle.variables), [("k", "v")]);
}

#[tokio::test]
async fn an_apply_whose_pinned_values_are_gone_damaged_or_fewer_fails_and_changes_nothing() {
    for (tampering, why) in [
        ("UPDATE runs SET pinned_variables_sealed = NULL", "missing"),
        ("UPDATE runs SET pinned_variables_sealed = variables_sealed", "belongs to another row"),
        (
            "UPDATE runs SET pinned_variables = pinned_variables || pinned_variables",
            "some of the variables are missing",
        ),
    ] {
        let world = World::new().await;
        let body = json!({"workspace_id": world.workspace, "command": "apply",
                          "variables": [{"key": "k", "value": SECRET, "is_secret": true}]});
        let (_, run) = world.post("runs", body).await;
        let id = text(&run["id"]);
        assert_eq!(FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
        assert_eq!(world.post(&format!("approvals/{id}/approve"), json!({})).await.0, StatusCode::OK);
        let run = begun_after(&world, id, tampering).await;
        assert_eq!(run["status"], "failed", "{run}");
        assert!(text(&run["error"]).contains(why), "{run}");
        let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
        assert_eq!(workspace["blocked"], json!(null), "nothing had begun: {workspace}");
        let view = shown(&world, id).await;
        assert_eq!(view["items"][0]["is_readable"], json!(false), "{view}");
    }
}

#[tokio::test]
async fn more_than_a_run_may_have_when_it_begins_fails_it_with_the_numbers() {
    let world = World::new().await;
    let id = world.trigger("plan").await;
    let long = "x".repeat(64 << 10);
    for n in 0..7 {
        world.set("variables", json!({"key": format!("unit_{n}"), "value": long})).await;
        if n < 2 {
            world.set(&world.own(), json!({"key": format!("own_{n}"), "value": long})).await;
        }
    }
    let run = begun_after(&world, &id, "SELECT 1").await;
    assert_eq!(run["status"], "failed", "{run}");
    assert!(text(&run["error"]).contains("at most 524288 bytes"), "{run}");
}

#[tokio::test]
async fn own_variables_that_cannot_be_opened_are_a_conflict_for_whoever_asks_for_them() {
    let world = World::new().await;
    let body = json!({"workspace_id": world.workspace, "command": "plan",
                      "variables": [{"key": "k", "value": SECRET, "is_secret": true}]});
    let (_, run) = world.post("runs", body).await;
    let id = text(&run["id"]);
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
    let conn = world.plane.db().conn().await.unwrap();
    conn.batch(
        "UPDATE runs SET variables_sealed = '', pinned_variables = NULL, pinned_variables_sealed = NULL",
    )
    .await
    .unwrap();
    drop(conn);
    for (status, problem) in [
        world.get(&format!("runs/{id}/variables")).await,
        world.post(&format!("runs/{id}/promote"), json!({})).await,
    ] {
        let slug = crate::plane::slug(&problem);
        assert_eq!((status, slug), (StatusCode::CONFLICT, "variables-unreadable"), "{problem}");
    }
}

#[tokio::test]
async fn which_secrets_an_attempt_was_handed_is_recorded_once() {
    let world = World::new().await;
    world.set("variables", json!({"key": "open", "value": "v"})).await;
    world.set(&world.own(), json!({"key": "password", "value": SECRET, "is_secret": true})).await;
    let id = world.trigger("plan").await;
    let (_, launch) = claim_and_prepare(&world.plane).await.unwrap();
    for _ in 0..2 {
        let (status, bundle) = trade(&world.plane, &launch.ticket, &nonce(1)).await;
        assert_eq!(status, StatusCode::OK, "{bundle}");
    }
    let (_, log) = world.get(&format!("audit?run_id={id}&action=run.secrets_use")).await;
    let entries = log["items"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "a repeated trade is the same trade: {log}");
    let details = json!({"phase": "plan", "attempt": 1, "variables": ["password"]});
    assert_eq!((&entries[0]["details"], &entries[0]["user_id"]), (&details, &json!(null)));
}
