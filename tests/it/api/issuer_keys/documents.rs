//! What everybody may read of the issuer.

use axum::body::Body;
use http::{Request, StatusCode};
use plumbline_core::secrets::Domain;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::{AUDIENCE, served_plane, token_of, trusting_aws, trusting_world};
use crate::executors::{FakeExecutor, claim_and_prepare, nonce, trade};
use crate::plane::{TestPlane, slug};
use crate::world::World;

const DISCOVERY: &str = "/.well-known/openid-configuration";
const JWKS: &str = "/.well-known/jwks.json";
/// How sealed values begin after the name of their root key.
const SEALED: &str = ":gAAAA";

#[tokio::test]
async fn the_documents_are_open_to_everybody_and_can_be_kept_for_a_while() {
    let world = trusting_world().await;
    let plane = &world.plane;
    let issuer = plane.deps.public_url.to_string();
    let (status, headers, document) = plane.call("GET", DISCOVERY, None, None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&document["issuer"], &document["jwks_uri"]), (&json!(issuer), &json!(issuer + JWKS)));
    assert_eq!(document["id_token_signing_alg_values_supported"], json!(["RS256"]));
    assert_eq!(
        (&document["response_types_supported"], &document["subject_types_supported"]),
        (&json!(["id_token"]), &json!(["public"]))
    );
    assert_eq!(
        (headers["cache-control"].to_str().unwrap(), headers["content-type"].to_str().unwrap()),
        ("public, max-age=300", "application/json")
    );

    // Before the first token there is no key, and nobody shall remember that.
    let (status, headers, keys) = plane.call("GET", JWKS, None, None).await;
    assert_eq!(
        (status, &keys, headers["cache-control"].to_str().unwrap()),
        (StatusCode::OK, &json!({ "keys": [] }), "no-cache")
    );
    world.trigger("plan").await;
    token_of(&FakeExecutor::start(plane).await).await;
    for path in [DISCOVERY, JWKS] {
        let (status, headers, body) = plane.call("GET", path, None, None).await;
        assert_eq!(
            (status, headers["cache-control"].to_str().unwrap()),
            (StatusCode::OK, "public, max-age=300")
        );
        assert!(body["issuer"].is_string() || body["keys"].as_array().unwrap().len() == 2, "{body}");
        let tag = headers["etag"].to_str().unwrap();
        let again = plane.call_with("GET", path, None, None, &[("if-none-match", tag)]).await;
        assert_eq!((again.0, &again.1["etag"]), (StatusCode::NOT_MODIFIED, &headers["etag"]), "{path}");
        let head = Request::head(path).body(Body::empty()).unwrap();
        assert_eq!(plane.send(head).await.status(), StatusCode::OK);
        let (status, _, problem) = plane.call("POST", path, None, json!({})).await;
        assert_eq!((status, slug(&problem)), (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed"));
    }
}

#[tokio::test]
async fn a_private_key_is_published_nowhere_and_opened_by_callback_alone() {
    let world = trusting_world().await;
    world.trigger("plan").await;
    token_of(&FakeExecutor::start(&world.plane).await).await;
    let (_, _, keys) = world.plane.call("GET", JWKS, None, None).await;
    for key in keys["keys"].as_array().unwrap() {
        let mut fields: Vec<&str> = key.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["alg", "e", "kid", "kty", "n", "use"], "{key}");
        assert_eq!(
            (&key["kty"], &key["alg"], &key["use"], &key["e"]),
            (&json!("RSA"), &json!("RS256"), &json!("sig"), &json!("AQAB"))
        );
        // 2,048 bits in base64 without padding.
        assert_eq!(key["n"].as_str().unwrap().len(), 342);
    }
    let ring = &world.plane.deps.keys;
    for function in Function::ALL {
        let may = ring.only(function.key_domains()).key(Domain::Issuer).is_ok();
        assert_eq!(may, function == Function::Callback, "{function:?}");
    }
    // As they lie in the database: sealed, and of no use to whoever reads it.
    let rows = world.plane.every_row().await["issuer_keys"].clone();
    assert_eq!(rows.matches(SEALED).count(), 2, "{rows}");
    // How every PKCS #8 of an RSA key begins, in base64.
    assert!(!rows.contains("MIIE"), "{rows}");
}

