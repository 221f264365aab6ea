//! The secret that access tokens are signed with: named by every token, kept sealed, replaced while people work.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::secrets::{Domain, Place};
use plumbline_core::sessions;
use plumbline_runtime::Function;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::plane::{ADMIN_EMAIL, Answer, PASSWORD, TestPlane, slug};
use crate::store::state_client::Backend;

const SECRETS: &str = "/api/v1/auth/jwt-secrets";

async fn rotate(plane: &TestPlane, token: &str, overlap_minutes: Option<u32>) -> Answer {
    plane.call("POST", SECRETS, token, json!({ "overlap_minutes": overlap_minutes })).await
}

async fn is_accepted(plane: &TestPlane, token: &str) -> bool {
    let (status, _, body) = plane.call("GET", "/api/v1/me", token, None).await;
    assert!([StatusCode::OK, StatusCode::UNAUTHORIZED].contains(&status), "{body}");
    status == StatusCode::OK
}

async fn sign_in(plane: &TestPlane) -> Value {
    let body = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let (status, _, pair) = plane.call("POST", "/api/v1/auth/token", None, body).await;
    assert_eq!(status, StatusCode::OK, "{pair}");
    pair
}

/// A part of a token as JSON: 0 is its header, 1 its claims.
fn part(token: &str, n: usize) -> Value {
    let text = token.split('.').nth(n).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
}

#[tokio::test]
async fn after_a_rotation_everybody_stays_signed_in_until_the_overlap_is_over() {
    let plane = TestPlane::start().await;
    let old = plane.admin_token().await;
    let pair = sign_in(&plane).await;
    let (status, _, made) = rotate(&plane, &old, Some(30)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let new = plane.login(ADMIN_EMAIL).await;
    assert_eq!(part(&new, 0)["kid"], made["kid"]);
    assert_ne!(part(&old, 0)["kid"], made["kid"]);
    assert!(is_accepted(&plane, &old).await && is_accepted(&plane, &new).await);

    plane.advance(Duration::from_secs(29 * 60)).await;
    assert!(is_accepted(&plane, &old).await);
    plane.advance(Duration::from_secs(60 + 1)).await;
    let (status, _, problem) = plane.call("GET", "/api/v1/me", &*old, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "unauthenticated"));
    assert!(is_accepted(&plane, &new).await);
    // Refresh tokens are not signed with it, so a program gets its next token as ever.
    let body = json!({ "refresh_token": pair["refresh_token"] });
    let (status, _, next) = plane.call("POST", "/api/v1/auth/refresh", None, body).await;
    assert_eq!(status, StatusCode::OK, "{next}");
    assert!(is_accepted(&plane, next["access_token"].as_str().unwrap()).await);
}

#[tokio::test]
async fn without_an_overlap_every_token_of_the_old_secret_ends_at_once_in_every_function() {
    let backend = Backend::start().await;
    let plane = &backend.plane;
    let admin = plane.admin_token().await;
    assert_eq!(backend.lock("l-1").await.0, StatusCode::OK);
    assert_eq!(rotate(plane, &admin, Some(0)).await.0, StatusCode::CREATED);
    for token in [&admin, &backend.token] {
        assert!(!is_accepted(plane, token).await);
    }
    assert_eq!(backend.unlock("l-1").await.0, StatusCode::UNAUTHORIZED, "tfstate has kept nothing");
    assert!(is_accepted(plane, &plane.login(ADMIN_EMAIL).await).await);
}

#[tokio::test]
async fn without_an_overlap_secrets_that_were_replaced_before_end_as_well() {
    let plane = TestPlane::start().await;
    let mut tokens = vec![plane.admin_token().await];
    for overlap in [None, Some(60), None] {
        let newest = tokens.last().unwrap().clone();
        assert_eq!(rotate(&plane, &newest, overlap).await.0, StatusCode::CREATED);
        tokens.push(plane.login(ADMIN_EMAIL).await);
    }
    for token in &tokens {
        assert!(is_accepted(&plane, token).await, "all are in their overlap");
    }
    assert_eq!(rotate(&plane, tokens.last().unwrap(), Some(0)).await.0, StatusCode::CREATED);
    for token in &tokens {
        assert!(!is_accepted(&plane, token).await);
    }
    let newest = plane.login(ADMIN_EMAIL).await;
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=jwt_secret.rotate", &*newest, None).await;
    assert_eq!(log["items"][0]["details"]["retired"].as_array().map(Vec::len), Some(4), "each is named");
}

