//! The whole product with everything written down: what was planted, and what was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use http::Method;
use plumbline_core::db::{Connect, Db, PgMode};
use serde_json::{Value, json};

use crate::emulator::program::{Up, command};
use crate::emulator::session::client;

/// What every planted secret has in it.
pub const MARK: &str = "pl4nted";

/// A run may wait for another one, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(180);
/// As much as any part of the product, and any crate below it, ever says.
const LOG: &str = "trace";

/// A secret that nobody may find again.
struct Secret {
    /// What the scanner looks for: the part that no encoding for texts changes.
    needle: String,
    /// The answers that hand it out.
    given_in: BTreeSet<usize>,
}

/// What a request was answered with.
pub struct Answer {
    /// The request.
    pub what: String,
    /// Status line, headers and body.
    pub bytes: Vec<u8>,
}

/// A running emulator, and all that was done with it.
pub struct Stage {
    pub up: Up,
    pub home: PathBuf,
    pub admin: String,
    http: reqwest::Client,
    answers: Mutex<Vec<Answer>>,
    secrets: Mutex<BTreeMap<String, Secret>>,
    fields: Mutex<BTreeSet<String>>,
}

async fn start(home: &Path) -> Up {
    let text = home.to_str().unwrap();
    let mut up = command(&["up", "--fsync", "off", "--lambda", "--gateway", "open", "--sweep-seconds", "1"]);
    up.args(["--port", "0", "--store-port", "0", "--pg-port", "0", "--log", "json"]);
    up.args(["--dir", text, "--cache", &format!("{text}-cache")])
        .env("PLUMBLINE_LOG", LOG)
        .env("RUST_LOG", LOG);
    Up::spawn(up, home).await
}

impl Stage {
    /// Starts it, and signs in as the admin.
    pub async fn start(home: &Path) -> Self {
        let mut stage = Self {
            up: start(home).await,
            home: home.to_owned(),
            admin: String::new(),
            http: client(),
            answers: Mutex::default(),
            secrets: Mutex::default(),
            fields: Mutex::default(),
        };
        for (name, file) in [
            ("the admin's password", "admin-password"),
            ("the root key", "root-key"),
            ("the password of Postgres", "postgres-password"),
            ("the key of the object store", "store-secret"),
        ] {
            stage.know(name, &stage.file(file));
        }
        let email = stage.up.facts().admin_email;
        stage.admin = stage.sign_in(&email, &stage.file("admin-password")).await;
        stage
    }

    /// Stops it, and starts it again with another log.
    pub async fn restart(&mut self, change: impl FnOnce(&Path)) {
        let log = self.home.with_extension("log");
        self.up.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(self.up.ended().await, Some(0));
        std::fs::rename(&log, self.home.with_extension(format!("{}.log", self.up.pid()))).unwrap();
        change(&self.home);
        self.up = start(&self.home).await;
    }

