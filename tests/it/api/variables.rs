//! Variables of units, sets and workspaces: who may write them, what is refused, what is never shown.

mod effective;
mod runs;
mod sets;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use crate::plane::{Answer, TestPlane, slug};
use crate::world::World;

/// A secret that is nowhere else.
pub(super) const SECRET: &str = "planted-secret-7f3a91c4";

impl World {
    /// A call as the admin, relative to `/api/v1`, with `If-Match: *`.
    async fn api(&self, method: &str, path: &str, body: impl Into<Option<Value>>) -> Answer {
        self.api_as(&self.token, method, path, body).await
    }

    async fn api_as(&self, token: &str, method: &str, path: &str, body: impl Into<Option<Value>>) -> Answer {
        let path = format!("/api/v1/{path}");
        self.plane.call_with(method, &path, token, body, &[("if-match", "*")]).await
    }

    /// A new variable, which must be made: what the API says of it.
    async fn set(&self, place: &str, body: Value) -> Value {
        let (status, _, made) = self.api("POST", place, body).await;
        assert_eq!(status, StatusCode::CREATED, "{place}: {made}");
        made
    }

    /// Where the workspace's own variables are.
    fn own(&self) -> String {
        format!("workspaces/{}/variables", self.workspace)
    }

    /// A new variable set: its id.
    async fn variable_set(&self, body: Value) -> String {
        let made = self.set("variable-sets", body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// The merged view of the workspace.
    async fn effective(&self) -> Value {
        let (status, view) = self.get(&format!("{}/effective", self.own())).await;
        assert_eq!(status, StatusCode::OK, "{view}");
        view
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test]
async fn a_variable_is_made_shown_edited_and_removed_in_each_place() {
    let world = World::new().await;
    let set = world.variable_set(json!({"name": "shared"})).await;
    for (place, scope) in [
        ("variables".to_owned(), "global"),
        (world.own(), "workspace"),
        (format!("variable-sets/{set}/variables"), "variable_set"),
    ] {
        let new = json!({"key": "region", "value": "eu-west-1", "description": "where"});
        let (status, headers, made) = world.api("POST", &place, new.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        assert_eq!((&made["scope"], &made["value"]), (&json!(scope), &json!("eu-west-1")), "{made}");
        let one = format!("{place}/{}", text(&made["id"]));
        assert_eq!(headers["location"], format!("/api/v1/{one}"));

        let (status, headers, shown) = world.api("GET", &one, None).await;
        assert_eq!((status, &shown), (StatusCode::OK, &made));
        assert_eq!(headers["etag"], "\"v1\"");
        let (_, _, list) = world.api("GET", &place, None).await;
        assert_eq!(list["items"], json!([made]));

        let again = world.api("POST", &place, new).await;
        assert_eq!((again.0, slug(&again.2)), (StatusCode::CONFLICT, "variable-exists"));

        let change = json!({"value": "us-east-1", "description": ""});
        let (status, headers, changed) = world.api("PATCH", &one, change).await;
        assert_eq!(status, StatusCode::OK, "{changed}");
        assert_eq!((&changed["value"], &changed["description"]), (&json!("us-east-1"), &json!(null)));
        assert_eq!((&changed["version"], &changed["key"]), (&json!(2), &json!("region")));
        assert_eq!(headers["etag"], "\"v2\"");

        assert_eq!(world.api("DELETE", &one, None).await.0, StatusCode::NO_CONTENT);
        assert_eq!(world.api("GET", &one, None).await.0, StatusCode::NOT_FOUND);
        assert_eq!(world.api("DELETE", &one, None).await.0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn keys_and_values_that_cannot_be_are_refused_and_name_the_field() {
    let world = World::new().await;
    let long = "x".repeat((64 << 10) + 1);
    for (new, field) in [
        (json!({"key": "a-b", "value": "v"}), "key"),
        (json!({"key": "9a", "value": "v"}), "key"),
        (json!({"key": "", "value": "v"}), "key"),
        (json!({"key": "ü", "value": "v"}), "key"),
        (json!({"key": "k".repeat(256), "value": "v"}), "key"),
        (json!({"key": "a\u{0}", "value": "v"}), "key"),
        (json!({"key": "a", "value": "nul \u{0}"}), "value"),
        (json!({"key": "a", "value": long}), "value"),
        (json!({"key": "a", "value": "decomposed e\u{301}"}), "value"),
        (json!({"key": "a", "value": 1}), "value"),
        (json!({"key": "a", "value": null}), "value"),
        (json!({"key": "a", "value": "1)\nother = (2", "is_hcl": true}), "value"),
        (json!({"key": "a", "value": "[\"${path.module}\"]", "is_hcl": true}), "value"),
        (json!({"key": "a", "value": "", "is_hcl": true}), "value"),
        (json!({"key": "a", "value": "v", "description": "d".repeat(2001)}), "description"),
    ] {
        for place in ["variables".to_owned(), world.own()] {
            let (status, _, problem) = world.api("POST", &place, new.clone()).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
            assert_eq!(problem["field"], field, "{problem}");
        }
        let run = json!({"workspace_id": world.workspace, "command": "plan", "variables": [new]});
        let (status, problem) = world.post("runs", run).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    }
    let (_, _, list) = world.api("GET", "variables", None).await;
    assert_eq!(list["items"], json!([]));
}

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
async fn a_secret_is_replaced_or_deleted_but_never_shown_or_turned_into_something_shown() {
    let world = World::new().await;
    let made = world.set("variables", json!({"key": "k", "value": SECRET, "is_secret": true})).await;
    assert_eq!((&made["value"], &made["masked_tail"]), (&json!(null), &json!("…91c4")));
    let one = format!("variables/{}", text(&made["id"]));

    for change in [
        json!({"is_secret": false}),
        json!({"is_secret": false, "value": null}),
        json!({"is_secret": false, "is_hcl": true, "description": "d"}),
        // Terraform would quote it in an error.
        json!({"is_hcl": true}),
    ] {
        let (status, _, problem) = world.api("PATCH", &one, change.clone()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{change}: {problem}");
    }
    let (status, _, problem) = world.api("PATCH", &one, json!({"key": "other"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "the key stays: {problem}");
    let (_, _, shown) = world.api("GET", &one, None).await;
    assert_eq!(
        (&shown["is_secret"], &shown["value"], &shown["version"]),
        (&json!(true), &json!(null), &json!(1))
    );

    let (_, _, renamed) = world.api("PATCH", &one, json!({"description": "kept"})).await;
    assert_eq!(renamed["masked_tail"], "…91c4", "an absent value keeps what is there");
    let (_, _, short) = world.api("PATCH", &one, json!({"value": "elevenchars"})).await;
    assert_eq!((&short["value"], &short["masked_tail"]), (&json!(null), &json!(null)));
    let (_, _, open) = world.api("PATCH", &one, json!({"value": "for all", "is_secret": false})).await;
    assert_eq!((&open["value"], &open["is_secret"]), (&json!("for all"), &json!(false)));
    let (_, _, closed) = world.api("PATCH", &one, json!({"is_secret": true})).await;
    assert_eq!(closed["value"], json!(null));
}

#[tokio::test]
async fn no_value_is_in_the_database_in_clear_not_even_in_what_a_repetition_is_told() {
    let world = World::new().await;
    let open = "planted-value-55d0c2";
    for (n, place) in ["variables".to_owned(), world.own()].iter().enumerate() {
        for (key, value, is_secret) in [("secret", SECRET, true), ("open", open, false)] {
            let new = json!({"key": key, "value": value, "is_secret": is_secret});
            let headers = [("idempotency-key", format!("{key}{n}"))];
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let path = format!("/api/v1/{place}");
            let send = || world.plane.call_with("POST", &path, world.token.as_str(), new.clone(), &headers);
            let first = send().await;
            assert_eq!(first.0, StatusCode::CREATED, "{}", first.2);
            let again = send().await;
            assert_eq!((again.0, &again.2["id"]), (StatusCode::CREATED, &first.2["id"]));
            assert_eq!(again.2["value"], json!(null));
        }
    }
    let body = json!({"workspace_id": world.workspace, "command": "plan",
                      "variables": [{"key": "third", "value": SECRET, "is_secret": true}]});
    assert_eq!(world.post("runs", body).await.0, StatusCode::CREATED);
    let executor = crate::executors::FakeExecutor::start(&world.plane).await;
    assert_eq!(executor.bundle.variables.len(), 3);
    let rows = world.plane.every_row().await;
    assert!(rows["variables"].contains("open"), "the rows are there");
    let dump = rows.into_values().collect::<String>();
    for planted in [SECRET, open] {
        assert!(!dump.contains(planted), "in clear");
        assert!(!dump.contains(&hex::encode(planted)), "in hex");
        assert!(!dump.contains(&base64_of(planted)), "in base64");
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD_NO_PAD.encode(text)
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
async fn a_place_has_room_for_200_variables_and_512_kib_and_an_edit_keeps_to_it() {
    let world = World::new().await;
    let own = world.own();
    let conn = world.plane.db().conn().await.unwrap();
    let workspace: uuid::Uuid = world.workspace.parse().unwrap();
    const FILL: &str = "
        INSERT INTO variables (id, business_unit_id, workspace_id, key, value_sealed, value_bytes, is_secret, is_hcl)
        SELECT gen_random_uuid(), w.business_unit_id, w.id, 'k' || n, '', 1, false, false
        FROM workspaces w, generate_series(1, 199) n WHERE w.id = $1";
    conn.execute(FILL, &[&workspace]).await.unwrap();
    let last = world.set(&own, json!({"key": "last", "value": "v"})).await;
    let (status, _, problem) = world.api("POST", &own, json!({"key": "one_more", "value": "v"})).await;
    assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("key")), "{problem}");
    conn.execute("DELETE FROM variables WHERE key LIKE 'k%'", &[]).await.unwrap();
    drop(conn);

    // Together with their keys.
    let long = "x".repeat(64 << 10);
    for n in 0..7 {
        world.set(&own, json!({"key": format!("long_{n}"), "value": long})).await;
    }
    let one = format!("{own}/{}", text(&last["id"]));
    let (status, _, problem) = world.api("PATCH", &one, json!({"value": long})).await;
    assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("value")), "{problem}");
    assert!(text(&problem["detail"]).contains("524288"), "{problem}");
    let (status, _, problem) = world.api("PATCH", &one, json!({"value": &long[..60_000]})).await;
    assert_eq!(status, StatusCode::OK, "{problem}");
    // A shorter value is always possible.
    assert_eq!(world.api("PATCH", &one, json!({"value": ""})).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_value_that_cannot_be_opened_is_shown_as_such_and_can_be_set_anew() {
    let world = World::new().await;
    let made = world.set("variables", json!({"key": "k", "value": "one"})).await;
    let other = world.set("variables", json!({"key": "other", "value": "two"})).await;
    let conn = world.plane.db().conn().await.unwrap();
    // What is sealed for one row is nothing in another.
    const MOVE: &str = "
        UPDATE variables SET value_sealed = (SELECT value_sealed FROM variables WHERE key = 'other') WHERE key = 'k'";
    conn.execute(MOVE, &[]).await.unwrap();
    drop(conn);
    let one = format!("variables/{}", text(&made["id"]));
    let (status, _, shown) = world.api("GET", &one, None).await;
    assert_eq!(status, StatusCode::OK, "{shown}");
    assert_eq!((&shown["is_readable"], &shown["value"]), (&json!(false), &json!(null)));
    let (status, _, problem) = world.api("PATCH", &one, json!({"is_hcl": true})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    let (_, _, list) = world.api("GET", "variables", None).await;
    assert_eq!(list["items"][0], other, "the others are as they were");
    let (_, _, anew) = world.api("PATCH", &one, json!({"value": "three"})).await;
    assert_eq!((&anew["is_readable"], &anew["value"]), (&json!(true), &json!("three")));
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

#[tokio::test]
async fn what_is_done_to_variables_is_recorded_without_their_values() {
    let world = World::new().await;
    let made = world.set(&world.own(), json!({"key": "k", "value": SECRET, "is_secret": true})).await;
    let one = format!("{}/{}", world.own(), text(&made["id"]));
    world.api("PATCH", &one, json!({"value": format!("{SECRET}-2"), "description": "d"})).await;
    world.api("DELETE", &one, None).await;
    let path = format!("audit?workspace_id={}", world.workspace);
    let (_, log) = world.get(&path).await;
    let of = |action: &str| {
        let entries = log["items"].as_array().unwrap();
        entries
            .iter()
            .find(|entry| entry["action"] == action)
            .unwrap_or_else(|| panic!("{action}: {log}"))
            .clone()
    };
    assert_eq!(of("workspace_variable.create")["details"]["key"], "k");
    assert_eq!(of("workspace_variable.update")["details"]["changed"], json!(["value", "description"]));
    assert_eq!(of("workspace_variable.delete")["resource_id"], made["id"]);
    assert!(!log.to_string().contains(SECRET));
    planted_nowhere(&world.plane).await;
}

async fn planted_nowhere(plane: &TestPlane) {
    let rows = plane.every_row().await;
    assert!(!rows["audit_entries"].is_empty());
    assert!(!rows.into_values().collect::<String>().contains(SECRET));
}
