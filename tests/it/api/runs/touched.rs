//! What an apply touches, told while it does, and what of it the state lacks afterwards.

use super::*;

fn touched(address: &str, id: Option<&str>) -> Value {
    json!({"address": address, "action": "create", "id": id})
}

async fn tell(executor: &FakeExecutor<'_>, resources: Value) -> (StatusCode, Value) {
    executor.call(Method::POST, "apply/touched", json!({"resources": resources})).await
}

async fn unrecorded(world: &World, run: &str) -> Value {
    let (status, answer) = world.get(&format!("runs/{run}/unrecorded-resources")).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

/// The executor stores a state with one resource.
async fn store_state(executor: &FakeExecutor<'_>) {
    let state = json!({
        "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "l", "outputs": {},
        "resources": [{"mode": "managed", "type": "x_y", "name": "kept", "provider": "p",
                       "instances": [{"index_key": "a", "attributes": {}}]}],
    });
    store(executor, state).await;
}

async fn store(executor: &FakeExecutor<'_>, state: Value) {
    let lock = json!({"ID": "l-1", "Operation": "OperationTypeApply", "Info": "", "Who": "w", "Version": "1.11.4",
                      "Created": "2026-01-01T00:00:00Z", "Path": ""});
    assert_eq!(executor.call(Method::POST, "state/lock", lock).await.0, StatusCode::OK);
    assert_eq!(executor.call(Method::POST, "state?ID=l-1", state).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_lost_apply_shows_what_it_made_and_the_state_lacks_with_import_commands() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    let begun =
        json!([touched("x_y.kept[\"a\"]", None), touched("x_y.made", None), touched("x_y.unknown", None)]);
    assert_eq!(tell(&executor, begun).await.0, StatusCode::NO_CONTENT);
    let done = json!([
        touched("x_y.kept[\"a\"]", Some("k-1")),
        touched("x_y.made", Some("it's")),
        {"address": "x_y.changed", "action": "update", "id": "c-1"},
    ]);
    for _ in 0..2 {
        assert_eq!(tell(&executor, done.clone()).await.0, StatusCode::NO_CONTENT, "its answer may be lost");
    }
    // An early report that was held up takes nothing away.
    assert_eq!(tell(&executor, json!([touched("x_y.made", None)])).await.0, StatusCode::NO_CONTENT);
    store_state(&executor).await;

    let listed = unrecorded(&world, &id).await;
    assert_eq!(
        listed,
        json!({
            "items": [
                {"address": "x_y.made", "resource_id": "it's", "import_command": r"terraform import 'x_y.made' 'it'\''s'"},
                {"address": "x_y.unknown", "resource_id": null, "import_command": null},
            ],
            "truncated": false,
            "is_state_readable": true,
        })
    );
    let viewer = world.plane.user(Role::Viewer).await;
    let path = format!("/api/v1/runs/{id}/unrecorded-resources");
    assert_eq!(world.plane.call("GET", &path, viewer.as_str(), None).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_apply_that_was_given_up_still_tells_what_it_touches() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    let conn = world.plane.db().conn().await.unwrap();
    conn.execute("UPDATE tasks SET lease_token = lease_token + 1", &[]).await.unwrap();
    drop(conn);
    assert_eq!(executor.heartbeat().await.0, StatusCode::CONFLICT, "its lease is lost");
    assert_eq!(tell(&executor, json!([touched("x_y.late", Some("i-1"))])).await.0, StatusCode::NO_CONTENT);
    assert_eq!(unrecorded(&world, &id).await["items"][0]["address"], "x_y.late");
}

#[tokio::test]
async fn a_state_that_cannot_be_read_hides_nothing() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    tell(&executor, json!([touched("x_y.made", Some("i-1"))])).await;
    // As OpenTofu encrypts it.
    let encrypted = json!({
        "serial": 1, "lineage": "l", "meta": {"key_provider.pbkdf2.k": "e30="}, "encrypted_data": "AAAA",
        "encryption_version": "v0",
    });
    store(&executor, encrypted).await;
    let listed = unrecorded(&world, &id).await;
    assert_eq!(listed["is_state_readable"], false);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn only_a_begun_apply_is_heard_and_only_reasonable_reports() {
    let world = World::new().await;
    let id = world.planned().await;
    world.post(&format!("approvals/{id}/approve"), json!({})).await;
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(tell(&executor, json!([touched("x_y.early", None)])).await.0, StatusCode::NO_CONTENT);
    assert_eq!(executor.begin_apply().await.0, StatusCode::NO_CONTENT);

    let many: Vec<Value> = (0..501).map(|n| touched(&format!("x_y.z[{n}]"), None)).collect();
    let long = "x".repeat(2001);
    for wrong in [
        json!(many),
        json!([touched("", None)]),
        json!([touched(&long, None)]),
        json!([touched("x_y.z", Some(&long))]),
        json!([touched("x\u{0}y", None)]),
    ] {
        let (status, problem) = tell(&executor, wrong).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
        assert!(problem["field"].as_str().unwrap().starts_with("resources"), "{problem}");
    }
    assert_eq!(unrecorded(&world, &id).await["items"], json!([]));

    let plan = world.trigger("plan").await;
    let planning = FakeExecutor::start(&world.plane).await;
    assert_eq!(tell(&planning, json!([touched("x_y.plan", None)])).await.0, StatusCode::NOT_FOUND);
    assert_eq!(unrecorded(&world, &plan).await["items"], json!([]));
}
