//! Whose hands a person is in: what a unit's admin may do, and to whom.

use std::collections::BTreeSet;

use http::StatusCode;
use plumbline_core::access::Role;
use serde_json::{Value, json};

use super::{People, Person, emails, slugs};
use crate::plane::slug;

const NOTHING: &str = "01890000-0000-7000-8000-000000000000";

/// Everything that is done to a whole person, as method, path and body.
fn deeds(id: &str) -> Vec<(&'static str, String, Option<Value>)> {
    vec![
        ("PATCH", format!("users/{id}"), Some(json!({ "display_name": "Mallory" }))),
        ("POST", format!("users/{id}/disable"), None),
        ("POST", format!("users/{id}/enable"), None),
        ("DELETE", format!("users/{id}/sessions"), None),
        ("PUT", format!("users/{id}/password"), Some(json!({ "password": "known to the admin" }))),
        ("POST", format!("users/{id}/invite"), None),
        ("DELETE", format!("users/{id}/invite"), None),
        ("DELETE", format!("users/{id}"), None),
    ]
}

/// Refuses every deed with this status, changes nothing, and says so.
async fn assert_refused(people: &People, token: &str, id: &str, expected: StatusCode) {
    let before = people.plane.every_row().await;
    for (method, path, body) in deeds(id) {
        let (status, problem) = people.call(token, method, &path, body).await;
        assert_eq!(status, expected, "{method} {path}: {problem}");
        assert!(["forbidden", "not-found"].contains(&slug(&problem)), "{problem}");
    }
    assert_eq!(people.plane.every_row().await, before);
}

#[tokio::test]
async fn an_admin_sees_the_members_of_their_units_and_only_these_memberships() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin), (people.red, Role::Viewer)]).await;
    let both = people.person(&[(people.blue, Role::Viewer), (people.red, Role::Admin)]).await;
    let foreign = people.person(&[(people.red, Role::Viewer)]).await;
    let nowhere = people.person(&[]).await;

    let (status, page) = people.call(&admin.token, "GET", "users", None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert_eq!(emails(&page), BTreeSet::from([admin.email.clone(), both.email.clone()]));
    assert!(!page.to_string().contains("red"), "{page}");
    let (_, one) = people.call(&admin.token, "GET", &format!("users/{}", both.id), None).await;
    assert_eq!(slugs(&one), [("blue", "viewer")]);
    for unseen in [&foreign.id, &nowhere.id, NOTHING] {
        let (status, problem) = people.call(&admin.token, "GET", &format!("users/{unseen}"), None).await;
        assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"));
    }
    let path = format!("users?business_unit_id={}", people.red);
    assert_eq!(people.call(&admin.token, "GET", &path, None).await.1["items"], json!([]));
    let path = format!("users?email={}", foreign.email);
    assert_eq!(people.call(&admin.token, "GET", &path, None).await.1["items"], json!([]));
}

#[tokio::test]
async fn viewers_and_operators_see_nobody_and_make_nobody() {
    let people = People::new().await;
    let other = people.person(&[(people.blue, Role::Viewer)]).await;
    for role in [Role::Viewer, Role::Operator] {
        let member = people.person(&[(people.blue, role)]).await;
        for path in ["users".to_owned(), format!("users/{}", other.id), format!("users/{}", member.id)] {
            let (status, problem) = people.call(&member.token, "GET", &path, None).await;
            assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"), "{path}");
        }
        let body = json!({ "email": "new@plumbline.test",
                           "memberships": [{ "business_unit_id": people.blue, "role": "viewer" }] });
        assert_eq!(people.call(&member.token, "POST", "users", body).await.0, StatusCode::FORBIDDEN);
        assert_refused(&people, &member.token, &other.id, StatusCode::FORBIDDEN).await;
        assert_refused(&people, &member.token, &member.id, StatusCode::FORBIDDEN).await;
    }
}

#[tokio::test]
async fn an_admin_does_everything_to_a_person_of_their_units_alone() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin), (people.red, Role::Admin)]).await;
    let own = people.person(&[(people.blue, Role::Admin), (people.red, Role::Operator)]).await;
    for (method, path, body) in deeds(&own.id) {
        let (status, answer) = people.call(&admin.token, method, &path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
    }
}

