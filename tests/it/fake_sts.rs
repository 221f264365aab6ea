//! AWS as far as identities and roles go, on loopback: the agent that gives a task its credentials, and an STS that checks
//! signatures, which no emulator does. It makes every signature again with AWS's own signer and compares.

mod roles;
mod web_identity;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use aws_sdk_ecs::config::Credentials as Keys;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use chrono::NaiveDateTime;
use plumbline_sts::{Credentials, StsCallers, TaskRole};
use serde_json::json;
use tokio::sync::Semaphore;

pub use roles::GivenSession;
use roles::Role;
pub use web_identity::Trust;

pub const REGION: &str = "eu-central-1";
pub const HOST: &str = "sts.eu-central-1.amazonaws.com";
/// What every principal's agent wants to see.
const AGENT_TOKEN: &str = "agent-token-agent-token";
/// How old a signature may be.
const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(300);

/// Somebody with credentials.
#[derive(Clone)]
pub struct Principal {
    pub keys: Keys,
    arn: String,
    agent: String,
}

/// What STS answers instead of what it should.
#[derive(Clone)]
pub struct Canned {
    pub status: StatusCode,
    pub location: Option<String>,
    pub body: String,
}

#[derive(Default)]
struct Service {
    principals: BTreeMap<String, Principal>,
    roles: BTreeMap<String, Role>,
    trusts: BTreeMap<String, Trust>,
    sessions: Vec<GivenSession>,
    canned: Option<Canned>,
    requests: usize,
    /// So often the agent still fails.
    agent_failures: usize,
}

/// A running service.
#[derive(Clone)]
pub struct FakeSts {
    pub url: String,
    service: Arc<Mutex<Service>>,
    /// STS answers only while this has a permit to look at.
    gate: Arc<Semaphore>,
}

impl FakeSts {
    pub async fn start() -> Self {
        // The provider can only be installed once; a second time changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let fake = Self { url, service: Arc::default(), gate: Arc::new(Semaphore::new(1)) };
        let router = Router::new()
            .route("/credentials/{key_id}", get(credentials))
            .route("/", any(identify))
            .with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        fake
    }

    /// The control plane's client of this service.
    pub fn callers(&self) -> StsCallers {
        StsCallers::new(REGION, Some(&self.url)).unwrap()
    }

    /// Somebody whom STS calls so.
    pub fn principal(&self, arn: &str) -> Principal {
        let key_id = format!("ASIA{:016}", self.service().principals.len());
        let (secret, token) = (format!("secret of {key_id}"), format!("token/of+{key_id}=="));
        self.principal_with(Keys::new(&key_id, secret, Some(token), None, "a test"), arn)
    }

    /// The same, with these credentials.
    pub fn principal_with(&self, keys: Keys, arn: &str) -> Principal {
        let key_id = keys.access_key_id().to_owned();
        let agent = format!("{}/credentials/{key_id}", self.url);
        let principal = Principal { keys, arn: arn.into(), agent };
        self.service().principals.insert(key_id, principal.clone());
        principal
    }

    /// The task of a role.
    pub fn task(&self, account: &str, role: &str, session: &str) -> Principal {
        self.principal(&format!("arn:aws:sts::{account}:assumed-role/{role}/{session}"))
    }

    /// From now on STS answers this, or the truth again.
    pub fn answer(&self, canned: Option<Canned>) {
        self.service().canned = canned;
    }

    /// The agent fails so often before it gives credentials.
    pub fn fail_agent(&self, times: usize) {
        self.service().agent_failures = times;
    }

    pub fn agent_failures_left(&self) -> usize {
        self.service().agent_failures
    }

    /// How often STS was asked.
    pub fn requests(&self) -> usize {
        self.service().requests
    }

    /// STS takes calls and does not answer them.
    pub async fn hold(&self) {
        self.gate.acquire().await.unwrap().forget();
    }

    /// It answers again.
    pub fn release(&self) {
        self.gate.add_permits(1);
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap()
    }
}

impl Principal {
    /// What ECS puts into the environment of a task with this role.
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", self.agent.as_str()),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", AGENT_TOKEN),
            ("AWS_REGION", REGION),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Its credentials, as an executor reads them.
    pub async fn sign_in(&self) -> Credentials {
        let environment: BTreeMap<String, String> = self.environment().into_iter().collect();
        let role = TaskRole::from_environment(|name| environment.get(name).cloned()).unwrap().unwrap();
        role.credentials().await.unwrap()
    }

    /// AWS's own signature over these headers, beside host, date and token: the header `Authorization`.
    pub fn sign(&self, headers: &[(&str, &str)], body: &str, at: SystemTime, region: &str) -> String {
        let identity = self.keys.clone().into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name("sts")
            .time(at)
            .settings(SigningSettings::default())
            .build()
            .unwrap()
            .into();
        let url = format!("https://{HOST}/");
        let body = SignableBody::Bytes(body.as_bytes());
        let request = SignableRequest::new("POST", &url, headers.iter().copied(), body).unwrap();
        let (instructions, _) = sign(request, &params).unwrap().into_parts();
        let signed = instructions.headers().find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        signed.expect("a signature").1.to_owned()
    }
}

