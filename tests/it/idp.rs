//! A small identity provider on loopback: it publishes its keys and signs real RS256 tokens, also wrong ones; it signs
//! people in, and misbehaves on request.

mod flow;

use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use flow::Flow;
pub use flow::{CLIENT_ID, CLIENT_SECRET, Fault};

/// How it answers when it is asked for its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mood {
    /// As documented.
    Right,
    /// With this status and nothing else.
    Fails(u16),
    /// Everybody is sent to this address.
    Redirects(String),
    /// Its document names this issuer.
    Pretends(String),
    /// Its document says that its keys lie here.
    KeysAt(String),
    /// Its keys are a flood of bytes.
    Floods,
    /// Its keys are no keys.
    Babbles,
    /// Its keys have these fields, too.
    Publishes(Value),
    /// It takes the call and says nothing.
    Hangs,
    /// People are to be sent here.
    SendsTo(String),
}

/// A key that signs, and what is published of it.
#[derive(Clone)]
struct Key {
    id: String,
    der: Vec<u8>,
    jwk: Value,
}

struct Inner {
    mood: Mood,
    signing: Key,
    published: Vec<Value>,
    asked: usize,
    flow: Flow,
}

/// A running provider.
#[derive(Clone)]
pub struct Idp {
    /// Its address, which is its name.
    pub issuer: String,
    inner: Arc<Mutex<Inner>>,
}

impl Idp {
    /// `None`, with the reason printed, where there is no `openssl` to make keys with.
    pub async fn start() -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("SKIP: openssl is not on the PATH");
            return None;
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let key = new_key("first");
        let published = vec![key.jwk.clone()];
        let flow = Flow::default();
        let inner = Inner { mood: Mood::Right, signing: key, published, asked: 0, flow };
        let idp = Self { issuer, inner: Arc::new(Mutex::new(inner)) };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .merge(flow::routes())
            .with_state(idp.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Some(idp)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Changes how it answers.
    pub fn set_mood(&self, mood: Mood) {
        self.inner().mood = mood;
    }

    /// How often it was asked for a document.
    pub fn asked(&self) -> usize {
        self.inner().asked
    }

    /// Signs with another key from now on, and publishes only that one.
    pub fn rotate(&self) {
        let key = new_key("second");
        let mut inner = self.inner();
        inner.published = vec![key.jwk.clone()];
        inner.signing = key;
    }

    /// A token with these claims, signed as it should be.
    pub fn sign(&self, claims: &Value) -> String {
        let id = self.inner().signing.id.clone();
        self.sign_as(claims, Some(&id))
    }

    /// A token that names another key than the one that signs, or none.
    pub fn sign_as(&self, claims: &Value, key_id: Option<&str>) -> String {
        let mut header = Header::new(Algorithm::RS256);
        header.kid = key_id.map(str::to_owned);
        let key = EncodingKey::from_rsa_der(&self.inner().signing.der);
        jsonwebtoken::encode(&header, claims, &key).unwrap()
    }

    /// A token signed by a stranger's key under the id of the published one.
    pub fn forge(&self, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(self.inner().signing.id.clone());
        let stranger = new_key("stranger");
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_rsa_der(&stranger.der)).unwrap()
    }

    /// A token that uses the published key as a shared secret.
    pub fn sign_with_public_key(&self, claims: &Value) -> String {
        let inner = self.inner();
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(inner.signing.id.clone());
        let secret = inner.signing.jwk["n"].as_str().unwrap().as_bytes();
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(secret).unwrap()).unwrap()
    }

    /// A token that says it needs no signature.
    pub fn unsigned(&self, claims: &Value) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({ "alg": "none", "typ": "JWT", "kid": self.inner().signing.id });
        format!("{}.{}.", part(header), part(claims.clone()))
    }
}

async fn configuration(State(idp): State<Idp>) -> Response {
    let mood = {
        let mut inner = idp.inner();
        inner.asked += 1;
        inner.mood.clone()
    };
    let mut document = flow::document(&idp.issuer);
    match mood {
        Mood::Fails(status) => return StatusCode::from_u16(status).unwrap().into_response(),
        Mood::Redirects(to) => return (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Mood::Hangs => std::future::pending().await,
        Mood::Pretends(issuer) => document["issuer"] = json!(issuer),
        Mood::KeysAt(place) => document["jwks_uri"] = json!(place),
        Mood::SendsTo(place) => document["authorization_endpoint"] = json!(place),
        Mood::Right | Mood::Floods | Mood::Babbles | Mood::Publishes(_) => {}
    }
    Json(document).into_response()
}

async fn keys(State(idp): State<Idp>) -> Response {
    let inner = idp.inner();
    match &inner.mood {
        Mood::Floods => vec![b' '; 2 << 20].into_response(),
        Mood::Babbles => Json(json!({ "keys": "many" })).into_response(),
        Mood::Publishes(fields) => {
            let mut published = inner.published.clone();
            for key in &mut published {
                key.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            }
            Json(json!({ "keys": published })).into_response()
        }
        _ => Json(json!({ "keys": inner.published })).into_response(),
    }
}

fn new_key(id: &str) -> Key {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    openssl(&["genrsa", "-traditional", "-out", &at("pem"), "2048"]);
    openssl(&["rsa", "-in", &at("pem"), "-traditional", "-outform", "DER", "-out", &at("der")]);
    let modulus = openssl(&["rsa", "-in", &at("pem"), "-noout", "-modulus"]);
    let modulus = hex::decode(modulus.trim().trim_start_matches("Modulus=")).unwrap();
    let der = std::fs::read(at("der")).unwrap();
    let id = format!("{id}-{}", hex::encode(&modulus[..4]));
    let n = URL_SAFE_NO_PAD.encode(&modulus);
    let jwk = json!({ "kty": "RSA", "use": "sig", "alg": "RS256", "kid": id, "n": n, "e": "AQAB" });
    Key { id, der, jwk }
}

fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
