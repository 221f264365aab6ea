//! Whose a key is: it dies with its owner's place in the unit, and acts for whoever was shown its token.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::users::{People, Person};
use crate::plane::slug;

/// A key of somebody in a unit: its id and its token.
async fn key(people: &People, owner: &Person, unit: &str) -> (String, String) {
    let headers = [("x-business-unit", unit)];
    let body = json!({ "name": "k", "capability": "admin" });
    let made =
        people.plane.call_with("POST", "/api/v1/api-keys", owner.token.as_str(), body, &headers).await.2;
    let text = |field: &str| made[field].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    (text("id"), text("token"))
}

/// What a key is answered: 200 if it is believed.
async fn believed(people: &People, token: &str) -> u16 {
    people.plane.call("GET", "/api/v1/workspaces", token, None).await.0.as_u16()
}

async fn revocations(people: &People, key: &str) -> i64 {
    const COUNT: &str = "
        SELECT count(*) FROM audit_entries WHERE action = 'api_key.revoke' AND resource_id = $1
            AND details->>'reason' = 'its owner left'";
    let conn = people.plane.db().conn().await.unwrap();
    conn.query_one(COUNT, &[&key]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_key_ends_for_good_when_its_owner_loses_the_place_that_it_stands_on() {
    let people = People::new().await;
    let join = json!({ "add_memberships": [{ "business_unit_id": people.red, "role": "admin" }] });
    for (what, leave, back) in [
        (
            "removed",
            ("PATCH", "", Some(json!({ "remove_memberships": [people.red] }))),
            ("PATCH", "", Some(join)),
        ),
        ("disabled", ("POST", "/disable", None), ("POST", "/enable", None)),
    ] {
        let ada = people.person(&[(people.blue, Role::Admin), (people.red, Role::Admin)]).await;
        let (in_blue, in_red) = (key(&people, &ada, "blue").await, key(&people, &ada, "red").await);
        let user = format!("users/{}", ada.id);
        assert_eq!(people.as_root(leave.0, &format!("{user}{}", leave.1), leave.2).await.0, StatusCode::OK);
        let stays = if what == "removed" { 200 } else { 401 };
        assert_eq!(believed(&people, &in_blue.1).await, stays, "{what}: the other unit");
        assert_eq!(believed(&people, &in_red.1).await, 401, "{what}");
        assert_eq!(people.as_root(back.0, &format!("{user}{}", back.1), back.2).await.0, StatusCode::OK);
        assert_eq!(believed(&people, &in_red.1).await, 401, "{what}, and back again");
        assert_eq!(revocations(&people, &in_red.0).await, 1, "{what}");
        assert_eq!(revocations(&people, &in_blue.0).await, i64::from(stays == 401), "{what}");
    }
}

#[tokio::test]
async fn keys_of_somebody_who_stood_above_all_units_end_where_they_have_no_place_of_their_own() {
    let people = People::new().await;
    let ada = people.superadmin().await;
    let join = json!({ "add_memberships": [{ "business_unit_id": people.blue, "role": "viewer" }] });
    people.as_root("PATCH", &format!("users/{}", ada.id), join).await;
    let (in_blue, in_red) = (key(&people, &ada, "blue").await, key(&people, &ada, "red").await);
    let demotion = json!({ "is_superadmin": false });
    assert_eq!(people.as_root("PATCH", &format!("users/{}", ada.id), demotion).await.0, StatusCode::OK);
    assert_eq!(believed(&people, &in_blue.1).await, 200, "as far as a viewer goes");
    assert_eq!(believed(&people, &in_red.1).await, 401);
    assert_eq!((revocations(&people, &in_blue.0).await, revocations(&people, &in_red.0).await), (0, 1));
}

#[tokio::test]
async fn the_log_of_a_unit_tells_what_became_of_the_keys_of_somebody_who_was_deleted() {
    let people = People::new().await;
    let ada = people.person(&[(people.red, Role::Admin)]).await;
    let (id, token) = key(&people, &ada, "red").await;
    assert_eq!(people.as_root("DELETE", &format!("users/{}", ada.id), None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(believed(&people, &token).await, 401);
    assert_eq!(revocations(&people, &id).await, 1);
}

#[tokio::test]
async fn whoever_is_shown_a_new_token_is_whom_the_key_acts_for() {
    let people = People::new().await;
    let (ada, ben) = (
        people.person(&[(people.blue, Role::Admin)]).await,
        people.person(&[(people.blue, Role::Admin)]).await,
    );
    for verb in ["regenerate", "rotate"] {
        let (id, _) = key(&people, &ben, "blue").await;
        let path = format!("api-keys/{id}/{verb}");
        let (_, made) = people.call(&ada.token, "POST", &path, json!({})).await;
        let token = made["token"].as_str().unwrap_or_else(|| panic!("{verb}: {made}"));
        assert_eq!((&made["user_id"], believed(&people, token).await), (&json!(ada.id), 200), "{verb}");
        let action = if verb == "rotate" { "api_key.rotate" } else { "api_key.regenerate" };
        let (_, log) = people.call(&ada.token, "GET", &format!("audit?action={action}"), None).await;
        assert_eq!(log["items"][0]["details"]["owner_before"], json!(ben.id), "{verb}");
    }
    let leave = json!({ "remove_memberships": [people.blue] });
    let mine = people.call(&ada.token, "GET", "api-keys", None).await.1;
    assert_eq!(mine["items"].as_array().map(Vec::len), Some(3));
    assert_eq!(people.as_root("PATCH", &format!("users/{}", ada.id), leave).await.0, StatusCode::OK);
    let (_, left) = people.call(&ben.token, "GET", "api-keys", None).await;
    let live: Vec<&Value> =
        left["items"].as_array().unwrap().iter().filter(|one| one["revoked_at"].is_null()).collect();
    // Of the three one is still ben's: the one that ada rotated, in its overlap.
    assert_eq!(live.len(), 1, "{left}");
    assert_eq!(live[0]["user_id"], json!(ben.id));
}

#[tokio::test]
async fn a_moment_that_no_calendar_has_is_refused_as_the_end_of_a_key() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Admin)]).await;
    let (id, _) = key(&people, &ada, "blue").await;
    for moment in
        ["+10000-01-01T00:00:00Z", "+262142-12-31T23:59:59Z", "-4800-01-01T00:00:00Z", "1969-12-31T23:59:59Z"]
    {
        for (path, body) in [
            ("api-keys".to_owned(), json!({ "name": "k", "expires_at": moment })),
            (format!("api-keys/{id}/rotate"), json!({ "expires_at": moment })),
        ] {
            let (status, problem) = people.call(&ada.token, "POST", &path, body).await;
            let refusal = (status, slug(&problem), &problem["field"]);
            let expected = (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field", &json!("expires_at"));
            assert_eq!(refusal, expected, "{path} {moment}: {problem}");
        }
    }
}