#[tokio::test]
async fn who_is_in_another_unit_too_keeps_everything_but_the_membership_in_the_admins_own() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin)]).await;
    let both = people.person(&[(people.blue, Role::Viewer), (people.red, Role::Viewer)]).await;
    assert_refused(&people, &admin.token, &both.id, StatusCode::FORBIDDEN).await;

    let path = format!("users/{}", both.id);
    let raise = json!({ "add_memberships": [{ "business_unit_id": people.blue, "role": "operator" }] });
    let (status, after) = people.call(&admin.token, "PATCH", &path, raise).await;
    assert_eq!((status, slugs(&after)), (StatusCode::OK, vec![("blue", "operator")]));
    let remove = json!({ "remove_memberships": [people.blue] });
    let (status, after) = people.call(&admin.token, "PATCH", &path, remove).await;
    assert_eq!((status, slugs(&after)), (StatusCode::OK, vec![]), "{after}");
    // From now on they are somebody else's.
    assert_eq!(people.call(&admin.token, "GET", &path, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(slugs(&people.as_root("GET", &path, None).await.1), [("red", "viewer")]);
}

#[tokio::test]
async fn people_of_other_units_do_not_exist_for_an_admin() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin)]).await;
    let foreign = people.person(&[(people.red, Role::Viewer)]).await;
    let nowhere = people.person(&[]).await;
    for unseen in [&foreign.id, &nowhere.id, NOTHING] {
        assert_refused(&people, &admin.token, unseen, StatusCode::NOT_FOUND).await;
        let take = json!({ "add_memberships": [{ "business_unit_id": people.blue, "role": "viewer" }] });
        let path = format!("users/{unseen}");
        assert_eq!(people.call(&admin.token, "PATCH", &path, take).await.0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_superadmin_among_the_members_is_seen_and_left_alone() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin)]).await;
    let boss = people.superadmin().await;
    let join = json!({ "add_memberships": [{ "business_unit_id": people.blue, "role": "viewer" }] });
    let path = format!("users/{}", boss.id);
    assert_eq!(people.as_root("PATCH", &path, join.clone()).await.0, StatusCode::OK);

    assert_eq!(people.call(&admin.token, "GET", &path, None).await.1["is_superadmin"], true);
    assert_refused(&people, &admin.token, &boss.id, StatusCode::FORBIDDEN).await;
    for change in [join, json!({ "remove_memberships": [people.blue] }), json!({ "is_superadmin": false })] {
        let (status, problem) = people.call(&admin.token, "PATCH", &path, change).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"));
    }
}

#[tokio::test]
async fn nobody_gives_more_than_they_have() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin), (people.red, Role::Operator)]).await;
    let hidden = people.plane.unit("hidden").await;
    let member = people.person(&[(people.blue, Role::Viewer)]).await;
    let path = format!("users/{}", member.id);
    let before = people.plane.every_row().await;
    let membership =
        |unit: &dyn std::fmt::Display| json!([{ "business_unit_id": unit.to_string(), "role": "viewer" }]);
    let cases = [
        (json!({ "is_superadmin": true }), StatusCode::FORBIDDEN),
        (json!({ "is_superadmin": false }), StatusCode::FORBIDDEN),
        // Where they are no admin, and where they are nothing at all: there it is not even said to be there.
        (json!({ "add_memberships": membership(&people.red) }), StatusCode::FORBIDDEN),
        (json!({ "add_memberships": membership(&hidden) }), StatusCode::NOT_FOUND),
        (json!({ "add_memberships": membership(&NOTHING) }), StatusCode::NOT_FOUND),
        (json!({ "remove_memberships": [people.red] }), StatusCode::FORBIDDEN),
        (json!({ "remove_memberships": [hidden] }), StatusCode::NOT_FOUND),
    ];
    for (body, expected) in cases {
        // Also of themselves.
        for path in [&path, &format!("users/{}", admin.id)] {
            let (status, problem) = people.call(&admin.token, "PATCH", path, body.clone()).await;
            assert_eq!(status, expected, "{path} {body}: {problem}");
        }
    }
    for (body, expected) in [
        (json!({ "email": "n@b.c" }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "email": "n@b.c", "memberships": membership(&people.red) }), StatusCode::FORBIDDEN),
        (json!({ "email": "n@b.c", "memberships": membership(&hidden) }), StatusCode::NOT_FOUND),
        (
            json!({ "email": "n@b.c", "is_superadmin": true, "memberships": membership(&people.blue) }),
            StatusCode::FORBIDDEN,
        ),
    ] {
        let (status, problem) = people.call(&admin.token, "POST", "users", body.clone()).await;
        assert_eq!(status, expected, "{body}: {problem}");
    }
    assert_eq!(people.plane.every_row().await, before);
    let body = json!({ "email": "n@b.c",
                       "memberships": [{ "business_unit_id": people.blue, "role": "admin" }] });
    let (status, made) = people.call(&admin.token, "POST", "users", body).await;
    assert_eq!((status, slugs(&made)), (StatusCode::CREATED, vec![("blue", "admin")]));
}

#[tokio::test]
async fn one_changes_ones_own_password_only_with_the_old_one() {
    let people = People::new().await;
    let boss: Person = people.superadmin().await;
    let admin = people.person(&[(people.blue, Role::Admin)]).await;
    for person in [&boss, &admin] {
        let password = json!({ "password": "set without the old one" });
        for (method, what, body) in [("PUT", "password", Some(password)), ("POST", "invite", None)] {
            let path = format!("users/{}/{what}", person.id);
            let (status, problem) = people.call(&person.token, method, &path, body).await;
            assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"), "{path}");
        }
    }
}

#[tokio::test]
async fn a_demoted_admin_and_a_demoted_superadmin_lose_their_power_at_once() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin)]).await;
    let boss = people.superadmin().await;
    assert_eq!(people.call(&admin.token, "GET", "users", None).await.0, StatusCode::OK);
    assert_eq!(people.call(&boss.token, "GET", "users", None).await.0, StatusCode::OK);
    let lower = json!({ "add_memberships": [{ "business_unit_id": people.blue, "role": "operator" }] });
    people.as_root("PATCH", &format!("users/{}", admin.id), lower).await;
    people.as_root("PATCH", &format!("users/{}", boss.id), json!({ "is_superadmin": false })).await;
    for token in [&admin.token, &boss.token] {
        assert_eq!(people.call(token, "GET", "users", None).await.0, StatusCode::FORBIDDEN);
    }
}
