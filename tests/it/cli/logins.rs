//! Ways of signing in: the browser, and an API key. What a password does is with the sessions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plumbline_core::digest::Sha256Digest;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::emulator::session::client;

use super::server::{EMAIL, FakeServer, Plumb, Reply, tokens};

const KEY: &str = "plb_the-key-of-a-program";

fn connected(server: &FakeServer) {
    let config = json!({ "mode": "both", "oidc_enabled": true, "oidc_issuer": "https://id.test", "cli_loopback": true });
    server.on("GET", "/auth/config", [Reply::json(&config)]);
    server.on("POST", "/auth/oidc/token", [Reply::json(&tokens(1))]);
}

/// A login that printed its address; with the parts of that.
struct Waiting {
    child: tokio::process::Child,
    stderr: tokio::io::Lines<BufReader<tokio::process::ChildStderr>>,
    port: String,
    nonce: String,
}

impl Waiting {
    async fn start(plumb: &Plumb, server: &FakeServer) -> Self {
        let mut command = plumb.command(&["login", "--no-browser"]);
        let mut child = command.stdin(Stdio::null()).spawn().expect("plumb starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped")).lines();
        let address = loop {
            let line = stderr.next_line().await.expect("readable").expect("an address comes");
            if line.starts_with("http") {
                break url::Url::parse(&line).expect("an address");
            }
        };
        let expected = format!("{}/api/v1/auth/oidc/login", server.url());
        assert_eq!(address.as_str().split('?').next(), Some(&*expected));
        let of = |name: &str| {
            address.query_pairs().find(|(known, _)| known == name).expect("there").1.into_owned()
        };
        let (port, nonce) = (of("cli_port"), of("cli_nonce"));
        Self { child, stderr, port, nonce }
    }

    /// What a browser that is sent back brings.
    async fn bring(&self, query: &str) -> u16 {
        let place = format!("http://127.0.0.1:{}/callback?{query}", self.port);
        client().get(place).send().await.expect("an answer").status().as_u16()
    }

    async fn end(mut self) -> (i32, String) {
        let status = self.child.wait().await.expect("plumb ends");
        let mut said = String::new();
        while let Some(line) = self.stderr.next_line().await.expect("readable") {
            said.push_str(&line);
        }
        (status.code().expect("a code"), said)
    }
}

fn files(plumb: &Plumb) -> Vec<PathBuf> {
    let found = std::fs::read_dir(plumb.config().join("sessions")).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end != "lock")).collect()
}

#[tokio::test]
async fn the_code_that_the_browser_brings_is_traded_with_the_secret_whose_digest_went_out() {
    let server = FakeServer::start().await;
    connected(&server);
    let plumb = Plumb::new(&server.url());
    let waiting = Waiting::start(&plumb, &server).await;

    // Other callers in between, one of which says nothing at all.
    let idle =
        tokio::net::TcpStream::connect(format!("127.0.0.1:{}", waiting.port)).await.expect("connected");
    assert_eq!(waiting.bring("code=theirs&nonce=another").await, 404);
    assert_eq!(waiting.bring("code=theirs").await, 404);
    assert_eq!(waiting.bring(&format!("code=the-code&nonce={}", waiting.nonce)).await, 200);
    let nonce = waiting.nonce.clone();
    let (code, said) = waiting.end().await;
    drop(idle);

    assert_eq!(code, 0, "{said}");
    let asked = server.asked("POST", "/auth/oidc/token");
    assert_eq!((asked.len(), &asked[0].body["code"]), (1, &json!("the-code")));
    let secret = asked[0].body["cli_secret"].as_str().expect("a secret");
    assert_eq!(URL_SAFE_NO_PAD.encode(Sha256Digest::of(secret.as_bytes()).0), nonce);
    assert!(asked[0].query.is_empty());
    let kept = files(&plumb);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].metadata().expect("there").permissions().mode() & 0o777, 0o600);
    let session: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&kept[0]).expect("ours")).expect("JSON");
    assert_eq!(session["email"], EMAIL);
    assert_eq!(plumb.run(&["whoami"]).await.code, 0);
}

#[tokio::test]
async fn a_refusal_that_the_browser_brings_is_said_in_words_and_nothing_is_kept() {
    let server = FakeServer::start().await;
    connected(&server);
    let plumb = Plumb::new(&server.url());
    let waiting = Waiting::start(&plumb, &server).await;
    assert_eq!(waiting.bring(&format!("error=oidc-account-disabled&nonce={}", waiting.nonce)).await, 200);
    let (code, said) = waiting.end().await;
    assert_eq!((code, said.as_str()), (1, "error: your account is disabled"));
    assert!(server.asked("POST", "/auth/oidc/token").is_empty() && files(&plumb).is_empty());
}

#[tokio::test]
async fn without_a_provider_or_with_an_address_given_the_password_is_asked_for() {
    let server = FakeServer::start().await;
    let local = json!({ "mode": "local", "oidc_enabled": false, "cli_loopback": false });
    server.on("GET", "/auth/config", [Reply::json(&local)]);
    let plumb = Plumb::new(&server.url());
    let asked = plumb.run(&["login"]).await;
    assert_eq!(asked.code, 2, "{asked:?}");
    assert!(asked.stderr.contains("--email"), "{asked:?}");

    connected(&server);
    let given = plumb.run_with(&["login", "--email", EMAIL, "--password-stdin"], "open please\n").await;
    assert_eq!(given.code, 0, "{given:?}");
    assert_eq!(server.asked("GET", "/auth/config").len(), 1, "whoever names an address is not asked how");
}

#[tokio::test]
async fn an_api_key_is_kept_like_a_session_sent_with_each_call_and_forgotten_at_logout() {
    let server = FakeServer::start().await;
    server.on("GET", "/workspaces", [Reply::json(&json!({ "items": [], "next_cursor": null }))]);
    let plumb = Plumb::signed_in(&server).await;
    server.accept_only(KEY);

    let login = plumb.run_with(&["login", "--api-key-stdin"], &format!("{KEY}\n")).await;
    assert_eq!(login.code, 0, "{login:?}");
    assert!(!login.stdout.contains(KEY) && !login.stderr.contains(KEY), "{login:?}");
    let kept = files(&plumb);
    assert_eq!(kept.len(), 1, "instead of the session: {kept:?}");
    assert_eq!(kept[0].metadata().expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&kept[0]).expect("ours"), KEY);
    assert_eq!(plumb.run(&["workspace", "list"]).await.code, 0);
    let asked = server.asked("GET", "/workspaces");
    assert_eq!(asked[1].header("authorization"), Some(&*format!("Bearer {KEY}")));

    assert_eq!(plumb.run(&["logout"]).await.code, 0);
    assert!(files(&plumb).is_empty());
    assert_eq!(plumb.run(&["workspace", "list"]).await.code, 1);
}

#[tokio::test]
async fn a_key_that_the_server_refuses_is_not_kept_and_ends_no_session() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let before = files(&plumb);
    server.on("GET", "/workspaces", [Reply::problem(401, "api-key-dead", "This API key has ended.")]);
    let login = plumb.run_with(&["login", "--api-key-stdin"], &format!("{KEY}\n")).await;
    assert_eq!((login.code, files(&plumb)), (1, before), "{login:?}");
    let both = plumb.run_with(&["login", "--api-key-stdin", "--password-stdin"], "x\n").await;
    assert_eq!(both.code, 2, "{both:?}");
}
