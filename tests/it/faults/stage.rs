//! A control plane that real executors reach over HTTP, one workspace with a small stack, and its runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path as UrlPath, RawQuery, State};
use axum::response::IntoResponse as _;
use axum::routing::get;
use bytes::Bytes;
use http::StatusCode;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_core::Deps;
use plumbline_core::access::Role;
use plumbline_core::adapters::{DirectoryStore, LocalLauncher};
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use plumbline_core::ports::{ExecutorFate, Launcher as _};
use plumbline_core::secrets::Domain;
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use plumbline_runtime::Function;
use plumbline_worker::Outbound;
use serde_json::{Value, json};
use uuid::Uuid;

use super::checks::kill_below;
use super::gate::{self, Gate};
use crate::emulator::program::scratch;
use crate::emulator::session::git;
use crate::plane::TestPlane;

/// Nothing here should take longer; the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// Shorter than what the lease sweep takes for an outage.
const TICK: Duration = Duration::from_secs(45);
/// Enough ticks for the longest of the leases.
const TICKS_MAX: usize = 40;
const POLL: Duration = Duration::from_millis(100);
/// What the stack's data source reads while planning: the request for it can be held like any other.
pub const SLOW_STATE: &str = "/slow/state";

/// The whole.
pub struct Stage {
    pub plane: TestPlane,
    pub gate: Gate,
    pub launcher: LocalLauncher,
    pub url: String,
    pub workspace: String,
    pub token: String,
    scratch: tempfile::TempDir,
}

/// Fault tests trigger runs only, and those go to executors.
pub struct NoShortTasks;

#[async_trait]
impl Outbound for NoShortTasks {
    async fn handle(&self, _deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
        Err(FailedAttempt::Permanent(format!("no test here asked for a {}", task.kind.as_str())))
    }
}

/// One attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub task_id: Uuid,
    pub lease_token: i64,
}

impl Stage {
    /// A plane on the cluster of the tests.
    pub async fn start() -> Self {
        Self::on(TestPlane::start_with(Limits { bcrypt_cost: 4, ..Limits::default() }, 8).await).await
    }

    /// On a plane that the test made.
    pub async fn on(mut plane: TestPlane) -> Self {
        let scratch = scratch();
        for name in ["repos/stack", "signs", "objects", "executors"] {
            std::fs::create_dir_all(scratch.path().join(name)).unwrap();
        }
        open_to_all(&scratch.path().join("signs"));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = *plane.deps.keys.key(Domain::Blobs).unwrap();
        let blobs = DirectoryStore::new(scratch.path().join("objects"), format!("{url}/blobs"), key);
        plane.deps.blobs = Arc::new(blobs.clone());
        plane.deps.public_url = url.clone().into();
        plane.deps.local_repos_root = Some(scratch.path().join("repos").display().to_string().into());
        let gate = Gate::default();
        let router = router(&plane, blobs, gate.clone());
        tokio::spawn(async move {
            let service = router.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await.unwrap();
        });
        let launcher = LocalLauncher::new(
            plumbline_tests::bin("executor-task"),
            scratch.path().join("executors"),
            vec![("PLUMBLINE_LOCAL_REPOS_ROOT".into(), scratch.path().join("repos").display().to_string())],
        )
        .with_stop_grace(Duration::from_secs(3));
        let token = plane.user(Role::Admin).await;
        let mut stage = Self { plane, gate, launcher, url, workspace: String::new(), token, scratch };
        stage.commit(&stack(&stage.signs(), &stage.url));
        stage.workspace = stage.make_workspace().await;
        stage
    }