#[tokio::test]
async fn whoever_signs_out_is_signed_out_also_with_a_token_that_is_good_for_nothing_else() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let pair = sign_in(&plane).await;
    assert_eq!(rotate(&plane, &admin, Some(0)).await.0, StatusCode::CREATED);
    let token = pair["access_token"].as_str().unwrap();
    assert!(!is_accepted(&plane, token).await);
    assert_eq!(plane.call("POST", "/api/v1/auth/logout", token, None).await.0, StatusCode::NO_CONTENT);
    let body = json!({ "refresh_token": pair["refresh_token"] });
    assert_eq!(plane.call("POST", "/api/v1/auth/refresh", None, body).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_that_another_issuer_made_or_that_is_for_others_is_refused_though_it_is_signed_well() {
    let plane = TestPlane::start().await;
    let token = plane.admin_token().await;
    let (header, claims) = (part(&token, 0), part(&token, 1));
    let secret = hex::decode(&opened(&plane).await[0]).unwrap();
    let sign = |algorithm: Algorithm, claims: &Value| {
        let mut named = Header::new(algorithm);
        named.kid = header["kid"].as_str().map(str::to_owned);
        jsonwebtoken::encode(&named, claims, &EncodingKey::from_secret(&secret).unwrap()).unwrap()
    };
    assert!(is_accepted(&plane, &sign(Algorithm::HS256, &claims)).await, "what is signed here is as good");
    for (claim, value) in [
        ("iss", json!("plumbline2")),
        ("aud", json!("plumbline-executor")),
        ("type", json!("refresh")),
        ("gen", json!(2)),
        ("epoch", json!(2)),
        ("exp", json!(1)),
        ("jti", json!(Uuid::now_v7())),
        ("sub", json!(Uuid::now_v7())),
    ] {
        let mut other = claims.clone();
        other[claim] = value;
        assert!(!is_accepted(&plane, &sign(Algorithm::HS256, &other)).await, "another {claim}");
        other.as_object_mut().unwrap().remove(claim);
        assert!(!is_accepted(&plane, &sign(Algorithm::HS256, &other)).await, "no {claim}");
    }
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        assert!(!is_accepted(&plane, &sign(algorithm, &claims)).await, "{algorithm:?}");
    }
}

#[tokio::test]
async fn an_overlap_is_at_most_the_life_of_an_access_token_and_that_long_if_nobody_says() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for (set, longest) in [(None, 480), (Some(20), 20)] {
        if let Some(minutes) = set {
            let path = "/api/v1/runtime-config/auth.access_token_expire_minutes";
            let body = json!({ "value": minutes });
            let changed = plane.call_with("PUT", path, &*admin, body, &[("if-match", "*")]).await;
            assert_eq!(changed.0, StatusCode::OK);
        }
        let (status, _, problem) = rotate(&plane, &admin, Some(longest + 1)).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("overlap_minutes"))
        );
        assert_eq!(rotate(&plane, &admin, None).await.0, StatusCode::CREATED);
        const OVERLAP: &str = "
            SELECT extract(epoch FROM accepted_until - retired_at)::bigint FROM jwt_secrets
            WHERE retired_at IS NOT NULL ORDER BY retired_at DESC LIMIT 1";
        let conn = plane.db().conn().await.unwrap();
        let seconds: i64 = conn.query_one(OVERLAP, &[]).await.unwrap().get(0);
        assert_eq!(seconds, i64::from(longest) * 60);
    }
}

#[tokio::test]
async fn superadmins_alone_see_and_rotate_secrets_and_nobody_sees_what_they_are() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        let token = plane.user(role).await;
        assert_eq!(rotate(&plane, &token, None).await.0, StatusCode::FORBIDDEN, "{role:?}");
        assert_eq!(plane.call("GET", SECRETS, &*token, None).await.0, StatusCode::FORBIDDEN, "{role:?}");
    }
    let (_, _, made) = rotate(&plane, &admin, None).await;
    let (status, _, list) = plane.call("GET", SECRETS, &*admin, None).await;
    assert_eq!((status, &list["items"][0]), (StatusCode::OK, &made));
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert!(list["items"][1]["accepted_until"].is_string() && list["items"][0]["accepted_until"].is_null());

    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=jwt_secret.rotate", &*admin, None).await;
    assert_eq!(log["items"][0]["resource_id"], made["kid"]);
    assert_eq!(log["items"][0]["details"]["overlap_seconds"], 8 * 3600);
    let rows = plane.every_row().await;
    for secret in opened(&plane).await {
        let (text, bytes) = (&secret, hex::decode(&secret).unwrap());
        for form in [text.clone(), URL_SAFE_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(text)] {
            assert!(rows.values().all(|table| !table.contains(&form)), "a secret is in the database");
            assert!(!list.to_string().contains(&form) && !log.to_string().contains(&form));
        }
    }
}

