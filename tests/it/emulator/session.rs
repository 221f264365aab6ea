//! A signed-in person at the API, and one change from Git to applied as they would make it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use plumbline_emulator::{Facts, GitServer};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::program::DEADLINE;

/// A client with a token.
pub struct Session {
    pub http: reqwest::Client,
    pub url: String,
    pub token: String,
}

/// A client without one.
pub fn client() -> reqwest::Client {
    // Several crates bring rustls; the first caller chooses for the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(Duration::from_secs(60)).build().expect("a client")
}

impl Session {
    /// Signs in as the admin, with the password from its file.
    pub async fn sign_in(facts: &Facts) -> Self {
        let password = std::fs::read_to_string(&facts.password_file).expect("the password's file");
        let http = client();
        let answer = http
            .post(format!("{}/api/v1/auth/token", facts.url))
            .json(&json!({ "email": facts.admin_email, "password": password.trim() }))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 200, "sign-in");
        let token =
            answer.json::<Value>().await.expect("JSON")["access_token"].as_str().expect("a token").to_owned();
        Self { http, url: facts.url.clone(), token }
    }

    async fn send(&self, request: reqwest::RequestBuilder, what: &str) -> Value {
        let request = request.bearer_auth(&self.token).header("X-Business-Unit", "default");
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let body = answer.text().await.expect("a body");
        assert!(status.is_success(), "{what}: {status} {body}");
        serde_json::from_str(&body).unwrap_or(Value::Null)
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(self.http.get(format!("{}/api/v1/{path}", self.url)), path).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.send(self.http.post(format!("{}/api/v1/{path}", self.url)).json(&body), path).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Value {
        self.send(self.http.put(format!("{}/api/v1/{path}", self.url)).json(&body), path).await
    }

    /// Polls until the field has the value; fails at once when it has one that is an end.
    async fn wait(&self, path: &str, wanted: &str, ends: &[&str]) -> Value {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let body = self.get(path).await;
            let status = body["status"].as_str().unwrap_or_default();
            if status == wanted {
                return body;
            }
            assert!(!ends.contains(&status), "{path} ended as {status}: {body}");
            assert!(Instant::now() < deadline, "{path} is still {status}: {body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for a run's status.
    pub async fn run(&self, id: &str, wanted: &str) -> Value {
        self.wait(&format!("runs/{id}"), wanted, &["failed", "cancelled", "applied"]).await
    }

    /// Imports everything in the repository, and returns the workspaces' ids.
    pub async fn import(&self, repository: &str) -> Vec<String> {
        let accepted = self.post("workspaces/import", json!({ "repo_url": repository })).await;
        let task = accepted["task_id"].as_str().expect("a task");
        let done = self.wait(&format!("tasks/{task}"), "done", &["dead", "failed", "cancelled"]).await;
        done["result"]["created"]
            .as_array()
            .unwrap_or_else(|| panic!("workspaces in {done}"))
            .iter()
            .map(|workspace| workspace["id"].as_str().expect("an id").to_owned())
            .collect()
    }

    /// Plans, approves what was planned, and waits until it is applied.
    pub async fn apply(&self, workspace_id: &str) -> Value {
        let run = self.post("runs", json!({ "workspace_id": workspace_id, "command": "apply" })).await;
        let id = run["id"].as_str().expect("an id").to_owned();
        let planned = self.run(&id, "awaiting_approval").await;
        self.post(&format!("approvals/{id}/approve"), json!({ "digest": planned["approval_digest"] })).await;
        self.run(&id, "applied").await
    }
}

/// A repository served over smart HTTP until it is dropped.
pub struct Repository {
    pub url: String,
    pub root: PathBuf,
    _stop: oneshot::Sender<()>,
}

/// Serves `demo.git` with the stack of the demo below `root`.
pub async fn demo_repository(root: &Path) -> Repository {
    let served = serve(root, None).await;
    let work = root.join("work");
    git(root, &["init", "-q", "--bare", "-b", "main", "demo.git"]);
    git(root, &["init", "-q", "-b", "main", "work"]);
    let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/demo-stack/.");
    let copied = Command::new("cp").arg("-r").arg(stack).arg(&work).status().expect("cp runs");
    assert!(copied.success());
    git(&work, &["remote", "add", "origin", &served.url]);
    commit_and_push(&work).await;
    served
}

/// Commits everything in the work tree and pushes it over HTTP.
pub async fn commit_and_push(work: &Path) {
    git(work, &["add", "-A"]);
    git(work, &["-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "change"]);
    let work = work.to_owned();
    // The server answers in this runtime: waiting for the push must not block it.
    tokio::task::spawn_blocking(move || git(&work, &["push", "-q", "origin", "HEAD:main"]))
        .await
        .expect("pushed");
}

/// Serves what is below `root`; the URL is that of `demo.git`.
pub async fn serve(root: &Path, credentials: Option<(String, String)>) -> Repository {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/demo.git", listener.local_addr().expect("bound"));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = GitServer { root: root.to_owned(), credentials };
    tokio::spawn(server.serve(listener, async move {
        let _ = stopped.await;
    }));
    Repository { url, root: root.to_owned(), _stop: stop }
}

/// Runs git without a person's settings; it must succeed.
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = git_command(directory, arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub fn git_command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}
