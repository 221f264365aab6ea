//! People: making, changing, removing them, and what they may do from then on.

mod credentials;
mod reach;
mod stale_reach;
mod superadmins;

use std::collections::BTreeSet;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::ids::BusinessUnitId;
use serde_json::{Value, json};

use crate::executors::{ADDS_ONE, FakeExecutor};
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane, slug};
use crate::world::World;

/// A plane with a superadmin and two units.
pub(super) struct People {
    pub(super) plane: TestPlane,
    /// The superadmin's token.
    pub(super) root: String,
    pub(super) blue: BusinessUnitId,
    pub(super) red: BusinessUnitId,
}

/// Somebody who is signed in.
pub(super) struct Person {
    pub(super) id: String,
    pub(super) email: String,
    pub(super) token: String,
}

impl People {
    pub(super) async fn new() -> Self {
        let plane = TestPlane::start().await;
        let root = plane.admin_token().await;
        let (blue, red) = (plane.unit("blue").await, plane.unit("red").await);
        Self { plane, root, blue, red }
    }

    /// A new person with these roles.
    pub(super) async fn person(&self, roles: &[(BusinessUnitId, Role)]) -> Person {
        let (id, email) = self.plane.insert_user().await;
        const JOIN: &str = "INSERT INTO memberships (user_id, business_unit_id, role) VALUES ($1, $2, $3)";
        let conn = self.plane.db().conn().await.unwrap();
        for (unit, role) in roles {
            conn.execute(JOIN, &[&id, unit, &role.as_str()]).await.unwrap();
        }
        drop(conn);
        let token = self.plane.login(&email).await;
        Person { id: id.to_string(), email, token }
    }

    /// A new superadmin.
    pub(super) async fn superadmin(&self) -> Person {
        let person = self.person(&[]).await;
        let body = json!({ "is_superadmin": true });
        let (status, after) = self.as_root("PATCH", &format!("users/{}", person.id), body).await;
        assert_eq!(status, StatusCode::OK, "{after}");
        person
    }

