//! A server that answers from a script and remembers what it was asked, and `plumb` as a process in front of it.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

/// Who the fake server says is signed in.
pub const EMAIL: &str = "ada@example.com";
/// Appears in every token, so that a test can look for any of them.
pub const TOKEN_MARK: &str = "sesame";
const BODY_BYTES_MAX: usize = 1 << 20;

/// One answer.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Reply {
    pub fn json(body: &Value) -> Self {
        Self::status(200, body)
    }

    pub fn status(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".into())],
            body: body.to_string().into(),
        }
    }

    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub fn bytes(body: Vec<u8>) -> Self {
        Self { status: 200, headers: Vec::new(), body }
    }

    pub fn problem(status: u16, slug: &str, detail: &str) -> Self {
        let kind = format!("urn:plumbline:problem:{slug}");
        let body = json!({ "type": kind, "title": slug, "status": status, "detail": detail });
        Self::status(status, &body)
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

#[derive(Default)]
struct Script {
    /// The last reply of a route stays.
    replies: HashMap<(Method, String), VecDeque<Reply>>,
    asked: Vec<Asked>,
    /// Access tokens that are accepted; empty accepts all.
    accepted: Vec<String>,
}

/// The scripted server.
#[derive(Clone)]
pub struct FakeServer {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl FakeServer {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let script = Arc::new(Mutex::new(Script::default()));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let server = Self { address, script };
        server.on("POST", "/auth/token", [Reply::json(&tokens(1))]);
        server.on("GET", "/me", [Reply::json(&me())]);
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Scripts a route; of several replies each is given once, the last for ever.
    pub fn on(&self, method: &str, path: &str, replies: impl IntoIterator<Item = Reply>) {
        let method = method.parse().expect("a method");
        let path = if path.starts_with("/raw/") { path.into() } else { format!("/api/v1{path}") };
        self.script
            .lock()
            .expect("not poisoned")
            .replies
            .insert((method, path), replies.into_iter().collect());
    }

    /// From now on only this access token is accepted.
    pub fn accept_only(&self, token: &str) {
        self.script.lock().expect("not poisoned").accepted = vec![token.into()];
    }

    /// What was asked so far, of one route.
    pub fn asked(&self, method: &str, path: &str) -> Vec<Asked> {
        let script = self.script.lock().expect("not poisoned");
        let of_route =
            |asked: &&Asked| asked.method == method && asked.path.trim_start_matches("/api/v1") == path;
        script.asked.iter().filter(of_route).cloned().collect()
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES_MAX).await.unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let mut script = script.lock().expect("not poisoned");
    let bearer = parts.headers.get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
    script.asked.push(Asked {
        method: parts.method.clone(),
        path: path.clone(),
        query: parts.uri.query().unwrap_or_default().into(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let open = path.starts_with("/api/v1/auth/") || path.starts_with("/raw/") || script.accepted.is_empty();
    let known =
        bearer.is_some_and(|bearer| script.accepted.iter().any(|token| bearer == format!("Bearer {token}")));
    let reply = if open || known {
        match script.replies.get_mut(&(parts.method, path)) {
            Some(replies) if replies.len() > 1 => replies.pop_front().expect("more than one"),
            Some(replies) => replies.front().cloned().unwrap_or_else(|| Reply::empty(204)),
            None => Reply::problem(404, "not-found", "There is no such thing here."),
        }
    } else {
        Reply::problem(401, "unauthenticated", "The token is not valid.")
    };
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).expect("a status");
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().expect("a header"));
    }
    response
}

/// The `n`th pair of tokens.
pub fn tokens(n: u32) -> Value {
    json!({ "access_token": format!("access-{TOKEN_MARK}-{n}"), "refresh_token": format!("refresh-{TOKEN_MARK}-{n}"),
            "token_type": "bearer", "expires_in": 900 })
}

fn me() -> Value {
    json!({ "id": "0190f3c2-0000-7000-8000-000000000001", "email": EMAIL, "display_name": "Ada", "is_superadmin": false,
            "memberships": [{ "business_unit_id": "0190f3c2-0000-7000-8000-000000000002", "slug": "default",
                              "name": "Default", "role": "admin" }] })
}

/// `plumb` on a machine of its own.
pub struct Plumb {
    server: String,
    pub home: tempfile::TempDir,
}

/// What one call of `plumb` left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Stdout as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Plumb {
    pub fn new(server: &str) -> Self {
        Self { server: server.into(), home: tempfile::tempdir().expect("a directory") }
    }

    /// Signed in already.
    pub async fn signed_in(server: &FakeServer) -> Self {
        let plumb = Self::new(&server.url());
        let ran = plumb.run_with(&["login", "--email", EMAIL, "--password-stdin"], "open please\n").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        plumb
    }

    pub fn config(&self) -> &Path {
        self.home.path()
    }

    /// The process, not started yet; no terminal anywhere.
    pub fn command(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_plumb-under-test"));
        command
            .args(arguments)
            .env_clear()
            .env("PLUMB_CONFIG_DIR", self.config())
            .env("PLUMB_SERVER", &self.server)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "").await
    }

    /// With something on stdin. No call may show a token.
    pub async fn run_with(&self, arguments: &[&str], stdin: &str) -> Ran {
        let mut child = self.command(arguments).spawn().expect("plumb starts");
        let mut pipe = child.stdin.take().expect("piped");
        let _ = pipe.write_all(stdin.as_bytes()).await;
        drop(pipe);
        ran(child.wait_with_output().await.expect("plumb ends"))
    }
}

/// Reads what a process left, and refuses a token in it.
pub fn ran(output: Output) -> Ran {
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into(),
        stderr: String::from_utf8_lossy(&output.stderr).into(),
    };
    assert!(
        !ran.stdout.contains(TOKEN_MARK) && !ran.stderr.contains(TOKEN_MARK),
        "a token was printed: {ran:?}"
    );
    ran
}
