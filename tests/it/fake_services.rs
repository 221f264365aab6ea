//! Azure, Google, Slack and Infracost, as far as a test of credentials asks them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use getrandom::SysRng;
use http::{HeaderMap, StatusCode};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use rsa::PrivateKey;
use rsa::pkcs8::{EncodePrivateKey as _, LineEnding};
use rsa::traits::PublicKeyParts as _;
use serde_json::{Value, json};

const TOKEN: &str = "eyJ-planted-access-token";

/// How all of them answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// As documented.
    Right,
    /// Everybody is sent elsewhere.
    Redirects,
    /// They are broken.
    Fails,
    /// 200, and nothing that could be read.
    Babbles,
    /// More than anybody reads.
    Floods,
    /// They hang up without an answer.
    HangsUp,
    /// They never answer.
    Waits,
}

/// The services.
#[derive(Clone)]
pub struct FakeServices {
    pub url: String,
    inner: Arc<Inner>,
}

struct Inner {
    azure_secret: String,
    bot_token: String,
    infracost_key: String,
    key: PrivateKey,
    knows_key: Mutex<bool>,
    mood: Mutex<Mood>,
    asked: AtomicUsize,
    elsewhere: AtomicUsize,
}

impl FakeServices {
    /// Starts them; each knows one secret.
    pub async fn start(azure_secret: &str, bot_token: &str, infracost_key: &str) -> Self {
        let inner = Arc::new(Inner {
            azure_secret: azure_secret.into(),
            bot_token: bot_token.into(),
            infracost_key: infracost_key.into(),
            key: PrivateKey::new(&mut SysRng, 2048).unwrap(),
            knows_key: Mutex::new(true),
            mood: Mutex::new(Mood::Right),
            asked: AtomicUsize::new(0),
            elsewhere: AtomicUsize::new(0),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let services = Router::new()
            .route("/login/{tenant}/oauth2/v2.0/token", post(login))
            .route("/azure/subscriptions/{id}", get(subscription))
            .route("/google/token", post(google))
            .route("/slack/auth.test", post(slack))
            .route("/infracost/graphql", post(infracost))
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&inner), moody));
        let router = services.route("/elsewhere", any(elsewhere)).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, inner }
    }

    /// From now on all answer so.
    pub fn be(&self, mood: Mood) {
        *self.inner.mood.lock().unwrap() = mood;
    }

    /// How often anybody asked.
    pub fn asked(&self) -> usize {
        self.inner.asked.load(Ordering::SeqCst)
    }

    /// How often a redirect was followed.
    pub fn elsewhere(&self) -> usize {
        self.inner.elsewhere.load(Ordering::SeqCst)
    }

    /// The file of a key that Google knows.
    pub fn service_account(&self, project: &str) -> String {
        let pem = self.inner.key.to_pkcs8_pem(LineEnding::LF).unwrap();
        json!({
            "type": "service_account", "project_id": project, "private_key_id": "0123456789abcd",
            "private_key": pem.as_str(), "client_email": format!("plumbline@{project}.iam.gserviceaccount.com"),
            "token_uri": "https://oauth2.googleapis.com/token",
        })
        .to_string()
    }

    /// Somebody deletes that key at Google.
    pub fn forget_service_account(&self) {
        *self.inner.knows_key.lock().unwrap() = false;
    }
}

async fn moody(
    State(inner): State<Arc<Inner>>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    inner.asked.fetch_add(1, Ordering::SeqCst);
    let mood = *inner.mood.lock().unwrap();
    match mood {
        Mood::Right => next.run(request).await,
        Mood::Redirects => (StatusCode::FOUND, [("location", "/elsewhere")]).into_response(),
        Mood::Fails => (StatusCode::SERVICE_UNAVAILABLE, "hunter2 of a stack trace").into_response(),
        Mood::Babbles => "<html>hunter2</html>".into_response(),
        Mood::Floods => "x".repeat(1 << 20).into_response(),
        // The connection ends before the answer does.
        Mood::HangsUp => {
            let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("gone")) });
            axum::body::Body::from_stream(broken).into_response()
        }
        Mood::Waits => std::future::pending().await,
    }
}