    pub(super) async fn call(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> (StatusCode, Value) {
        let (status, _, body) = self.plane.call(method, &format!("/api/v1/{path}"), token, body).await;
        (status, body)
    }

    pub(super) async fn as_root(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> (StatusCode, Value) {
        self.call(&self.root, method, path, body).await
    }

    /// Entries of one action about one person, newest first.
    pub(super) async fn entries(&self, action: &str, user: &str) -> Vec<Value> {
        let (status, log) = self.as_root("GET", &format!("audit?action={action}"), None).await;
        assert_eq!(status, StatusCode::OK, "{log}");
        let about = |entry: &&Value| entry["details"]["user_id"] == user;
        log["items"].as_array().unwrap().iter().filter(about).cloned().collect()
    }

    /// What this token may do: the status of `GET /me` in its first unit.
    pub(super) async fn stands(&self, token: &str) -> StatusCode {
        self.call(token, "GET", "me", None).await.0
    }
}

/// Who is on a page.
pub(super) fn emails(page: &Value) -> BTreeSet<String> {
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    items.iter().map(|user| user["email"].as_str().unwrap().to_owned()).collect()
}

fn slugs(user: &Value) -> Vec<(&str, &str)> {
    let roles = user["memberships"].as_array().unwrap().iter();
    roles.map(|one| (one["slug"].as_str().unwrap(), one["role"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn somebody_new_signs_in_with_the_roles_that_they_were_given() {
    let people = People::new().await;
    let body = json!({
        "email": " Ada@Plumbline.TEST", "display_name": "Ada", "password": "only for the first time",
        "memberships": [{ "business_unit_id": people.red, "role": "viewer" },
                        { "business_unit_id": people.blue, "role": "operator" }],
    });
    let (status, headers, made) = people.plane.call("POST", "/api/v1/users", &*people.root, body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!(headers["location"], format!("/api/v1/users/{}", made["id"].as_str().unwrap()).as_str());
    assert_eq!(made["email"], "ada@plumbline.test");
    assert_eq!((&made["must_change_password"], &made["has_password"]), (&json!(true), &json!(true)));
    assert_eq!(slugs(&made), [("blue", "operator"), ("red", "viewer")]);
    assert!(!made.to_string().contains("first time"), "no answer shows a password");
    let (_, read) = people.as_root("GET", &format!("users/{}", made["id"].as_str().unwrap()), None).await;
    assert_eq!(read, made);

    let id = made["id"].as_str().unwrap();
    let created = people.entries("user.create", id).await;
    assert_eq!(created.len(), 1);
    assert_eq!(created[0]["details"]["with_password"], true);
    assert!(!created[0].to_string().contains("first time"));
    let granted = people.entries("membership.grant", id).await;
    let units: BTreeSet<&str> = granted.iter().map(|one| one["business_unit_id"].as_str().unwrap()).collect();
    assert_eq!(units, [people.blue.to_string(), people.red.to_string()].iter().map(String::as_str).collect());
}

#[tokio::test]
async fn of_many_who_make_the_same_person_one_succeeds() {
    let people = People::new().await;
    let make = || people.as_root("POST", "users", json!({ "email": "Twin@plumbline.test" }));
    let answers = futures::future::join_all((0..6).map(|_| make())).await;
    let (made, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(status, _)| *status == StatusCode::CREATED);
    assert_eq!(made.len(), 1);
    for (status, problem) in refused {
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "user-exists"));
    }
    let (status, problem) = people.as_root("POST", "users", json!({ "email": ADMIN_EMAIL })).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "user-exists"));
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_by_field_and_nothing_is_made() {
    let people = People::new().await;
    let before = people.plane.every_row().await;
    let membership = json!({ "business_unit_id": people.blue, "role": "viewer" });
    for (body, field) in [
        (json!({ "email": "nobody" }), "email"),
        (json!({ "email": "a@b.c", "display_name": " " }), "display_name"),
        (json!({ "email": "a@b.c", "display_name": "x".repeat(256) }), "display_name"),
        (json!({ "email": "a@b.c", "password": "too short" }), "password"),
        (json!({ "email": "adalovelace@b.c", "password": "AdaLovelace@b.c" }), "password"),
        (json!({ "email": "a@b.c", "password": "passwordpassword" }), "password"),
        (json!({ "email": "a@b.c", "memberships": [membership, membership] }), "memberships"),
    ] {
        let (status, problem) = people.as_root("POST", "users", body.clone()).await;
        assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!(field)), "{body}");
    }
    for role in ["superadmin", "owner", ""] {
        let body = json!({ "email": "a@b.c",
                           "memberships": [{ "business_unit_id": people.blue, "role": role }] });
        let (status, problem) = people.as_root("POST", "users", body).await;
        assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"), "{role}");
    }
    let nowhere = json!({ "email": "a@b.c", "memberships": [
        { "business_unit_id": "01890000-0000-7000-8000-000000000000", "role": "viewer" }] });
    let (status, problem) = people.as_root("POST", "users", nowhere).await;
    assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"));
    assert_eq!(people.plane.every_row().await, before);
}

#[tokio::test]
async fn the_list_pages_by_cursor_and_finds_by_email_and_unit() {
    let people = People::new().await;
    let mut expected = BTreeSet::from([ADMIN_EMAIL.to_owned()]);
    for n in 0..7 {
        let unit = if n % 2 == 0 { people.blue } else { people.red };
        expected.insert(people.person(&[(unit, Role::Viewer)]).await.email);
    }
    let (mut seen, mut cursor, mut pages) = (BTreeSet::new(), String::new(), 0);
    loop {
        let (_, page) = people.as_root("GET", &format!("users?limit=3{cursor}"), None).await;
        let found = emails(&page);
        assert!(seen.is_disjoint(&found), "{page}");
        seen.extend(found);
        pages += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!((seen, pages), (expected, 3));
    let (_, found) = people.as_root("GET", "users?email=Admin@plumbline.test", None).await;
    assert_eq!(emails(&found), BTreeSet::from([ADMIN_EMAIL.to_owned()]));
    let (_, blue) = people.as_root("GET", &format!("users?business_unit_id={}", people.blue), None).await;
    assert_eq!(emails(&blue).len(), 4);
    let (_, none) = people.as_root("GET", "users?email=nobody@plumbline.test", None).await;
    assert_eq!(none["items"], json!([]));
}

#[tokio::test]
async fn a_change_of_memberships_counts_at_the_next_request() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let path = format!("users/{}", ada.id);
    let headers = [("x-business-unit", "red")];
    let in_red = async || people.plane.call_with("GET", "/api/v1/me", &*ada.token, None, &headers).await;
    assert_eq!(in_red().await.0, StatusCode::FORBIDDEN);

    let give = json!({ "add_memberships": [{ "business_unit_id": people.red, "role": "operator" }] });
    let (status, after) = people.as_root("PATCH", &path, give).await;
    assert_eq!((status, slugs(&after)), (StatusCode::OK, vec![("blue", "viewer"), ("red", "operator")]));
    assert_eq!(in_red().await.2["role"], "operator");

    // Another role takes the place of the one before; the rest stays as it is.
    let change = json!({ "add_memberships": [{ "business_unit_id": people.red, "role": "admin" }],
                         "remove_memberships": [people.blue], "display_name": "Ada" });
    let (_, after) = people.as_root("PATCH", &path, change).await;
    assert_eq!((slugs(&after), &after["display_name"]), (vec![("red", "admin")], &json!("Ada")));
    assert_eq!(in_red().await.2["role"], "admin");

    let take = json!({ "remove_memberships": [people.red, people.blue], "display_name": null });
    let (status, after) = people.as_root("PATCH", &path, take).await;
    assert_eq!((status, slugs(&after)), (StatusCode::OK, vec![]), "one that they do not have is no error");
    assert_eq!(after["display_name"], Value::Null);
    assert_eq!(in_red().await.0, StatusCode::FORBIDDEN, "the same token");
    assert_eq!(people.stands(&ada.token).await, StatusCode::FORBIDDEN);

    let roles = |entries: Vec<Value>| -> Vec<(Value, Value)> {
        let pair = |one: &Value| (one["details"]["role_before"].clone(), one["details"]["role"].clone());
        entries.iter().map(pair).collect()
    };
    let granted = roles(people.entries("membership.grant", &ada.id).await);
    assert_eq!(granted, [(json!("operator"), json!("admin")), (json!(null), json!("operator"))]);
    let revoked = roles(people.entries("membership.revoke", &ada.id).await);
    assert_eq!(revoked, [(json!("admin"), json!(null)), (json!("viewer"), json!(null))]);
}

#[tokio::test]
async fn one_unit_cannot_be_given_and_taken_in_one_request() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let body = json!({ "add_memberships": [{ "business_unit_id": people.blue, "role": "admin" }],
                       "remove_memberships": [people.blue] });
    let (status, problem) = people.as_root("PATCH", &format!("users/{}", ada.id), body).await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"));
}

#[tokio::test]
async fn a_disabled_persons_tokens_die_at_once_and_stay_dead() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Admin)]).await;
    let path = format!("users/{}", ada.id);
    let credentials = json!({ "email": ada.email, "password": PASSWORD });
    let (_, pair) = people.call("", "POST", "auth/token", credentials.clone()).await;
    for _ in 0..2 {
        let (status, after) = people.as_root("POST", &format!("{path}/disable"), None).await;
        assert_eq!(status, StatusCode::OK, "{after}");
        assert!(after["disabled_at"].is_string());
    }
    assert_eq!(people.stands(&ada.token).await, StatusCode::UNAUTHORIZED);
    let refresh = json!({ "refresh_token": pair["refresh_token"] });
    assert_eq!(people.call("", "POST", "auth/refresh", refresh.clone()).await.0, StatusCode::UNAUTHORIZED);
    let (status, problem) = people.call("", "POST", "auth/token", credentials.clone()).await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "wrong-credentials"));
    assert_eq!(people.entries("user.disable", &ada.id).await.len(), 1, "a repetition is no second action");

    let (_, after) = people.as_root("POST", &format!("{path}/enable"), None).await;
    assert_eq!(after["disabled_at"], Value::Null);
    assert_eq!(people.stands(&ada.token).await, StatusCode::UNAUTHORIZED, "what ended stays ended");
    assert_eq!(people.call("", "POST", "auth/refresh", refresh).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(people.call("", "POST", "auth/token", credentials).await.0, StatusCode::OK);
    assert_eq!(people.entries("user.enable", &ada.id).await.len(), 1);
}

