//! A control plane as people start it: `plumbline-emulator up` in a process of its own, on a scratch directory.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_core::db::{Connect, Db, PgMode, Query as _};
use plumbline_core::ids::{BusinessUnitId, WorkspaceId};
use plumbline_emulator::Facts;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::median;
use crate::processes::{below, cpu_milliseconds, own_cpu_milliseconds};

const PATIENCE: Duration = Duration::from_secs(60);
/// Rounds of each measurement; the median counts.
const ROUNDS: usize = 3;

/// A running server with a signed-in admin. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    scratch: tempfile::TempDir,
    pub(crate) facts: Facts,
    pub(crate) http: reqwest::Client,
    pub(crate) token: String,
    pub(crate) db: Db,
    pub(crate) unit: BusinessUnitId,
}

/// What one operation cost, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// CPU of the server's own process, or of the functions if they are programs of their own.
    pub(crate) cpu: f64,
    pub(crate) postgres: f64,
    pub(crate) wall: f64,
}

impl Cost {
    /// The figures that stand beside the CPU time.
    pub(crate) fn beside(&self) -> String {
        format!("Postgres {:.2} ms CPU, {:.2} ms wall", self.postgres, self.wall)
    }
}

impl Server {
    /// Starts one in which nothing happens by itself. Only `more` options differ.
    pub(crate) async fn start(more: &[&str]) -> anyhow::Result<Self> {
        let scratch = scratch()?;
        let (child, facts, _) = launch(scratch.path(), more).await?;
        let password = std::fs::read_to_string(&facts.password_file)?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(PATIENCE).pool_max_idle_per_host(64).build()?;
        let sign_in = json!({ "email": facts.admin_email, "password": password.trim() });
        let answer = http.post(format!("{}/api/v1/auth/token", facts.url)).json(&sign_in).send().await?;
        let body: Value = answer.error_for_status()?.json().await?;
        let token = body["access_token"].as_str().context("a token")?.to_owned();
        let url = database_url(scratch.path(), &facts)?;
        let db = Db::new(&Connect { url, pool_size: 4, mode: PgMode::Direct })?;
        let unit = "SELECT id FROM business_units WHERE slug = 'default'";
        let unit = db.conn().await?.query_one(unit, &[]).await?.get("id");
        Ok(Self { child, scratch, facts, http, token, db, unit })
    }