    async fn make_workspace(&self) -> String {
        let repo = self.repository().display().to_string();
        let body = json!({ "name": "stack", "environment": "dev", "repo_url": repo });
        let (status, made) = self.post("workspaces", body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    pub fn repository(&self) -> PathBuf {
        self.scratch.path().join("repos/stack")
    }

    /// Where everything that executors keep lies.
    pub fn executors(&self) -> PathBuf {
        self.scratch.path().join("executors")
    }

    pub fn objects(&self) -> PathBuf {
        self.scratch.path().join("objects")
    }

    fn signs(&self) -> PathBuf {
        self.scratch.path().join("signs")
    }

    /// Makes the configuration the newest commit.
    pub fn commit(&self, configuration: &str) {
        let repo = self.repository();
        if !repo.join(".git").exists() {
            git(&repo, &["init", "-q", "-b", "main"]);
        }
        std::fs::write(repo.join("main.tf"), configuration).unwrap();
        git(&repo, &["add", "-A"]);
        git(
            &repo,
            &["-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "change"],
        );
    }

    /// The second resource does not wait any more.
    pub fn let_go(&self) {
        std::fs::write(self.signs().join("go"), "").unwrap();
    }

    /// Resolves when the second resource is being made.
    pub async fn second_begun(&self) {
        self.eventually("the second resource is being made", async || self.signs().join("begun").exists())
            .await;
    }

    pub async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let answer = self.plane.call("POST", &format!("/api/v1/{path}"), self.token.as_str(), body).await;
        (answer.0, answer.2)
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.plane.call("GET", &format!("/api/v1/{path}"), self.token.as_str(), None).await;
        assert_eq!(answer.0, StatusCode::OK, "{path}: {}", answer.2);
        answer.2
    }

    pub async fn trigger(&self) -> String {
        let body = json!({ "workspace_id": self.workspace, "command": "apply" });
        let (status, run) = self.post("runs", body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    pub async fn approve(&self, run: &str) {
        let (status, answer) = self.post(&format!("approvals/{run}/approve"), json!({})).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    pub async fn run(&self, id: &str) -> Value {
        self.get(&format!("runs/{id}")).await
    }

    pub async fn status(&self, id: &str) -> String {
        self.run(id).await["status"].as_str().unwrap().to_owned()
    }

    /// The claim routine, once.
    pub async fn work(&self) {
        let worker = self.plane.as_function(Function::Worker);
        plumbline_worker::handle(&worker, &self.launcher, &NoShortTasks).await.unwrap();
    }

    /// One tick of the reconciler; everything in it must work.
    pub async fn reconcile(&self) {
        let reconciler = self.plane.as_function(Function::Reconciler);
        let done = plumbline_reconciler::handle(&reconciler, &self.launcher, &NoShortTasks).await;
        for sweep in &done.sweeps {
            assert!(sweep.outcome.is_ok(), "{sweep:?}");
        }
        done.worked.unwrap();
    }

    /// The attempt that holds a task of the run.
    pub async fn find_attempt(&self, run: &str) -> Option<Attempt> {
        const HELD: &str = "SELECT id, lease_token FROM tasks WHERE subject_id = $1 AND status = 'running'";
        let conn = self.plane.db().conn().await.unwrap();
        let row = conn.query_opt(HELD, &[&run.parse::<Uuid>().unwrap()]).await.unwrap()?;
        Some(Attempt { task_id: row.get(0), lease_token: row.get(1) })
    }

    /// The attempt whose executor was prepared last, whether or not it still holds its task.
    pub async fn newest_attempt(&self, run: &str) -> Attempt {
        const NEWEST: &str =
            "SELECT task_id, lease_token FROM executors WHERE subject_id = $1 ORDER BY id DESC LIMIT 1";
        let conn = self.plane.db().conn().await.unwrap();
        let row = conn.query_one(NEWEST, &[&run.parse::<Uuid>().unwrap()]).await.unwrap();
        Attempt { task_id: row.get(0), lease_token: row.get(1) }
    }

    /// What the platform calls the attempt's executor, once that is recorded.
    pub async fn handle_of(&self, attempt: &Attempt) -> String {
        const HANDLE: &str = "SELECT handle FROM executors WHERE task_id = $1 AND lease_token = $2";
        let deadline = Instant::now() + PATIENCE;
        loop {
            let conn = self.plane.db().conn().await.unwrap();
            let row = conn.query_opt(HANDLE, &[&attempt.task_id, &attempt.lease_token]).await.unwrap();
            if let Some(handle) = row.and_then(|row| row.get::<_, Option<String>>(0)) {
                return handle;
            }
            assert!(Instant::now() < deadline, "the launch is recorded");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Sends a signal to the attempt's supervisor, and to nobody else.
    pub async fn signal(&self, attempt: &Attempt, signal: Signal) {
        let handle = self.handle_of(attempt).await;
        kill(pid_of(&handle), signal).expect("the supervisor lives");
    }

    /// Kills the attempt's supervisor, and waits until the platform knows.
    pub async fn kill(&self, attempt: &Attempt) {
        self.signal(attempt, Signal::SIGKILL).await;
        let handle = [self.handle_of(attempt).await];
        self.eventually("the supervisor has ended", async || {
            matches!(self.launcher.describe(&handle).await.unwrap()[0], ExecutorFate::Stopped { .. })
        })
        .await;
    }

    /// Sweeps, and moves the clock between two sweeps, until the attempt does not hold its task any more. Nothing of
    /// it may be alive: the clock would overtake its heartbeats.
    pub async fn sweep_until_over(&self, run: &str, attempt: &Attempt) {
        for _ in 0..TICKS_MAX {
            self.reconcile().await;
            if self.find_attempt(run).await.as_ref() != Some(attempt) {
                return;
            }
            self.plane.advance(TICK).await;
        }
        panic!("the attempt still holds its task: {}", self.run(run).await);
    }

    /// Reconciles until the run has the status; approves it on the way. The clock moves only while nothing runs.
    pub async fn drive(&self, run: &str, wanted: &str) {
        const WAITS: &str = "
            SELECT count(*) FILTER (WHERE run_after > plumbline_now()) > 0
                   AND count(*) FILTER (WHERE status = 'running') = 0 FROM tasks";
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status(run).await;
            if status == wanted {
                return;
            }
            let is_over = ["applied", "failed", "cancelled"].contains(&status.as_str());
            assert!(!is_over && Instant::now() < deadline, "not {wanted}: {}", self.run(run).await);
            if status == "awaiting_approval" {
                self.approve(run).await;
            }
            let conn = self.plane.db().conn().await.unwrap();
            if conn.query_one(WAITS, &[]).await.unwrap().get(0) {
                self.plane.advance(Duration::from_secs(5)).await;
            }
            drop(conn);
            self.reconcile().await;
            tokio::time::sleep(POLL).await;
        }
    }

    /// Polls until it holds.
    pub async fn eventually(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition().await {
            assert!(Instant::now() < deadline, "this never came: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A count in the database.
    pub async fn count(&self, sql: &str) -> i64 {
        self.plane.db().conn().await.unwrap().query_one(sql, &[]).await.unwrap().get(0)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        kill_below(&self.executors());
    }
}

/// A first resource that is made at once, and a second one that waits for the sign `go`. Planning reads what the
/// address serves.
pub fn stack(signs: &Path, url: &str) -> String {
    let signs = signs.display();
    format!(
        r#"
data "terraform_remote_state" "slow" {{
  backend = "http"
  config  = {{ address = "{url}{SLOW_STATE}" }}
}}
resource "terraform_data" "first" {{
  input = "one"
}}
resource "terraform_data" "second" {{
  depends_on = [terraform_data.first]
  provisioner "local-exec" {{
    command = "touch {signs}/begun; until [ -e {signs}/go ]; do sleep 0.05; done"
  }}
}}
"#
    )
}

/// Serves what the stack reads while planning, and nothing else. The address ends with the test.
pub async fn serve_slow_state(gate: Gate) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route(SLOW_STATE, get(slow_state))
        .layer(axum::middleware::from_fn_with_state(gate, gate::pass));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

/// The process of a local executor.
pub fn pid_of(handle: &str) -> Pid {
    Pid::from_raw(handle.split(':').next().unwrap().parse().unwrap())
}

fn open_to_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o777)).unwrap();
}

fn router(plane: &TestPlane, blobs: DirectoryStore, gate: Gate) -> Router {
    let deps = plane.as_function(Function::Callback);
    let objects = Router::new()
        .route("/blobs/{*key}", get(read_object).put(write_object))
        .layer(DefaultBodyLimit::disable())
        .with_state(blobs);
    plumbline_callback::router(deps)
        .merge(objects)
        .route(SLOW_STATE, get(slow_state))
        .layer(axum::middleware::from_fn_with_state(gate, gate::pass))
}

async fn slow_state() -> &'static str {
    r#"{"version":4,"terraform_version":"1.10.0","serial":1,"lineage":"slow","outputs":{},"resources":[]}"#
}

async fn read_object(
    State(blobs): State<DirectoryStore>,
    UrlPath(key): UrlPath<String>,
    RawQuery(query): RawQuery,
) -> axum::response::Response {
    match blobs.accept_get(&key, &query.unwrap_or_default()).await {
        Ok(bytes) => bytes.into_response(),
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    }
}

async fn write_object(
    State(blobs): State<DirectoryStore>,
    UrlPath(key): UrlPath<String>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> axum::response::Response {
    match blobs.accept_put(&key, &query.unwrap_or_default(), body).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    }
}
