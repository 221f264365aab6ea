//! What groups give, and take.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::{World, ada};
use crate::plane::{ADMIN_EMAIL, TestPlane};

/// Ada in these groups.
fn ada_in(groups: Value) -> Value {
    let mut ada = ada();
    ada["groups"] = groups;
    ada
}

/// Unit and role, ordered by unit.
fn roles(me: &Value) -> Vec<(&str, &str)> {
    let all = me["memberships"].as_array().unwrap().iter();
    all.map(|one| (one["slug"].as_str().unwrap(), one["role"].as_str().unwrap())).collect()
}

async fn world() -> Option<World> {
    let world = World::start().await?;
    for slug in ["default", "payments", "shared"] {
        world.plane.unit(slug).await;
    }
    world
        .map(json!({
            "Platform Admins": "superadmin",
            "payments-devs": { "payments": "operator", "shared": "viewer" },
            "payments-leads": { "payments": "admin" },
            "readers": { "payments": "viewer", "not-there": "admin" },
        }))
        .await;
    let admin = world.plane.admin_token().await;
    let path = "/api/v1/runtime-config/auth.oidc.default_business_unit";
    let (status, ..) =
        world.plane.call_with("DELETE", path, admin.as_str(), None, &[("if-match", "*")]).await;
    assert!(status.is_success(), "{status}");
    world.idp.person(ada());
    Some(world)
}

#[tokio::test]
async fn the_highest_of_all_groups_counts_whatever_their_case_and_form() {
    let Some(world) = world().await else { return };
    for (groups, expected) in [
        (json!(["PAYMENTS-DEVS"]), vec![("payments", "operator"), ("shared", "viewer")]),
        (json!("Payments-Devs"), vec![("payments", "operator"), ("shared", "viewer")]),
        (
            json!(["readers", "payments-devs", "payments-leads"]),
            vec![("payments", "admin"), ("shared", "viewer")],
        ),
        (json!(["payments-leads", "readers"]), vec![("payments", "admin")]),
        (json!([" readers "]), vec![("payments", "viewer")]),
        (json!(["strangers"]), vec![]),
        (json!([]), vec![]),
        (json!({ "not": "groups" }), vec![]),
        (json!([7, null, ["readers"]]), vec![]),
    ] {
        world.idp.person(ada_in(groups.clone()));
        assert_eq!(roles(&world.who_signs_in().await), expected, "{groups}");
    }
}

#[tokio::test]
async fn those_in_no_mapped_group_have_the_default_if_there_is_one() {
    let Some(world) = world().await else { return };
    world.idp.person(ada_in(Value::Null));
    assert!(roles(&world.who_signs_in().await).is_empty(), "no unit was named");
    world.set("auth.oidc.default_business_unit", json!("default")).await;
    assert_eq!(roles(&world.who_signs_in().await), [("default", "viewer")]);
    world.set("auth.oidc.default_role", json!("operator")).await;
    assert_eq!(roles(&world.who_signs_in().await), [("default", "operator")]);
    world.idp.person(ada_in(json!(["readers"])));
    assert_eq!(roles(&world.who_signs_in().await), [("payments", "viewer")], "a group gives something else");
    world.set("auth.oidc.role_claim", json!("teams")).await;
    assert_eq!(roles(&world.who_signs_in().await), [("default", "operator")], "the claim is another one");
}