/// What the secrets are, as hex digits.
async fn opened(plane: &TestPlane) -> Vec<String> {
    let conn = plane.db().conn().await.unwrap();
    let rows = conn.query("SELECT id, sealed FROM jwt_secrets", &[]).await.unwrap();
    assert!(!rows.is_empty());
    let open = |row: &plumbline_core::db::Row| {
        let place = Place { table: "jwt_secrets", column: "sealed", row: row.get("id") };
        plane.deps.keys.open(Domain::Sessions, place, row.get("sealed")).unwrap().expose().to_owned()
    };
    rows.iter().map(open).collect()
}

#[tokio::test]
async fn a_token_is_believed_only_under_the_secret_that_it_names() {
    let plane = TestPlane::start().await;
    let old = plane.admin_token().await;
    let (_, _, made) = rotate(&plane, &old, None).await;
    let (head, rest) = old.split_once('.').unwrap();
    for kid in [made["kid"].clone(), json!(Uuid::now_v7()), json!("x"), json!("' OR 1=1"), Value::Null] {
        let mut header = part(&old, 0);
        header["kid"] = kid.clone();
        let forged = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()));
        assert!(!is_accepted(&plane, &forged).await, "{kid}");
    }
    assert!(is_accepted(&plane, &format!("{head}.{rest}")).await);
    // A secret that was moved into another's row signs nothing.
    let conn = plane.db().conn().await.unwrap();
    const SWAP: &str = "
        UPDATE jwt_secrets SET sealed = (SELECT sealed FROM jwt_secrets WHERE retired_at IS NOT NULL)
        WHERE retired_at IS NULL";
    conn.execute(SWAP, &[]).await.unwrap();
    drop(conn);
    let next = sign_in(&plane).await["access_token"].as_str().unwrap().to_owned();
    let kid = part(&next, 0)["kid"].clone();
    assert!(kid != made["kid"] && kid != part(&old, 0)["kid"], "another one is made instead");
    assert!(is_accepted(&plane, &next).await);
}

#[tokio::test]
async fn of_many_first_sign_ins_and_rotations_at_once_one_secret_signs() {
    let plane = TestPlane::start().await;
    let made = plumbline_core::users::service::bootstrap_admin(&plane.deps, ADMIN_EMAIL, PASSWORD).await;
    made.unwrap();
    let pairs = futures::future::join_all((0..5).map(|_| sign_in(&plane))).await;
    let token = |pair: &Value| pair["access_token"].as_str().unwrap().to_owned();
    let kids: std::collections::BTreeSet<String> =
        pairs.iter().map(|pair| part(&token(pair), 0)["kid"].to_string()).collect();
    assert_eq!(kids.len(), 1, "one was made");
    let tokens: Vec<String> = pairs.iter().map(token).collect();
    let rotations = futures::future::join_all(tokens.iter().map(|token| rotate(&plane, token, None))).await;
    assert!(rotations.iter().all(|answer| answer.0 == StatusCode::CREATED), "{rotations:?}");
    const SIGNING: &str = "
        SELECT count(*) FILTER (WHERE retired_at IS NULL), count(*) FROM jwt_secrets";
    let conn = plane.db().conn().await.unwrap();
    let row = conn.query_one(SIGNING, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 6));
    drop(conn);
    for token in &tokens {
        assert!(is_accepted(&plane, token).await, "no rotation cut another one's overlap");
    }
}

#[tokio::test]
async fn secrets_whose_tokens_are_long_refused_are_forgotten_and_others_are_not() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    assert_eq!(rotate(&plane, &admin, Some(0)).await.0, StatusCode::CREATED);
    let count = async || {
        let conn = plane.db().conn().await.unwrap();
        conn.query_one("SELECT count(*) FROM jwt_secrets", &[]).await.unwrap().get::<_, i64>(0)
    };
    let reconciler = plane.as_function(Function::Reconciler);
    sessions::service::forget(&reconciler).await.unwrap();
    assert_eq!(count().await, 2);
    plane.advance(Duration::from_secs(8 * 24 * 3600)).await;
    sessions::service::forget(&reconciler).await.unwrap();
    assert_eq!(count().await, 1);
    plane.login(ADMIN_EMAIL).await;
}