#[tokio::test]
async fn what_a_removed_person_did_goes_on_and_keeps_their_id() {
    let world = World::new().await;
    let plane = &world.plane;
    let root = plane.admin_token().await;
    let own = plane.call("GET", "/api/v1/me", world.token.as_str(), None).await.2;
    let id = own["id"].as_str().unwrap();
    // They made a workspace, a run that waits for approval, and hold a lock of their own.
    let run = world.trigger("apply").await;
    assert_eq!(FakeExecutor::start(plane).await.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);

    let removed = plane.call("DELETE", &format!("/api/v1/users/{id}"), root.as_str(), None).await;
    assert_eq!(removed.0, StatusCode::NO_CONTENT, "{}", removed.2);
    assert_eq!(plane.call("GET", "/api/v1/me", world.token.as_str(), None).await.0, StatusCode::UNAUTHORIZED);
    let gone = plane.call("GET", &format!("/api/v1/users/{id}"), root.as_str(), None).await;
    assert_eq!(gone.0, StatusCode::NOT_FOUND);
    let again = plane.call("DELETE", &format!("/api/v1/users/{id}"), root.as_str(), None).await;
    assert_eq!(again.0, StatusCode::NOT_FOUND);

    let read = plane.call("GET", &format!("/api/v1/runs/{run}"), root.as_str(), None).await;
    assert_eq!((read.0, &read.2["triggered_by"]), (StatusCode::OK, &json!(id)));
    let approve = format!("/api/v1/approvals/{run}/approve");
    let approved = plane.call("POST", &approve, root.as_str(), json!({})).await;
    assert_eq!(approved.0, StatusCode::OK, "{}", approved.2);
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=run.trigger", root.as_str(), None).await;
    assert_eq!(log["items"][0]["user_id"], id, "{log}");
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=user.delete", root.as_str(), None).await;
    assert_eq!(log["items"][0]["details"]["email"], own["email"], "who that was");
    let (_, _, verified) = plane.call("GET", "/api/v1/audit/verify", root.as_str(), None).await;
    assert_eq!(verified["ok"], true, "{verified}");
    // Somebody else of that name is somebody else.
    let body = json!({ "email": own["email"], "password": "only for the first time" });
    let (status, _, anew) = plane.call("POST", "/api/v1/users", root.as_str(), body).await;
    assert_eq!(status, StatusCode::CREATED, "{anew}");
    assert!(anew["id"] != own["id"] && anew["memberships"] == json!([]));
}

#[tokio::test]
async fn no_answer_of_a_repeated_request_can_be_used_to_guess_the_password_in_it() {
    let people = People::new().await;
    let body = json!({ "email": "ada@plumbline.test", "password": "only for the first time" });
    let text = body.to_string();
    let headers = [("idempotency-key", "k")];
    let made = people.plane.call_with("POST", "/api/v1/users", &*people.root, body, &headers).await;
    assert_eq!(made.0, StatusCode::CREATED);
    const STORED: &str = "SELECT string_agg(idempotency_keys::text, '') FROM idempotency_keys";
    let stored: String = people.plane.db().conn().await.unwrap().query_one(STORED, &[]).await.unwrap().get(0);
    let plain = plumbline_core::digest::Sha256Digest::of(format!("POST /api/v1/users\n{text}").as_bytes());
    assert!(stored.len() > 100 && !stored.contains(&plain.to_string()), "a digest without a key");
}