    /// What a file of the emulator's directory says.
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.join(name)).unwrap().trim().to_owned()
    }

    /// The database, as its owner.
    pub fn database_url(&self) -> String {
        let password = self.file("postgres-password");
        format!("postgres://postgres:{password}@127.0.0.1:{}/plumbline", self.up.facts().postgres_port)
    }

    pub fn db(&self) -> Db {
        Db::new(&Connect { url: self.database_url(), pool_size: 1, mode: PgMode::Direct }).unwrap()
    }

    /// Makes a secret for a field of the API. It has signs that every encoding changes around a part that none does.
    pub fn plant(&self, field: &str, what: &str) -> String {
        format!("{}/+=&%\"\\~", self.plant_plain(field, what))
    }

    /// The same of letters and digits alone.
    pub fn plant_plain(&self, field: &str, what: &str) -> String {
        let core = format!("{MARK}{}", &uuid::Uuid::new_v4().simple().to_string()[..17]);
        self.plant_this(field, what, &core);
        core
    }

    /// A secret whose shape is not ours to choose, for a field of the API.
    pub fn plant_this(&self, field: &str, what: &str, needle: &str) {
        self.fields.lock().unwrap().insert(field.to_owned());
        self.know(&format!("{field}: {what}"), needle);
    }

    /// A secret that is no field's.
    pub fn know(&self, name: &str, needle: &str) {
        let secret = Secret { needle: needle.to_owned(), given_in: BTreeSet::new() };
        assert!(
            self.secrets.lock().unwrap().insert(name.to_owned(), secret).is_none(),
            "{name} is planted twice"
        );
    }

    /// A secret that the last answer hands to who asked for it. Its end is what nobody may find: beginnings are shown.
    pub fn given(&self, field: &str, what: &str, text: &Value) -> String {
        let text = text.as_str().unwrap_or_else(|| panic!("{field}: {text}")).to_owned();
        let end = text.rsplit('.').next().unwrap();
        self.plant_this(field, what, &end[end.len().saturating_sub(24)..]);
        let given_in = self.answers.lock().unwrap().len() - 1;
        self.secrets.lock().unwrap().get_mut(&format!("{field}: {what}")).unwrap().given_in.insert(given_in);
        text
    }

    /// Names and needles of everything that was planted.
    pub fn needles(&self) -> Vec<(String, String)> {
        self.secrets
            .lock()
            .unwrap()
            .iter()
            .map(|(name, secret)| (name.clone(), secret.needle.clone()))
            .collect()
    }

    /// Every field that a secret was planted in.
    pub fn fields(&self) -> BTreeSet<String> {
        self.fields.lock().unwrap().clone()
    }

    /// Every answer, with the secrets that it hands out.
    pub fn answers(&self) -> Vec<(Answer, BTreeSet<String>)> {
        let secrets = self.secrets.lock().unwrap();
        // The same text may have several names: it is given out and then used.
        let given = |at: usize| {
            let of_it: BTreeSet<&str> =
                secrets.values().filter(|one| one.given_in.contains(&at)).map(|one| &*one.needle).collect();
            let named = secrets.iter().filter(|(_, secret)| of_it.contains(&*secret.needle));
            named.map(|(name, _)| name.clone()).collect()
        };
        let answers = std::mem::take(&mut *self.answers.lock().unwrap());
        answers.into_iter().enumerate().map(|(at, answer)| (answer, given(at))).collect()
    }

    /// Sends a request, relative to `/api/v1`, and keeps the answer.
    pub async fn send(&self, request: reqwest::RequestBuilder, what: &str) -> (u16, Value) {
        let answer = request.send().await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let status = answer.status().as_u16();
        let mut bytes = format!("{what} {status} {:?}\n", answer.headers()).into_bytes();
        let body = answer.bytes().await.unwrap();
        bytes.extend_from_slice(&body);
        self.answers.lock().unwrap().push(Answer { what: what.to_owned(), bytes });
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// A request with a token, or with none if that is empty.
    pub async fn call(&self, method: Method, path: &str, token: &str, body: Option<Value>) -> (u16, Value) {
        let url = format!("{}/api/v1/{path}", self.up.facts().url);
        let mut request = self
            .http
            .request(method.clone(), url)
            .header("X-Business-Unit", "default")
            .header("If-Match", "*");
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        self.send(request, &format!("{method} {path}")).await
    }

    /// As Terraform calls, with a password.
    pub async fn call_as_terraform(&self, path: &str, password: &str) -> (u16, Value) {
        let url = format!("{}/api/v1/{path}", self.up.facts().url);
        let request = self.http.get(url).basic_auth("terraform", Some(password));
        self.send(request, &format!("GET {path}")).await
    }

    async fn ok(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, answer) = self.call(method.clone(), path, &self.admin, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    pub async fn get(&self, path: &str) -> Value {
        self.ok(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.ok(Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Value {
        self.ok(Method::PUT, path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Value {
        self.ok(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) {
        self.ok(Method::DELETE, path, None).await;
    }

    /// The status of what must be refused.
    pub async fn refused(&self, method: Method, path: &str, token: &str, body: Value) {
        let (status, answer) = self.call(method.clone(), path, token, Some(body)).await;
        assert!((400..500).contains(&status), "{method} {path} must be refused: {status} {answer}");
    }

    /// Signs in; both tokens are planted.
    pub async fn sign_in(&self, email: &str, password: &str) -> String {
        self.session(email, password).await.0
    }

    /// Access and refresh token of a new session.
    pub async fn session(&self, email: &str, password: &str) -> (String, String) {
        let credentials = json!({ "email": email, "password": password });
        let (status, pair) = self.call(Method::POST, "auth/token", "", Some(credentials)).await;
        assert_eq!(status, 200, "{email} signs in: {pair}");
        self.pair(&pair)
    }

    /// The tokens of the last answer.
    pub fn pair(&self, pair: &Value) -> (String, String) {
        let number = self.answers.lock().unwrap().len();
        let of = |field: &str| self.given(&format!("TokenPair.{field}"), &number.to_string(), &pair[field]);
        (of("access_token"), of("refresh_token"))
    }

    /// Polls until the thing is as it should be.
    pub async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let body = self.get(path).await;
            if is_so(&body) {
                return body;
            }
            assert!(Instant::now() < deadline, "{path} stays {body}");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Waits until a task is over, or was tried at least once and is to be tried again.
    pub async fn tried(&self, accepted: &Value) -> Value {
        let path = format!("tasks/{}", accepted["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")));
        self.until(&path, |task| {
            let is_over = ["done", "dead", "cancelled"].iter().any(|end| task["status"] == *end);
            is_over || !task["last_error"].is_null()
        })
        .await
    }
}

/// The id in an answer.
pub fn id(answer: &Value) -> String {
    answer["id"].as_str().unwrap_or_else(|| panic!("an id in {answer}")).to_owned()
}
