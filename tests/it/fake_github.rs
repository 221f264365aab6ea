//! The part of GitHub's API that hands out installation tokens. It believes nobody whose assertion openssl does not
//! find signed by the app's key.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{StatusCode, header};
use serde_json::{Value, json};

/// The app that it knows.
pub const APP_ID: &str = "Iv1.plumbline";
/// Its installation.
pub const INSTALLATION_ID: i64 = 4711;
/// What it hands out.
pub const TOKEN: &str = "ghs_plantedInstallationToken0123456789";
/// The login of its Git server.
pub const LOGIN: &str = "x-access-token:ghs_plantedInstallationToken0123456789";
const MINUTES_10: u64 = 600;

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// As documented.
    Right,
    /// Everybody is sent elsewhere.
    Redirects,
    /// It is broken.
    Fails,
    /// Its answers have no token.
    Babbles,
}

/// A path, the body, and whether the assertion was good.
pub type Asked = (String, Value, Result<(), String>);

/// The fake API.
#[derive(Clone)]
pub struct FakeGithub {
    /// Its address.
    pub url: String,
    /// What it was asked.
    pub asked: Arc<Mutex<Vec<Asked>>>,
    /// How it answers.
    pub mood: Arc<Mutex<Mood>>,
    keys: Arc<tempfile::TempDir>,
}

impl FakeGithub {
    /// `None`, with the reason printed, where there is no `openssl`.
    pub async fn start() -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("SKIP: openssl is not on the PATH");
            return None;
        }
        let keys = Arc::new(tempfile::tempdir().unwrap());
        for name in ["app", "stranger"] {
            let at = |ending: &str| keys.path().join(format!("{name}.{ending}")).display().to_string();
            openssl(&["genrsa", "-traditional", "-out", &at("pem"), "2048"]);
            openssl(&["rsa", "-in", &at("pem"), "-pubout", "-out", &at("pub")]);
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mood = Arc::new(Mutex::new(Mood::Right));
        let fake = Self { url, asked: Arc::default(), mood, keys };
        let router = Router::new().fallback(answer).with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Some(fake)
    }

    /// The app's private key.
    pub fn private_key(&self) -> String {
        std::fs::read_to_string(self.key("app.pem")).unwrap()
    }

    /// A key that is not the app's.
    pub fn strange_key(&self) -> String {
        std::fs::read_to_string(self.key("stranger.pem")).unwrap()
    }

    fn key(&self, name: &str) -> PathBuf {
        self.keys.path().join(name)
    }
}

fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

async fn answer(State(fake): State<FakeGithub>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
    let method = request.method().clone();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let judged = judge(&bearer, fake.keys.path());
    fake.asked.lock().unwrap().push((path.clone(), body, judged.clone()));
    match *fake.mood.lock().unwrap() {
        Mood::Redirects => {
            return (StatusCode::FOUND, [(header::LOCATION, fake.url.clone())]).into_response();
        }
        Mood::Fails => return StatusCode::BAD_GATEWAY.into_response(),
        Mood::Babbles => return (StatusCode::CREATED, "{\"token\":\"a\\nb\"}").into_response(),
        Mood::Right => {}
    }
    if judged.is_err() {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if method != "POST" || path != format!("/app/installations/{INSTALLATION_ID}/access_tokens") {
        return StatusCode::NOT_FOUND.into_response();
    }
    let made = json!({ "token": TOKEN, "expires_at": "2099-01-01T00:00:00Z" });
    (StatusCode::CREATED, made.to_string()).into_response()
}

/// What GitHub checks of an assertion.
fn judge(token: &str, keys: &Path) -> Result<(), String> {
    let [head, claims, signature] = token.split('.').collect::<Vec<_>>()[..] else {
        return Err("it has not three parts".into());
    };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|error| error.to_string());
    let read = |part: &str| -> Result<Value, String> {
        serde_json::from_slice(&decode(part)?).map_err(|error| error.to_string())
    };
    if read(head)? != json!({ "alg": "RS256", "typ": "JWT" }) {
        return Err("its algorithm is not RS256".into());
    }
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    std::fs::write(at("signed"), format!("{head}.{claims}")).unwrap();
    std::fs::write(at("signature"), decode(signature)?).unwrap();
    let public = keys.join("app.pub").display().to_string();
    let arguments = ["dgst", "-sha256", "-verify", &public, "-signature", &at("signature"), &at("signed")];
    let verified = Command::new("openssl").args(arguments).output().unwrap();
    if !verified.status.success() {
        return Err("its signature is not the app's".into());
    }
    let claims = read(claims)?;
    let number = |name: &str| claims[name].as_u64().ok_or(format!("it has no {name}"));
    let (iat, exp) = (number("iat")?, number("exp")?);
    let now = u64::try_from(chrono::Utc::now().timestamp()).unwrap();
    if claims["iss"] != APP_ID {
        return Err(format!("its issuer is {}", claims["iss"]));
    }
    if iat > now || exp <= now || exp > now + MINUTES_10 || exp - iat > MINUTES_10 {
        return Err(format!("it is good from {iat} to {exp}, and it is {now}"));
    }
    Ok(())
}
