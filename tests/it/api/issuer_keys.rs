//! Our own issuer: what it publishes, whom it gives tokens, and how its keys change.

mod documents;
mod kms;
mod other_clouds;
mod rotation;
mod tokens;

use http::{Method, StatusCode};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::cloud_accounts::ACCOUNT;
use crate::executors::FakeExecutor;
use crate::plane::{TestPlane, slug};
use crate::world::World;

pub(crate) const AUDIENCE: &str = "sts.amazonaws.com";

/// An account without keys, whose roles trust tokens.
pub(crate) fn trusting_aws() -> Value {
    let role = |name: &str| format!("arn:aws:iam::{ACCOUNT}:role/{name}");
    json!({
        "account_id": ACCOUNT, "name": "payments", "default_region": "eu-central-1", "oidc_audience": AUDIENCE,
        "plan_role_arn": role("plan"), "apply_role_arn": role("apply"),
    })
}

/// A plane that serves its API on loopback, which is its public address: the issuer is on.
pub(crate) async fn served_plane() -> TestPlane {
    let mut plane = TestPlane::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    plane.deps.public_url = format!("http://{}", listener.local_addr().unwrap()).into();
    plane.deps.allow_private_addresses = true;
    let router = plumbline_api::router(plane.as_function(Function::Api));
    tokio::spawn(async move { axum::serve(listener, router).await });
    plane
}

/// A workspace whose runs get into an account that trusts tokens.
pub(crate) async fn trusting_world() -> World {
    let world = World::on(served_plane().await).await;
    let (status, made) = world.post("aws-accounts", trusting_aws()).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    link(&world).await;
    world
}

async fn link(world: &World) {
    link_to(world, json!({ "state_aws_account_id": ACCOUNT })).await;
}

/// Edits the workspace.
async fn link_to(world: &World, body: Value) {
    let path = format!("/api/v1/workspaces/{}", world.workspace);
    let linked = world.plane.call_with("PUT", &path, &*world.token, body, &[("if-match", "*")]).await;
    assert_eq!(linked.0, StatusCode::OK, "{}", linked.2);
}

/// What an attempt is told when it asks for a token.
async fn ask(executor: &FakeExecutor<'_>) -> (StatusCode, Value) {
    ask_for(executor, "aws").await
}

async fn ask_for(executor: &FakeExecutor<'_>, whose: &str) -> (StatusCode, Value) {
    executor.call(Method::POST, "identity-token", json!({ "for": whose })).await
}

/// The attempt's token.
pub(crate) async fn token_of(executor: &FakeExecutor<'_>) -> String {
    let (status, answer) = ask(executor).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["token"].as_str().unwrap().to_owned()
}

/// The documents of an issuer, as a cloud fetches them.
pub(crate) async fn fetch(url: &str) -> Value {
    // An error here means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let answer = reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{url}");
    answer.json().await.unwrap()
}

/// What a cloud does with a token: from its issuer to the discovery document, to the keys, to the signature. Nothing of
/// our own code is in it.
pub(crate) async fn verify(issuer: &str, token: &str, audience: &str) -> Result<Value, String> {
    let discovery = fetch(&format!("{issuer}/.well-known/openid-configuration")).await;
    assert_eq!(discovery["issuer"], issuer);
    let keys = fetch(discovery["jwks_uri"].as_str().unwrap()).await;
    let header = jsonwebtoken::decode_header(token).unwrap();
    assert_eq!(header.alg, Algorithm::RS256);
    let kid = header.kid.unwrap();
    let key = keys["keys"].as_array().unwrap().iter().find(|key| key["kid"] == kid.as_str());
    let Some(key) = key else { return Err("no key of this name is published".into()) };
    let text = |field: &str| key[field].as_str().unwrap();
    let key = DecodingKey::from_rsa_components(text("n"), text("e")).unwrap();
    let mut validation = Validation::new(Algorithm::RS256);
    // The plane's clock may have been moved.
    validation.validate_exp = false;
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[audience]);
    jsonwebtoken::decode::<Value>(token, &key, &validation)
        .map(|data| data.claims)
        .map_err(|error| error.to_string())
}

fn refused(answer: &(StatusCode, Value)) -> (StatusCode, &str) {
    (answer.0, slug(&answer.1))
}
