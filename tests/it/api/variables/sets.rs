//! Variable sets: their fields, their attachments, and what goes with them.

use http::StatusCode;
use serde_json::json;

use super::text;
use crate::plane::slug;
use crate::world::World;

#[tokio::test]
async fn a_set_is_made_edited_and_removed_with_its_variables() {
    let world = World::new().await;
    let made = world.set("variable-sets", json!({"name": "certificates", "description": "tls"})).await;
    assert_eq!((&made["priority"], &made["all_workspaces"]), (&json!(0), &json!(false)), "{made}");
    let one = format!("variable-sets/{}", text(&made["id"]));
    let (_, _, list) = world.api("GET", "variable-sets", None).await;
    assert_eq!(list["items"], json!([made]));

    let twice = world.api("POST", "variable-sets", json!({"name": "certificates"})).await;
    assert_eq!((twice.0, slug(&twice.2)), (StatusCode::CONFLICT, "variable-set-exists"));
    world.variable_set(json!({"name": "other"})).await;
    let taken = world.api("PATCH", &one, json!({"name": "other"})).await;
    assert_eq!((taken.0, slug(&taken.2)), (StatusCode::CONFLICT, "variable-set-exists"));

    let (status, headers, changed) =
        world.api("PATCH", &one, json!({"priority": 9, "description": ""})).await;
    assert_eq!((status, &headers["etag"]), (StatusCode::OK, &"\"v2\"".parse().unwrap()), "{changed}");
    assert_eq!((&changed["priority"], &changed["description"]), (&json!(9), &json!(null)));
    let stale = world
        .plane
        .call_with(
            "PATCH",
            &format!("/api/v1/{one}"),
            world.token.as_str(),
            json!({"priority": 1}),
            &[("if-match", "\"v1\"")],
        )
        .await;
    assert_eq!((stale.0, slug(&stale.2)), (StatusCode::PRECONDITION_FAILED, "changed-meanwhile"));

    world.set(&format!("{one}/variables"), json!({"key": "k", "value": "v"})).await;
    assert_eq!(world.api("DELETE", &one, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.api("GET", &one, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.plane.every_row().await["variables"], "", "its variables went with it");
}

#[tokio::test]
async fn what_a_set_cannot_be_is_refused_and_names_the_field() {
    let world = World::new().await;
    let set = world.variable_set(json!({"name": "fine"})).await;
    for (wrong, field) in [
        (json!({"name": ""}), "name"),
        (json!({"name": " x"}), "name"),
        (json!({"name": "a\nb"}), "name"),
        (json!({"name": "n".repeat(256)}), "name"),
        (json!({"name": "x", "priority": -1}), "priority"),
        (json!({"name": "x", "priority": 1001}), "priority"),
        (json!({"name": "x", "priority": 3_000_000_000_i64}), "priority"),
        (json!({"name": "x", "description": "d".repeat(2001)}), "description"),
    ] {
        let (status, _, problem) = world.api("POST", "variable-sets", wrong.clone()).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!(field)),
            "{problem}"
        );
        let (status, _, problem) = world.api("PATCH", &format!("variable-sets/{set}"), wrong).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!(field)),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn attaching_twice_is_attaching_once_and_a_deleted_workspace_is_detached() {
    let world = World::new().await;
    let set = world.variable_set(json!({"name": "shared"})).await;
    let attached = format!("variable-sets/{set}/workspaces");
    let one = format!("{attached}/{}", world.workspace);
    assert_eq!(world.api("DELETE", &one, None).await.0, StatusCode::NOT_FOUND);
    for _ in 0..2 {
        assert_eq!(world.api("PUT", &one, None).await.0, StatusCode::NO_CONTENT);
    }
    let (_, _, list) = world.api("GET", &attached, None).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(
        (&list["items"][0]["workspace_id"], &list["items"][0]["workspace_name"]),
        (&json!(world.workspace), &json!("net"))
    );
    let (_, log) = world.get("audit?action=variable_set.attach").await;
    assert_eq!(log["items"].as_array().unwrap().len(), 1, "once in the log: {log}");
    assert_eq!(log["items"][0]["details"]["workspace_id"], json!(world.workspace));

    assert_eq!(world.api("DELETE", &one, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.api("PUT", &one, None).await.0, StatusCode::NO_CONTENT);
    world.set(&world.own(), json!({"key": "k", "value": "v"})).await;
    let gone = world.api("DELETE", &format!("workspaces/{}", world.workspace), None).await;
    assert_eq!(gone.0, StatusCode::NO_CONTENT, "{}", gone.2);
    let rows = world.plane.every_row().await;
    assert_eq!((rows["variable_set_workspaces"].as_str(), rows["variables"].as_str()), ("", ""));
}