#[tokio::test]
async fn without_a_public_https_address_there_is_no_issuer_and_whoever_needs_it_is_told() {
    let mut world = World::on(TestPlane::start().await).await;
    let off = |body: &Value| {
        assert_eq!(slug(body), "issuer-off", "{body}");
        assert!(body["detail"].as_str().unwrap().contains("PLUMBLINE_PUBLIC_URL"), "{body}");
    };
    for path in [DISCOVERY, JWKS] {
        let (status, _, body) = world.plane.call("GET", path, None, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        off(&body);
    }
    let (status, refused) = world.post("aws-accounts", trusting_aws()).await;
    assert_eq!((status, &refused["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("oidc_audience")));
    assert!(refused["detail"].as_str().unwrap().contains("https://"), "{refused}");

    // It had one when the account was registered.
    let public_url =
        std::mem::replace(&mut world.plane.deps.public_url, "https://plumbline.example.com".into());
    assert_eq!(world.post("aws-accounts", trusting_aws()).await.0, StatusCode::CREATED);
    super::link(&world).await;
    world.plane.deps.public_url = public_url;
    let run = world.trigger("plan").await;
    let (_, launch) = claim_and_prepare(&world.plane).await.unwrap();
    let (status, answer) = trade(&world.plane, &launch.ticket, &nonce(1)).await;
    assert_eq!(status, StatusCode::GONE, "{answer}");
    let error = world.run(&run).await["error"].as_str().unwrap().to_owned();
    assert!(error.contains("PLUMBLINE_PUBLIC_URL does not begin with https://"), "{error}");
}

#[tokio::test]
async fn a_slash_at_the_end_of_the_public_address_makes_no_other_issuer() {
    let mut plane = served_plane().await;
    let (_, _, without) = plane.call("GET", DISCOVERY, None, None).await;
    plane.deps.public_url = format!("{}/", plane.deps.public_url).into();
    let (_, _, with) = plane.call("GET", DISCOVERY, None, None).await;
    assert_eq!(without, with);
    assert!(!with["issuer"].as_str().unwrap().ends_with('/'), "{with}");
}

#[tokio::test]
async fn an_account_that_trusts_tokens_has_roles_an_audience_and_no_keys() {
    let world = World::on(served_plane().await).await;
    let keys =
        json!({ "access_key_id": "AKIA0123456789ABCDEF", "secret_access_key": "hunter2+hunter2/hunter2" });
    for (change, field) in [
        (json!({ "plan_role_arn": null, "apply_role_arn": null }), "plan_role_arn"),
        (json!({ "oidc_audience": "" }), "oidc_audience"),
        (json!({ "oidc_audience": "two words" }), "oidc_audience"),
        (keys.clone(), "oidc_audience"),
    ] {
        let mut new = trusting_aws();
        new.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, refused) = world.post("aws-accounts", new).await;
        assert_eq!(
            (status, &refused["field"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!(field)),
            "{refused}"
        );
    }
    let (_, made) = world.post("aws-accounts", trusting_aws()).await;
    assert_eq!(
        (&made["oidc_audience"], &made["access_key_id"]["configured"]),
        (&json!(AUDIENCE), &json!(false))
    );
    let path = format!("/api/v1/aws-accounts/{}", made["id"].as_str().unwrap());
    let put = async |body: Value| {
        world.plane.call_with("PUT", &path, &*world.token, body, &[("if-match", "*")]).await
    };
    assert_eq!(put(keys.clone()).await.2["field"], json!("oidc_audience"), "it must be taken away first");
    let mut both = keys;
    both["oidc_audience"] = Value::Null;
    let (status, _, changed) = put(both).await;
    assert_eq!((status, &changed["oidc_audience"]), (StatusCode::OK, &Value::Null));
}
