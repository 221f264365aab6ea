//! The last superadmin who can sign in stays one, however many try at once.

use http::StatusCode;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::{People, Person};
use crate::plane::slug;

/// The ways in which a superadmin could go.
const WAYS: [&str; 3] = ["demote", "disable", "delete"];

async fn take_away(people: &People, by: &str, id: &str, way: &str) -> (StatusCode, Value) {
    let (method, path, body) = match way {
        "demote" => ("PATCH", format!("users/{id}"), Some(json!({ "is_superadmin": false }))),
        "disable" => ("POST", format!("users/{id}/disable"), None),
        _ => ("DELETE", format!("users/{id}"), None),
    };
    people.call(by, method, &path, body).await
}

async fn able_superadmins(people: &People) -> i64 {
    const COUNT: &str = "
        SELECT count(*) FROM users WHERE is_superadmin AND disabled_at IS NULL AND password_hash IS NOT NULL";
    people.plane.db().conn().await.unwrap().query_one(COUNT, &[]).await.unwrap().get(0)
}

async fn root_id(people: &People) -> String {
    people.as_root("GET", "me", None).await.1["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_last_superadmin_is_not_demoted_disabled_or_deleted() {
    let people = People::new().await;
    let id = root_id(&people).await;
    // Others who are no superadmins, are disabled, or cannot sign in do not count.
    let disabled = people.superadmin().await;
    people.as_root("POST", &format!("users/{}/disable", disabled.id), None).await;
    let body = json!({ "email": "invited@plumbline.test", "is_superadmin": true });
    assert_eq!(people.as_root("POST", "users", body).await.0, StatusCode::CREATED);
    let before = people.plane.every_row().await;
    for way in WAYS {
        let (status, problem) = take_away(&people, &people.root, &id, way).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "last-superadmin"), "{way}");
    }
    assert_eq!(people.plane.every_row().await, before);

    // With another one they may go.
    let other = people.superadmin().await;
    let (status, after) = take_away(&people, &people.root, &id, "demote").await;
    assert_eq!((status, &after["is_superadmin"]), (StatusCode::OK, &json!(false)));
    let (status, problem) = take_away(&people, &other.token, &other.id, "delete").await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "last-superadmin"));
}

#[tokio::test]
async fn of_two_superadmins_who_go_at_once_one_stays() {
    for way in WAYS {
        for other_way in WAYS {
            let people = People::new().await;
            let (first, second) = (root_id(&people).await, people.superadmin().await);
            let (a, b) = futures::join!(
                take_away(&people, &people.root, &first, way),
                take_away(&people, &second.token, &second.id, other_way),
            );
            let refused: Vec<_> = [&a, &b].into_iter().filter(|answer| !answer.0.is_success()).collect();
            assert_eq!(refused.len(), 1, "{way} and {other_way}: {a:?} {b:?}");
            let refusal = (refused[0].0, slug(&refused[0].1));
            assert_eq!(refusal, (StatusCode::CONFLICT, "last-superadmin"), "{way} and {other_way}");
            assert_eq!(able_superadmins(&people).await, 1);
        }
    }
}

#[tokio::test]
async fn of_two_superadmins_who_turn_on_each_other_one_stays() {
    let people = People::new().await;
    let (first, second) = (root_id(&people).await, people.superadmin().await);
    let (a, b) = futures::join!(
        take_away(&people, &people.root, &second.id, "demote"),
        take_away(&people, &second.token, &first, "demote"),
    );
    let won = [&a, &b].into_iter().filter(|answer| answer.0 == StatusCode::OK).count();
    assert_eq!(won, 1, "{a:?} {b:?}");
    assert_eq!(able_superadmins(&people).await, 1);
}

#[tokio::test]
async fn of_many_superadmins_who_all_go_at_once_one_stays() {
    let people = People::new().await;
    let mut all: Vec<Person> = Vec::new();
    for _ in 0..11 {
        all.push(people.superadmin().await);
    }
    let first = root_id(&people).await;
    let mut going: Vec<_> =
        all.iter().enumerate().map(|(n, one)| (one.token.as_str(), one.id.as_str(), WAYS[n % 3])).collect();
    going.push((&people.root, &first, "demote"));
    let gone = going.iter().map(|(by, id, way)| take_away(&people, by, id, way));
    let answers = futures::future::join_all(gone).await;
    for answer in &answers {
        assert!(answer.0.is_success() || slug(&answer.1) == "last-superadmin", "{answer:?}");
    }
    assert_eq!(answers.iter().filter(|answer| !answer.0.is_success()).count(), 1, "{answers:?}");
    assert_eq!(able_superadmins(&people).await, 1);
}
