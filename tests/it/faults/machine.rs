//! A whole emulator as people run it, which a test can kill and start again where it was.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use plumbline_core::db::{Connect, Db, PgMode, Query as _, testing::set_clock_offset};
use plumbline_emulator::Facts;
use serde_json::{Value, json};

use super::checks::{kill_below, processes_below};
use super::gate::Gate;
use super::stage::{PATIENCE, serve_slow_state, stack};
use crate::emulator::program::{Up, scratch};
use crate::emulator::session::{Repository, Session, client, commit_and_push, git, serve};

const SWEEP_OFTEN: [&str; 2] = ["--sweep-seconds", "1"];
const TICK: Duration = Duration::from_secs(45);

/// An emulator that can be killed and started again, with one workspace.
pub struct Machine {
    pub scratch: tempfile::TempDir,
    /// `None` while it is killed.
    up: Option<Up>,
    pub facts: Facts,
    pub session: Session,
    pub workspace: String,
    clock: Duration,
    /// Holds what the plan reads.
    pub gate: Gate,
    _repository: Repository,
}

impl Machine {
    /// With the stack whose plan and second resource can be held.
    pub async fn start() -> Self {
        let gate = Gate::default();
        let slow = serve_slow_state(gate.clone()).await;
        Self::start_with(gate, |signs| stack(signs, &slow)).await
    }

    /// With a configuration of the test's own.
    pub async fn start_with(gate: Gate, configuration: impl FnOnce(&Path) -> String) -> Self {
        let scratch = scratch();
        let signs = scratch.path().join("signs");
        std::fs::create_dir(&signs).unwrap();
        std::fs::set_permissions(&signs, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let repository = repository(&scratch.path().join("git"), &configuration(&signs)).await;
        let up = Up::start(&scratch.path().join("home"), &SWEEP_OFTEN).await;
        let facts = up.facts();
        let session = Session::sign_in(&facts).await;
        let body = json!({ "name": "stack", "environment": "dev", "repo_url": repository.url });
        let workspace = session.post("workspaces", body).await["id"].as_str().unwrap().to_owned();
        let clock = Duration::ZERO;
        Self { scratch, up: Some(up), facts, session, workspace, clock, gate, _repository: repository }
    }

    pub fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    pub fn sign(&self, name: &str) -> PathBuf {
        self.scratch.path().join("signs").join(name)
    }

    pub async fn kill_and_start_again(&mut self) {
        self.kill().await;
        self.start_again().await;
    }

    pub async fn kill(&mut self) {
        let mut up = self.up.take().expect("it runs");
        up.signal(Signal::SIGKILL);
        up.ended().await;
    }

    /// Another one on the same directory and ports.
    pub async fn start_again(&mut self) {
        let port = |url: &str| url.rsplit(':').next().unwrap().parse().unwrap();
        let ports = [port(&self.facts.url), port(&self.facts.store_url), self.facts.postgres_port];
        self.up = Some(Up::start_on(&self.home(), ports, &SWEEP_OFTEN).await);
        // The old client may still hold connections to the dead one.
        self.session.http = client();
    }

    pub fn database_url(&self) -> String {
        let password = std::fs::read_to_string(self.home().join("postgres-password")).unwrap();
        format!("postgres://postgres:{}@127.0.0.1:{}/plumbline", password.trim(), self.facts.postgres_port)
    }

    pub async fn db(&self) -> Db {
        Db::new(&Connect { url: self.database_url(), pool_size: 1, mode: PgMode::Pooled }).unwrap()
    }

    /// Moves the clock, and gives a sweep the time to look at it.
    pub async fn advance(&mut self, by: Duration) {
        const TICKED: &str =
            "SELECT last_ok_at > $1::text::timestamptz FROM sweep_ticks WHERE name = 'leases'";
        self.clock += by;
        let db = self.db().await;
        let conn = db.conn().await.unwrap();
        set_clock_offset(&conn, self.clock).await.unwrap();
        let now: String = conn.query_one("SELECT plumbline_now()::text", &[]).await.unwrap().get(0);
        let deadline = Instant::now() + PATIENCE;
        while !conn.query_one(TICKED, &[&now.as_str()]).await.unwrap().get::<_, bool>(0) {
            assert!(Instant::now() < deadline, "no sweep came by");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// In steps that no sweep takes for an outage.
    pub async fn pass(&mut self, time: Duration) {
        let mut passed = Duration::ZERO;
        while passed <= time {
            self.advance(TICK).await;
            passed += TICK;
        }
    }

    pub async fn trigger(&self) -> String {
        let run =
            self.session.post("runs", json!({ "workspace_id": self.workspace, "command": "apply" })).await;
        run["id"].as_str().unwrap().to_owned()
    }

    pub async fn approve(&self, run: &str) {
        let planned = self.session.run(run, "awaiting_approval").await;
        let body = json!({ "digest": planned["approval_digest"] });
        self.session.post(&format!("approvals/{run}/approve"), body).await;
    }

    /// The process of the emulator.
    pub fn pid(&self) -> i32 {
        self.up.as_ref().expect("it runs").pid()
    }

    pub async fn until_exists(&self, file: &Path) {
        let deadline = Instant::now() + PATIENCE;
        while !file.exists() {
            assert!(Instant::now() < deadline, "{} never came", file.display());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Approves what is planned, and looks at everything once it is applied.
    pub async fn finish(self, run: &str) {
        std::fs::write(self.sign("go"), "").unwrap();
        if self.session.get(&format!("runs/{run}")).await["status"] != "applying" {
            self.approve(run).await;
        }
        self.session.run(run, "applied").await;
        assert_eq!(self.attempts(run).await, [1, 1], "no attempt was burned");
        let state = |path: &str| format!("workspaces/{}/{path}", self.workspace);
        assert_eq!(self.session.get(&state("state-lock")).await["held"], json!(false));
        let versions = self.session.get(&state("state-versions")).await["items"].clone();
        assert!(!versions.as_array().unwrap().is_empty(), "{versions}");
        assert_eq!(self.session.get(&format!("workspaces/{}", self.workspace)).await["blocked"], Value::Null);
        assert_eq!(self.session.get("audit/verify").await["ok"], json!(true));
        self.stop().await;
    }

    /// As a person stops it; nothing of it may be left.
    pub async fn stop(mut self) {
        let mut up = self.up.take().expect("it runs");
        up.signal(Signal::SIGTERM);
        assert_eq!(up.ended().await, Some(0), "{}", up.log());
        let left = processes_below(&self.home());
        assert!(left.is_empty(), "{left:?}");
    }

    pub async fn attempts(&self, run: &str) -> Vec<i32> {
        const ATTEMPTS: &str = "SELECT attempts FROM finished_tasks WHERE subject_id = $1 ORDER BY id";
        let db = self.db().await;
        let rows =
            db.conn().await.unwrap().query(ATTEMPTS, &[&run.parse::<uuid::Uuid>().unwrap()]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // First the emulator, which would launch more.
        self.up = None;
        kill_below(&self.home());
    }
}

/// Commits the configuration to a repository of its own.
async fn repository(root: &Path, configuration: &str) -> Repository {
    std::fs::create_dir(root).unwrap();
    let served = serve(root, None).await;
    git(root, &["init", "-q", "--bare", "-b", "main", "demo.git"]);
    git(root, &["init", "-q", "-b", "main", "work"]);
    let work = root.join("work");
    std::fs::write(work.join("main.tf"), configuration).unwrap();
    git(&work, &["remote", "add", "origin", &served.url]);
    commit_and_push(&work).await;
    served
}