#[tokio::test]
async fn a_group_that_is_gone_takes_what_it_gave_at_once_and_nothing_else() {
    let Some(world) = world().await else { return };
    let (plane, admin) = (&world.plane, world.plane.admin_token().await);
    let payments = plane.unit("payments").await;
    world.idp.person(ada_in(json!(["payments-leads"])));
    let tokens = world.sign_in().await;
    let token = tokens["access_token"].as_str().unwrap();
    let id = world.me(token).await.2["id"].as_str().unwrap().to_owned();
    let keys = async || {
        let headers = [("x-business-unit", "payments")];
        plane.call_with("GET", "/api/v1/api-keys", token, None, &headers).await.0
    };
    assert_eq!(keys().await, StatusCode::OK, "an admin's right");
    // What a person gave stays a person's.
    let manual = json!({ "add_memberships": [{ "business_unit_id": plane.unit("shared").await, "role": "operator" }] });
    let path = format!("/api/v1/users/{id}");
    let (status, _, body) = plane.call("PATCH", &path, admin.as_str(), manual).await;
    assert_eq!(status, StatusCode::OK, "{body}");

    // The session goes on; what it may do is read anew at each request.
    world.idp.person(ada_in(json!(["payments-devs"])));
    assert_eq!(roles(&world.who_signs_in().await), [("payments", "operator"), ("shared", "operator")]);
    assert_eq!(keys().await, StatusCode::FORBIDDEN);
    world.idp.person(ada_in(json!([])));
    assert_eq!(roles(&world.who_signs_in().await), [("shared", "operator")]);
    assert_eq!(keys().await, StatusCode::FORBIDDEN);

    let of_ada = |entries: Vec<Value>| -> Vec<Value> {
        let about = entries.into_iter().filter(|entry| entry["resource_id"] == id.as_str());
        about
            .filter(|entry| entry["business_unit_id"] == json!(payments))
            .map(|entry| entry["details"].clone())
            .collect()
    };
    let granted = of_ada(world.entries("membership.grant").await);
    assert_eq!(granted.len(), 2, "{granted:?}");
    assert_eq!((&granted[0]["role"], &granted[0]["role_before"]), (&json!("operator"), &json!("admin")));
    let revoked = of_ada(world.entries("membership.revoke").await);
    assert_eq!((revoked.len(), &revoked[0]["source"]), (1, &json!("oidc")));
}

#[tokio::test]
async fn what_a_person_gives_again_is_a_persons_to_take() {
    let Some(world) = world().await else { return };
    let (plane, admin) = (&world.plane, world.plane.admin_token().await);
    world.idp.person(ada_in(json!(["readers"])));
    let id = world.who_signs_in().await["id"].as_str().unwrap().to_owned();
    // The same role, but from a person now.
    let again = json!({ "add_memberships": [{ "business_unit_id": plane.unit("payments").await, "role": "viewer" }] });
    let (status, _, user) = plane.call("PATCH", &format!("/api/v1/users/{id}"), admin.as_str(), again).await;
    assert_eq!(status, StatusCode::OK, "{user}");
    assert_eq!(user["memberships"][0]["source"], "manual");
    for groups in [json!(["payments-leads"]), json!([])] {
        world.idp.person(ada_in(groups));
        assert_eq!(roles(&world.who_signs_in().await), [("payments", "viewer")]);
    }
}