    /// How long a start takes on a cluster that exists: until the first request is answered.
    pub(crate) async fn start_again(rounds: usize) -> anyhow::Result<Vec<f64>> {
        let scratch = scratch()?;
        let mut taken = Vec::new();
        for round in 0..=rounds {
            let (mut child, _, elapsed) = launch(scratch.path(), &[]).await?;
            stop(&mut child)?;
            // The first one makes the cluster.
            if round > 0 {
                taken.push(elapsed.as_secs_f64());
            }
        }
        Ok(taken)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    pub(crate) fn database_url(&self) -> anyhow::Result<String> {
        database_url(self.scratch.path(), &self.facts)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Processes of one function, when functions are programs of their own.
    pub(crate) fn function(&self, prefix: &str) -> Vec<i32> {
        below(self.pid(), prefix)
    }

    /// Functions as programs leave gateway and object store, which are not ours on AWS, to the process that stands for
    /// them.
    fn cpu(&self) -> f64 {
        let functions = self.function("plumbline-");
        if functions.is_empty() {
            return own_cpu_milliseconds(self.pid());
        }
        functions.into_iter().map(own_cpu_milliseconds).sum()
    }

    pub(crate) fn postgres_cpu(&self) -> f64 {
        below(self.pid(), "postgres").into_iter().map(cpu_milliseconds).sum()
    }

    /// Several statements.
    pub(crate) async fn execute(&self, sql: &str) -> anyhow::Result<()> {
        Ok(self.db.conn().await?.batch(sql).await?)
    }

    /// A new workspace whose state people may write.
    pub(crate) async fn workspace(&self) -> anyhow::Result<WorkspaceId> {
        const INSERT: &str = "
            INSERT INTO workspaces (id, business_unit_id, name, environment, aws_account_id, region, repo_url,
                                    tf_working_dir, state_writes)
            VALUES ($1, $2, 'net', 'dev', 'global', 'global', 'https://git.example.com/net.git', $3,
                    'runs_and_people')";
        let id = WorkspaceId(uuid::Uuid::now_v7());
        self.db.conn().await?.execute(INSERT, &[&id, &self.unit, &id.to_string()]).await?;
        Ok(id)
    }

    /// Sends a request and expects success.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: impl Into<Option<(&str, Bytes)>>,
    ) -> anyhow::Result<Bytes> {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.facts.url))
            .bearer_auth(token)
            .header("X-Business-Unit", "default");
        if let Some((content_type, body)) = body.into() {
            request = request.header("content-type", content_type).body(body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let body = answer.bytes().await?;
        ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&body));
        Ok(body)
    }

    /// The same with JSON, as the admin.
    pub(crate) async fn api(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Bytes> {
        let body = body.map(|body| ("application/json", Bytes::from(body.to_string())));
        self.send(method, path, &self.token, body).await
    }

    /// The median cost of an operation. The kernel counts CPU in hundredths of a second: `operations` must be many.
    pub(crate) async fn measure(
        &self,
        operations: usize,
        mut operation: impl AsyncFnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<Cost> {
        let mut costs = Vec::new();
        let warm_up = operations.div_ceil(10);
        for round in 0..=ROUNDS {
            let many = if round == 0 { warm_up } else { operations };
            let (cpu, postgres, began) = (self.cpu(), self.postgres_cpu(), Instant::now());
            for n in 0..many {
                operation(round * operations + n).await?;
            }
            let each = |milliseconds: f64| milliseconds / many as f64;
            let cost = Cost {
                cpu: each(self.cpu() - cpu),
                postgres: each(self.postgres_cpu() - postgres),
                wall: each(began.elapsed().as_secs_f64() * 1000.0),
            };
            if round > 0 {
                costs.push(cost);
            }
        }
        Ok(Cost {
            cpu: median(costs.iter().map(|cost| cost.cpu)),
            postgres: median(costs.iter().map(|cost| cost.postgres)),
            wall: median(costs.iter().map(|cost| cost.wall)),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = stop(&mut self.child) {
            eprintln!("a server did not stop: {error:#}");
        }
    }
}

/// A directory that the database's account can pass through, also when root runs this.
fn scratch() -> anyhow::Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::Builder::new().prefix("plumbline-bench-").tempdir()?;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711))?;
    Ok(directory)
}

fn database_url(scratch: &Path, facts: &Facts) -> anyhow::Result<String> {
    let password = std::fs::read_to_string(scratch.join("home/postgres-password"))?;
    Ok(format!("postgres://postgres:{}@127.0.0.1:{}/plumbline", password.trim(), facts.postgres_port))
}

async fn launch(scratch: &Path, more: &[&str]) -> anyhow::Result<(Child, Facts, Duration)> {
    let began = Instant::now();
    let home = scratch.join("home");
    let mut child = Command::new(plumbline_tests::bin("plumbline-emulator"))
        .args(["up", "--port", "0", "--store-port", "0", "--pg-port", "0", "--gateway", "open"])
        .args(["--wakes", "never", "--sweep-seconds", "86400"])
        .arg("--dir")
        .arg(&home)
        .arg("--cache")
        .arg(scratch.join("cache"))
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(scratch.join("log"))?)
        .spawn()
        .context("plumbline-emulator cannot be run")?;
    loop {
        if let Some(facts) = find_facts(&home, child.id()) {
            return Ok((child, facts, began.elapsed()));
        }
        let ended = child.try_wait()?.is_some();
        if ended || began.elapsed() > PATIENCE {
            let _ = child.kill();
            let log = std::fs::read_to_string(scratch.join("log")).unwrap_or_default();
            bail!("the server did not start: {log}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn find_facts(home: &Path, pid: u32) -> Option<Facts> {
    let facts: Facts = serde_json::from_slice(&std::fs::read(home.join("emulator.json")).ok()?).ok()?;
    (facts.pid == pid).then_some(facts)
}

/// Asks it to stop and waits: it promises to be gone within ten seconds.
fn stop(child: &mut Child) -> anyhow::Result<()> {
    kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM)?;
    child.wait()?;
    Ok(())
}
