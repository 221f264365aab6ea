//! The merged view: what wins, where it comes from, and what it wins over.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::{SECRET, text};
use crate::world::World;

fn items(view: &Value) -> Vec<(&str, &Value, &Value)> {
    let items = view["items"].as_array().unwrap();
    items.iter().map(|one| (text(&one["key"]), &one["value"], &one["source"]["scope"])).collect()
}

#[tokio::test]
async fn each_value_names_its_source_and_whom_it_wins_over() {
    let world = World::new().await;
    let low = world.variable_set(json!({"name": "low", "all_workspaces": true})).await;
    let high = world.variable_set(json!({"name": "high", "priority": 5})).await;
    let tied = world.variable_set(json!({"name": "tied", "priority": 5})).await;
    let detached = world.variable_set(json!({"name": "detached", "priority": 1000})).await;
    for set in [&high, &tied] {
        let path = format!("variable-sets/{set}/workspaces/{}", world.workspace);
        assert_eq!(world.api("PUT", &path, None).await.0, StatusCode::NO_CONTENT);
    }
    let in_set = |set: &str| format!("variable-sets/{set}/variables");
    for (place, keys) in [
        ("variables".to_owned(), vec!["all", "unit"]),
        (in_set(&low), vec!["all", "low"]),
        (in_set(&high), vec!["all", "high", "tie"]),
        (in_set(&tied), vec!["tie"]),
        (in_set(&detached), vec!["all", "tie", "never"]),
        (world.own(), vec!["all"]),
    ] {
        for key in keys {
            world.set(&place, json!({"key": key, "value": place})).await;
        }
    }
    let view = world.effective().await;
    let keys: Vec<&str> = items(&view).iter().map(|one| one.0).collect();
    assert_eq!(keys, ["all", "high", "low", "tie", "unit"], "{view}");
    let all = &view["items"][0];
    assert_eq!((&all["source"]["scope"], &all["value"]), (&json!("workspace"), &json!(world.own())));
    let overrides: Vec<(&str, &Value)> =
        all["overrides"].as_array().unwrap().iter().map(|one| (text(&one["scope"]), &one["name"])).collect();
    let expected =
        [("variable_set", &json!("high")), ("variable_set", &json!("low")), ("global", &json!(null))];
    assert_eq!(overrides, expected, "{all}");
    assert_eq!(view["items"][3]["source"]["name"], "tied", "of equal priorities the later name wins");
    assert_eq!((&view["fits"], &view["pinned"]), (&json!(true), &json!(null)));

    let another =
        json!({"name": "other", "environment": "dev", "repo_url": "https://git.example.com/other.git"});
    let (_, other) = world.post("workspaces", another).await;
    let (_, view) = world.get(&format!("workspaces/{}/variables/effective", text(&other["id"]))).await;
    let scopes: Vec<&Value> = items(&view).iter().map(|one| one.2).collect();
    let in_set = json!("variable_set");
    assert_eq!(scopes, [&in_set, &in_set, &json!("global")], "of the unit and of the set for all: {view}");
}

#[tokio::test]
async fn secrets_are_masked_whoever_looks_and_a_weaker_open_value_does_not_show_them() {
    let world = World::new().await;
    world.set("variables", json!({"key": "k", "value": "open"})).await;
    world.set(&world.own(), json!({"key": "k", "value": SECRET, "is_secret": true})).await;
    for token in [world.token.clone(), world.plane.user(Role::Viewer).await] {
        let (status, _, view) =
            world.api_as(&token, "GET", &format!("{}/effective", world.own()), None).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(items(&view), [("k", &json!(null), &json!("workspace"))]);
        assert_eq!(view["items"][0]["masked_tail"], "…91c4");
        assert!(!view.to_string().contains(SECRET));
    }
}

#[tokio::test]
async fn more_than_a_run_may_have_is_said_and_such_a_run_is_refused() {
    let world = World::new().await;
    let long = "x".repeat(64 << 10);
    for (place, count) in [("variables".to_owned(), 7), (world.own(), 2)] {
        for n in 0..count {
            let key = format!("{}_{n}", if place == "variables" { "unit" } else { "own" });
            world.set(&place, json!({"key": key, "value": long})).await;
        }
    }
    let view = world.effective().await;
    assert_eq!((&view["fits"], &view["items"][0]["value"]), (&json!(false), &json!(null)));
    assert!(view["total_bytes"].as_i64().unwrap() > 512 << 10, "{}", view["total_bytes"]);
    let run = json!({"workspace_id": world.workspace, "command": "plan"});
    let (status, problem) = world.post("runs", run.clone()).await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("variables")),
        "{problem}"
    );
    // What a run of its own makes shorter fits.
    let mut shorter = run;
    shorter["variables"] = json!([{"key": "unit_0", "value": ""}, {"key": "unit_1", "value": ""}]);
    let (status, problem) = world.post("runs", shorter).await;
    assert_eq!(status, StatusCode::CREATED, "{problem}");
}

#[tokio::test]
async fn a_value_that_cannot_be_opened_is_named_in_the_view() {
    let world = World::new().await;
    world.set("variables", json!({"key": "k", "value": "v"})).await;
    let conn = world.plane.db().conn().await.unwrap();
    conn.execute("UPDATE variables SET value_sealed = 'other' || value_sealed", &[]).await.unwrap();
    drop(conn);
    let view = world.effective().await;
    assert_eq!((&view["items"][0]["is_readable"], &view["items"][0]["value"]), (&json!(false), &json!(null)));
}