async fn credentials(
    State(fake): State<FakeSts>,
    Path(key_id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let mut service = fake.service();
    if service.agent_failures > 0 {
        service.agent_failures -= 1;
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    if headers.get("authorization").is_none_or(|given| given != AGENT_TOKEN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let keys = &service.principals[&key_id].keys;
    Json(json!({
        "AccessKeyId": keys.access_key_id(),
        "SecretAccessKey": keys.secret_access_key(),
        "Token": keys.session_token(),
        "Expiration": "2099-01-01T00:00:00Z",
        "RoleArn": "arn:aws:iam::123456789012:role/executor",
    }))
    .into_response()
}

async fn identify(
    State(fake): State<FakeSts>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    fake.service().requests += 1;
    let _open = fake.gate.acquire().await.unwrap();
    let canned = fake.service().canned.clone();
    if let Some(Canned { status, location, body }) = canned {
        let location = location.map(|location| [("location", location)]);
        return (status, location, body).into_response();
    }
    let form: BTreeMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    if form.get("Action").is_some_and(|action| action == "AssumeRoleWithWebIdentity") {
        // Nobody signs it: the token says who asks.
        if headers.contains_key("authorization") {
            return said(Err(("InvalidAction", "it is signed".into())));
        }
        return said(match web_identity::judge(&form).await {
            Ok(claims) => web_identity::assume(&mut fake.service(), &fake.url, &claims, &form),
            Err(refused) => Err(refused),
        });
    }
    let mut service = fake.service();
    let answer = match judge(&service, &method, &uri, &headers, &body) {
        Err(code) => Err((code, String::new())),
        Ok(arn) if form["Action"] == "AssumeRole" => roles::assume(&mut service, &fake.url, &arn, &form),
        Ok(arn) => Ok(format!(
            "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">
               <GetCallerIdentityResult><Arn>{arn}</Arn><UserId>AROA:x</UserId><Account>{}</Account>
               </GetCallerIdentityResult>
             </GetCallerIdentityResponse>",
            arn.split(':').nth(4).unwrap_or_default()
        )),
    };
    said(answer)
}

fn said(answer: Result<String, (&'static str, String)>) -> Response {
    match answer {
        Ok(answer) => answer.into_response(),
        Err((code, message)) => {
            let error =
                format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>");
            (StatusCode::FORBIDDEN, format!("<ErrorResponse>{error}</ErrorResponse>")).into_response()
        }
    }
}

/// Who has signed this request, or what is wrong with it.
fn judge(
    service: &Service,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &str,
) -> Result<String, &'static str> {
    let is_known = body == "Action=GetCallerIdentity&Version=2011-06-15"
        || body.starts_with("Action=AssumeRole&Version=2011-06-15&");
    if method != Method::POST || uri != "/" || !is_known {
        return Err("InvalidAction");
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let authorization = header("authorization");
    let field = |name: &str| {
        let (_, rest) = authorization.split_once(name)?;
        rest.split(',').next()
    };
    let credential = field("Credential=").ok_or("IncompleteSignature")?;
    let signed = field("SignedHeaders=").ok_or("IncompleteSignature")?;
    let [key_id, day, region, "sts", "aws4_request"] = credential.split('/').collect::<Vec<_>>()[..] else {
        return Err("IncompleteSignature");
    };
    let principal = service.principals.get(key_id).ok_or("InvalidClientTokenId")?;
    if header("x-amz-security-token") != principal.keys.session_token().unwrap_or_default() {
        return Err("InvalidClientTokenId");
    }
    let date = header("x-amz-date");
    let at = NaiveDateTime::parse_from_str(date, "%Y%m%dT%H%M%SZ").map_err(|_| "IncompleteSignature")?;
    let age = (chrono::Utc::now() - at.and_utc()).abs();
    if age.to_std().is_ok_and(|age| age > SIGNATURE_AGE_MAX) {
        return Err("RequestExpired");
    }
    if !date.starts_with(day) || region != REGION || !signed.split(';').any(|name| name == "host") {
        return Err("SignatureDoesNotMatch");
    }
    // The signer adds date and token itself.
    let by_signer = ["x-amz-date", "x-amz-security-token"];
    let given: Vec<(&str, &str)> =
        signed.split(';').filter(|name| !by_signer.contains(name)).map(|name| (name, header(name))).collect();
    if principal.sign(&given, body, at.and_utc().into(), region) != authorization {
        return Err("SignatureDoesNotMatch");
    }
    Ok(principal.arn.clone())
}
