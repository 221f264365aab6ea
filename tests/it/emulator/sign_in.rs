//! Signing in through the identity provider with the real programs: a browser, the command line, and what stands in the
//! logs afterwards.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::program::{Up, command, eventually, scratch};
use crate::cli::server::Plumb;
use crate::idp::{CLIENT_ID, CLIENT_SECRET, Idp};

/// A browser that goes where it is sent one step at a time, and remembers what it was given.
struct Browser {
    http: reqwest::Client,
    /// What nobody else may learn.
    secrets: Vec<String>,
}

impl Browser {
    fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        Self { http: http.expect("a client"), secrets: Vec::new() }
    }

    async fn get(&mut self, address: &str, cookie: Option<&str>) -> (String, Option<String>) {
        let mut request = self.http.get(address).header("accept", "text/html");
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        let answer = request.send().await.expect("an answer");
        let header =
            |name: &str| answer.headers().get(name).map(|value| value.to_str().expect("text").to_owned());
        let location = header("location").unwrap_or_else(|| panic!("{address}: {}", answer.status()));
        let cookie = header("set-cookie").and_then(|set| set.split(';').next().map(str::to_owned));
        for part in location.split(['?', '&', '#']) {
            if let Some((name, value)) = part.split_once('=') {
                let is_secret = ["code", "state", "nonce", "code_challenge"].contains(&name);
                self.secrets.extend(is_secret.then(|| value.to_owned()));
            }
        }
        (location, cookie)
    }

    /// From our page for signing in to the provider and back, up to where we send it then.
    async fn sign_in(&mut self, address: &str) -> String {
        let (provider, cookie) = self.get(address, None).await;
        let cookie = cookie.expect("a cookie");
        self.secrets.push(cookie.split_once('=').expect("a pair").1.to_owned());
        let (back, _) = self.get(&provider, None).await;
        self.get(&back, Some(&cookie)).await.0
    }

    async fn trade(&self, server: &str, body: Value) -> (u16, Value) {
        let answer = self.http.post(format!("{server}/api/v1/auth/oidc/token")).json(&body).send().await;
        let answer = answer.expect("an answer");
        (answer.status().as_u16(), answer.json().await.expect("JSON"))
    }

    fn remember(&mut self, tokens: &Value) {
        for name in ["access_token", "refresh_token"] {
            self.secrets.push(tokens[name].as_str().expect("a token").to_owned());
        }
    }
}

async fn connected(idp: &Idp, directory: &Path) -> Up {
    let text = directory.to_str().expect("UTF-8");
    let mut up =
        command(&["up", "--lambda", "--fsync", "off", "--port", "0", "--store-port", "0", "--pg-port", "0"]);
    up.args(["--dir", text, "--cache", &format!("{text}-cache")])
        .env("AUTH_PROVIDER", "oidc")
        .env("AUTH_OIDC_ISSUER", &idp.issuer)
        .env("AUTH_OIDC_CLIENT_ID", CLIENT_ID)
        .env("AUTH_OIDC_CLIENT_SECRET", CLIENT_SECRET)
        .env("AUTH_OIDC_ROLE_MAPPING", r#"{"engineers": {"default": "operator"}}"#);
    Up::spawn(up, directory).await
}

/// A program that a command line takes for a browser: it writes down what it is to show.
fn browser_program(directory: &Path) -> std::path::PathBuf {
    let program = directory.join("browser");
    std::fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$1\" > \"$0.said\"\n").expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("ours");
    program
}

async fn shown(program: &Path) -> String {
    let said = program.with_extension("said");
    eventually("the browser is opened", || {
        std::fs::read_to_string(&said).is_ok_and(|text| text.ends_with('\n'))
    })
    .await;
    std::fs::read_to_string(said).expect("it was there").trim().to_owned()
}

#[tokio::test]
async fn a_browser_and_the_command_line_sign_in_and_no_log_of_any_function_holds_a_code_or_a_token() {
    let Some(idp) = Idp::start().await else { return };
    idp.person(json!({
        "sub": "ada-1", "email": "ada@plumbline.test", "email_verified": true, "groups": ["Engineers"],
    }));
    let scratch = scratch();
    let up = connected(&idp, &scratch.path().join("home")).await;
    let server = up.facts().url;
    let mut browser = Browser::new();

    let end = browser.sign_in(&format!("{server}/api/v1/auth/oidc/login")).await;
    let code = end.strip_prefix(&format!("{server}/auth/oidc-finish#code=")).expect(&end);
    let (status, tokens) = browser.trade(&server, json!({ "code": code })).await;
    assert_eq!(status, 200, "{tokens}");
    browser.remember(&tokens);
    let page = browser.http.get(format!("{server}/auth/oidc-finish")).send().await.expect("an answer");
    assert_eq!(page.status(), 200);

    // The command line, whose code somebody on the way copies.
    let plumb = Plumb::new(&server);
    let program = browser_program(scratch.path());
    let child = plumb.command(&["login"]).env("BROWSER", &program).spawn().expect("plumb starts");
    let address = shown(&program).await;
    let end = browser.sign_in(&address).await;
    let place = url::Url::parse(&end).expect("an address");
    assert_eq!((place.host_str(), place.path()), (Some("127.0.0.1"), "/callback"));
    let code = place.query_pairs().find(|(name, _)| name == "code").expect("a code").1.into_owned();
    for stolen in [json!({ "code": code }), json!({ "code": code, "cli_secret": "a guess" })] {
        assert_eq!(browser.trade(&server, stolen).await.0, 401, "worth nothing without the secret");
    }
    let other = end.replace("nonce=", "nonce=x");
    assert_eq!(browser.http.get(other).send().await.expect("an answer").status(), 404, "of another sign-in");
    let told = browser.http.get(&end).send().await.expect("an answer").text().await.expect("a page");
    assert!(told.contains("in your terminal"), "{told}");
    let ran = crate::cli::server::ran(child.wait_with_output().await.expect("plumb ends"));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("as ada@plumbline.test."), "{ran:?}");

    let kept: Vec<_> = std::fs::read_dir(plumb.config().join("sessions")).expect("made").flatten().collect();
    let [session] = &kept[..] else { panic!("one file: {kept:?}") };
    assert_eq!(session.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    browser.remember(&serde_json::from_slice(&std::fs::read(session.path()).expect("ours")).expect("JSON"));
    let who = plumb.run(&["whoami"]).await;
    assert!(who.code == 0 && who.stdout.contains("operator"), "{who:?}");

    let logs = up.log() + &up.out();
    for route in ["/api/v1/auth/oidc/login", "/api/v1/auth/oidc/callback", "/api/v1/auth/oidc/token"] {
        assert!(logs.contains(route), "the log says that {route} was asked:\n{logs}");
    }
    browser.secrets.push(CLIENT_SECRET.to_owned());
    for secret in &browser.secrets {
        assert!(secret.len() >= 20 && !logs.contains(secret.as_str()), "{secret} stands in a log");
        let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        assert!(!logs.contains(&encoded), "{secret} stands in a log");
    }
}