async fn elsewhere(State(inner): State<Arc<Inner>>) -> &'static str {
    inner.elsewhere.fetch_add(1, Ordering::SeqCst);
    "{\"access_token\": \"x\", \"ok\": true}"
}

fn form(body: &Bytes) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(body).into_owned().collect()
}

async fn login(State(inner): State<Arc<Inner>>, body: Bytes) -> Response {
    let form = form(&body);
    let is_right = form["client_secret"] == inner.azure_secret
        && form["grant_type"] == "client_credentials"
        && form["scope"].ends_with("/azure/.default");
    if is_right {
        return axum::Json(json!({ "token_type": "Bearer", "access_token": TOKEN })).into_response();
    }
    let said = "AADSTS7000215: Invalid client secret provided. Trace ID: hunter2";
    let body = json!({ "error": "invalid_client", "error_description": said });
    (StatusCode::UNAUTHORIZED, axum::Json(body)).into_response()
}

async fn subscription(headers: HeaderMap, Path(id): Path<String>) -> Response {
    if headers.get("authorization").is_none_or(|value| *value != *format!("Bearer {TOKEN}")) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if id != "0f9619ff-8b86-d011-b42d-00cf4fc964ff" {
        return (StatusCode::FORBIDDEN, "{\"error\":{\"code\":\"AuthorizationFailed\"}}").into_response();
    }
    axum::Json(json!({ "subscriptionId": id, "displayName": "Payments (prod)" })).into_response()
}

/// Believes what its key has signed for it, as a library finds it.
async fn google(State(inner): State<Arc<Inner>>, body: Bytes) -> Response {
    let form = form(&body);
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let part = |bytes: Box<[u8]>| URL_SAFE_NO_PAD.encode(bytes);
    let (n, e) = (part(inner.key.n_bytes()), part(inner.key.e_bytes()));
    let mut validation = Validation::new(Algorithm::RS256);
    validation.set_audience(&["https://oauth2.googleapis.com/token"]);
    let key = DecodingKey::from_rsa_components(&n, &e).unwrap();
    let claims = jsonwebtoken::decode::<Value>(&form["assertion"], &key, &validation);
    match claims {
        Ok(data) if *inner.knows_key.lock().unwrap() => {
            assert!(data.claims["scope"].as_str().is_some_and(|scope| scope.ends_with("read-only")));
            axum::Json(json!({ "access_token": TOKEN, "expires_in": 3599 })).into_response()
        }
        _ => {
            let body =
                json!({ "error": "invalid_grant", "error_description": "Invalid JWT Signature. hunter2" });
            (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
        }
    }
}

async fn slack(State(inner): State<Arc<Inner>>, headers: HeaderMap) -> Response {
    let wanted = format!("Bearer {}", inner.bot_token);
    let is_right = headers.get("authorization").is_some_and(|value| *value == *wanted);
    axum::Json(if is_right {
        json!({ "ok": true, "team": "Acme", "user": "plumbline" })
    } else {
        json!({ "ok": false, "error": "invalid_auth" })
    })
    .into_response()
}

async fn infracost(State(inner): State<Arc<Inner>>, headers: HeaderMap, body: Bytes) -> Response {
    let is_right = headers.get("x-api-key").is_some_and(|value| *value == *inner.infracost_key);
    if !is_right {
        return (StatusCode::FORBIDDEN, "{\"error\":\"Invalid API key\"}").into_response();
    }
    let queries: Vec<Value> = serde_json::from_slice(&body).unwrap();
    axum::Json(queries.iter().map(|_| json!({ "data": {} })).collect::<Vec<_>>()).into_response()
}
