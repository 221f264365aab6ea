//! Who may do what to variables, in which unit, and two at once.

use http::StatusCode;
use plumbline_core::access::Role;
use serde_json::json;

use super::{SECRET, text};
use crate::plane::{Answer, slug};
use crate::world::World;

#[tokio::test]
async fn viewers_read_operators_write_workspaces_and_admins_write_the_unit_and_sets() {
    let world = World::new().await;
    let set = world.variable_set(json!({"name": "shared"})).await;
    let secret = json!({"key": "password", "value": SECRET, "is_secret": true});
    let in_set = format!("variable-sets/{set}/variables");
    let (viewer, operator) = (world.plane.user(Role::Viewer).await, world.plane.user(Role::Operator).await);
    for (place, least) in
        [("variables", Role::Admin), (in_set.as_str(), Role::Admin), (world.own().as_str(), Role::Operator)]
    {
        let made = world.set(place, secret.clone()).await;
        let one = format!("{place}/{}", text(&made["id"]));
        for (token, role) in [(&viewer, Role::Viewer), (&operator, Role::Operator)] {
            let (status, _, shown) = world.api_as(token, "GET", place, None).await;
            assert_eq!(status, StatusCode::OK, "{shown}");
            assert_eq!(
                (&shown["items"][0]["value"], shown.to_string().contains(SECRET)),
                (&json!(null), false)
            );
            let may = role >= least;
            let expected = |done: StatusCode| if may { done } else { StatusCode::FORBIDDEN };
            let new = json!({"key": format!("by_{}", role.as_str()), "value": "v"});
            let answer = world.api_as(token, "POST", place, new).await;
            assert_eq!(answer.0, expected(StatusCode::CREATED), "{place}: {}", answer.2);
            let answer = world.api_as(token, "PATCH", &one, json!({"description": "d"})).await;
            assert_eq!(answer.0, expected(StatusCode::OK), "{place}: {}", answer.2);
            let answer = world.api_as(token, "DELETE", &one, None).await;
            assert_eq!(answer.0, expected(StatusCode::NO_CONTENT), "{place}: {}", answer.2);
        }
    }
    for (method, path, body) in [
        ("POST", "variable-sets".to_owned(), Some(json!({"name": "x"}))),
        ("PATCH", format!("variable-sets/{set}"), Some(json!({"priority": 1}))),
        ("PUT", format!("variable-sets/{set}/workspaces/{}", world.workspace), None),
        ("DELETE", format!("variable-sets/{set}/workspaces/{}", world.workspace), None),
        ("DELETE", format!("variable-sets/{set}"), None),
    ] {
        let answer = world.api_as(&operator, method, &path, body).await;
        assert_eq!(answer.0, StatusCode::FORBIDDEN, "{method} {path}: {}", answer.2);
    }
}

#[tokio::test]
async fn of_many_writers_of_one_key_one_makes_it_and_of_many_edits_of_one_version_one_counts() {
    let world = World::new().await;
    for place in ["variables".to_owned(), world.own()] {
        let writers = (0..8).map(|n| world.api("POST", &place, json!({"key": "k", "value": n.to_string()})));
        let answers = futures::future::join_all(writers).await;
        let made: Vec<&Answer> = answers.iter().filter(|answer| answer.0 == StatusCode::CREATED).collect();
        assert_eq!(made.len(), 1);
        let refused = answers.iter().filter(|answer| slug(&answer.2) == "variable-exists").count();
        assert_eq!(refused, answers.len() - 1);

        let path = format!("/api/v1/{place}/{}", text(&made[0].2["id"]));
        let edits = (0..8).map(|n| {
            let change = json!({"value": format!("edit {n}")});
            let (path, plane, token) = (path.as_str(), &world.plane, world.token.as_str());
            async move { plane.call_with("PATCH", path, token, change, &[("if-match", "\"v1\"")]).await }
        });
        let answers = futures::future::join_all(edits).await;
        let won: Vec<&Answer> = answers.iter().filter(|answer| answer.0 == StatusCode::OK).collect();
        assert_eq!(won.len(), 1);
        let late = answers.iter().filter(|answer| slug(&answer.2) == "changed-meanwhile").count();
        assert_eq!(late, answers.len() - 1);
        let (_, _, shown) = world.plane.call("GET", &path, world.token.as_str(), None).await;
        assert_eq!(&shown, &won[0].2);
        let without = world.plane.call("PATCH", &path, world.token.as_str(), json!({"value": "x"})).await;
        assert_eq!(without.0, StatusCode::PRECONDITION_REQUIRED);
    }
}

#[tokio::test]
async fn a_superadmin_looks_at_every_unit_and_writes_in_one() {
    let world = World::new().await;
    let made = world.set("variables", json!({"key": "k", "value": "v"})).await;
    let blue = world.plane.unit("blue").await;
    let theirs = world.plane.member(blue, Role::Admin).await;
    let (status, ..) = world.api_as(&theirs, "POST", "variables", json!({"key": "k", "value": "w"})).await;
    assert_eq!(status, StatusCode::CREATED, "the same key in two units");
    let superadmin = world.plane.admin_token().await;
    let (_, _, all) = world.api_as(&superadmin, "GET", "variables", None).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 2, "{all}");
    let one = format!("variables/{}", text(&made["id"]));
    let (status, _, shown) = world.api_as(&superadmin, "PATCH", &one, json!({"value": "x"})).await;
    assert_eq!((status, &shown["value"]), (StatusCode::OK, &json!("x")), "{shown}");
    let new = json!({"key": "l", "value": "v"});
    let (status, _, problem) = world.api_as(&superadmin, "POST", "variables", new).await;
    assert_eq!((status, slug(&problem)), (StatusCode::BAD_REQUEST, "unit-required"));
}

#[tokio::test]
async fn another_units_workspaces_and_sets_are_not_there_for_variables() {
    let world = World::new().await;
    let blue = world.plane.unit("blue").await;
    let theirs = world.plane.member(blue, Role::Admin).await;
    let set = world.variable_set(json!({"name": "ours"})).await;
    let (_, _, their_set) = world.api_as(&theirs, "POST", "variable-sets", json!({"name": "theirs"})).await;
    let new = json!({"key": "k", "value": "v"});
    for (token, place) in [
        (&theirs, world.own()),
        (&theirs, format!("variable-sets/{set}/variables")),
        (&world.token, format!("variable-sets/{}/variables", text(&their_set["id"]))),
    ] {
        assert_eq!(
            world.api_as(token, "POST", &place, new.clone()).await.0,
            StatusCode::NOT_FOUND,
            "{place}"
        );
        assert_eq!(world.api_as(token, "GET", &place, None).await.0, StatusCode::NOT_FOUND, "{place}");
    }
    let across = format!("variable-sets/{}/workspaces/{}", text(&their_set["id"]), world.workspace);
    for token in [&theirs, &world.token, &world.plane.admin_token().await] {
        let answer = world.api_as(token, "PUT", &across, None).await;
        assert_eq!(answer.0, StatusCode::NOT_FOUND, "{}", answer.2);
    }
    // Nor is a variable under another owner's path.
    let made = world.set("variables", new).await;
    for place in [world.own(), format!("variable-sets/{set}/variables")] {
        let one = format!("{place}/{}", text(&made["id"]));
        for (method, body) in [("GET", None), ("PATCH", Some(json!({"value": "x"}))), ("DELETE", None)] {
            assert_eq!(world.api(method, &one, body).await.0, StatusCode::NOT_FOUND, "{method} {one}");
        }
    }
}
