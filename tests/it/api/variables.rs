//! Variables of units, sets and workspaces: who may write them, what is refused, what is never shown.

mod callers;
mod effective;
mod runs;
mod sets;

use http::StatusCode;
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