#[tokio::test]
async fn nobody_joins_an_archived_unit_by_a_group() {
    let Some(world) = world().await else { return };
    let admin = world.plane.admin_token().await;
    let shared = world.plane.unit("shared").await;
    let path = format!("/api/v1/business-units/{shared}/archive");
    let (status, _, body) = world.plane.call("POST", &path, admin.as_str(), None).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    world.idp.person(ada_in(json!(["payments-devs"])));
    world.who_signs_in().await;
    const COUNT: &str = "SELECT count(*) FROM memberships WHERE business_unit_id = $1 AND source = 'oidc'";
    let conn = world.plane.db().conn().await.unwrap();
    assert_eq!(conn.query_one(COUNT, &[&shared]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_group_makes_superadmins_and_unmakes_only_those_whom_it_made() {
    let Some(world) = world().await else { return };
    world.idp.person(ada_in(json!(["platform admins"])));
    let tokens = world.sign_in().await;
    let token = tokens["access_token"].as_str().unwrap();
    let users = async || world.plane.call("GET", "/api/v1/auth/jwt-secrets", token, None).await.0;
    assert_eq!(users().await, StatusCode::OK, "a superadmin's right");
    world.idp.person(ada_in(json!(["readers"])));
    assert_eq!(world.who_signs_in().await["is_superadmin"], false);
    assert_eq!(users().await, StatusCode::FORBIDDEN, "at once");
    let told = world.entries("user.update").await;
    assert_eq!(told[0]["details"]["is_superadmin"], false);

    // The first superadmin was made by nobody's group, and signs in through the provider, too.
    world.idp.person(json!({ "sub": "root", "email": ADMIN_EMAIL, "email_verified": true, "groups": [] }));
    assert_eq!(world.who_signs_in().await["is_superadmin"], true);
}

#[tokio::test]
async fn the_last_superadmin_with_a_password_stays_one_although_the_group_is_gone() {
    let Some(world) = world().await else { return };
    let plane = &world.plane;
    // Somebody with a password, who is superadmin by a group.
    let (id, email) = plane.insert_user().await;
    let person =
        |groups: Value| json!({ "sub": "b", "email": email, "email_verified": true, "groups": groups });
    world.idp.person(person(json!(["platform admins"])));
    let tokens = world.sign_in().await;
    assert_eq!(world.me(tokens["access_token"].as_str().unwrap()).await.2["is_superadmin"], true);
    let first = first_admin(plane).await;
    let token = tokens["access_token"].as_str().unwrap();
    let (status, ..) = plane.call("POST", &format!("/api/v1/users/{first}/disable"), token, None).await;
    assert_eq!(status, StatusCode::OK, "the other one is left");
    world.idp.person(person(json!([])));
    let again = world.sign_in().await;
    let me = world.me(again["access_token"].as_str().unwrap()).await.2;
    assert_eq!((&me["id"], &me["is_superadmin"]), (&json!(id), &json!(true)));
    // With another one there, the next sign-in takes it.
    let (status, ..) = plane.call("POST", &format!("/api/v1/users/{first}/enable"), token, None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(world.who_signs_in().await["is_superadmin"], false);
}

#[tokio::test]
async fn a_key_ends_with_the_place_that_a_group_gave_and_does_not_come_back_with_it() {
    let Some(world) = world().await else { return };
    let plane = &world.plane;
    world.idp.person(ada_in(json!(["payments-leads"])));
    let tokens = world.sign_in().await;
    let headers = [("x-business-unit", "payments")];
    let (path, token) = ("/api/v1/api-keys", tokens["access_token"].as_str().unwrap());
    let key = plane.call_with("POST", path, token, json!({ "name": "ada's" }), &headers).await.2;
    let key_token = key["token"].as_str().unwrap_or_else(|| panic!("{key}"));
    for (groups, status) in [
        (json!(["payments-leads"]), StatusCode::OK),
        (json!(["payments-devs"]), StatusCode::OK),
        (json!([]), StatusCode::UNAUTHORIZED),
        (json!(["payments-leads"]), StatusCode::UNAUTHORIZED),
    ] {
        world.idp.person(ada_in(groups.clone()));
        world.who_signs_in().await;
        let believed = plane.call("GET", "/api/v1/workspaces", key_token, None).await.0;
        assert_eq!(believed, status, "{groups}");
    }
    let ended = world.entries("api_key.revoke").await;
    assert_eq!((ended.len(), &ended[0]["resource_id"]), (1, &key["id"]));
}

async fn first_admin(plane: &TestPlane) -> String {
    let conn = plane.db().conn().await.unwrap();
    let row = conn.query_one("SELECT id::text FROM users WHERE email = $1", &[&ADMIN_EMAIL]).await.unwrap();
    row.get(0)
}

#[tokio::test]
async fn a_member_by_a_group_works_as_every_member_does() {
    let Some(world) = world().await else { return };
    world.idp.person(ada_in(json!(["payments-devs"])));
    let tokens = world.sign_in().await;
    let token = tokens["access_token"].as_str().unwrap();
    let headers = [("x-business-unit", "payments")];
    let (status, _, me) = world.plane.call_with("GET", "/api/v1/me", token, None, &headers).await;
    assert_eq!((status, &me["role"]), (StatusCode::OK, &json!(Role::Operator.as_str())));
    let (status, ..) = world.plane.call_with("GET", "/api/v1/workspaces", token, None, &headers).await;
    assert_eq!(status, StatusCode::OK);
    // In a unit that no group gives they are nobody.
    let headers = [("x-business-unit", "default")];
    let (status, ..) = world.plane.call_with("GET", "/api/v1/workspaces", token, None, &headers).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}
