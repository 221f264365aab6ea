//! The state backend: a person's cycle with 10 KB, an executor's with 20 MB, the wire to Postgres.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use md5::Digest as _;
use plumbline_core::db::Query as _;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::protocol::{StateUploadAnswer, StateUploadBegin};
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::harness::Report;
use crate::processes::{memory_megabytes, own_cpu_milliseconds};
use crate::server::Server;

const SMALL_BYTES: usize = 10 << 10;
const SMALL_CYCLES: usize = 150;
const LARGE_BYTES: usize = 20 << 20;
const LARGE_CYCLES: usize = 12;
const TOKEN: &str = "the token of the benchmark's executor";

/// A state of about the given size.
pub(crate) fn state(serial: usize, bytes: usize) -> Bytes {
    let filler = "x".repeat(bytes.saturating_sub(300));
    json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "bench", "outputs": {},
        "resources": [{ "mode": "managed", "type": "terraform_data", "name": "one",
                        "provider": "provider[\"terraform.io/builtin/terraform\"]",
                        "instances": [{ "schema_version": 0, "attributes": { "id": "x", "input": filler } }] }],
        "check_results": null,
    })
    .to_string()
    .into()
}

pub(crate) fn lock_info(id: &str) -> Bytes {
    json!({ "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "bench@here", "Version": "1.11.4",
            "Created": "2026-01-01T00:00:00Z", "Path": "" })
    .to_string()
    .into()
}

fn json_body(body: Bytes) -> (&'static str, Bytes) {
    ("application/json", body)
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    small(report).await?;
    large(report).await
}

async fn small(report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&["--lambda"]).await?;
    let path = format!("/api/v1/state/{}", server.workspace().await?);
    let lock_path = format!("{path}/lock");
    let token = server.token.clone();
    let cost = server
        .measure(SMALL_CYCLES, async |n| {
            let id = format!("lock-{n}");
            server.send(Method::POST, &lock_path, &token, json_body(lock_info(&id))).await?;
            server.send(Method::GET, &path, &token, None).await?;
            let body = json_body(state(n + 1, SMALL_BYTES));
            server.send(Method::PUT, &format!("{path}?ID={id}"), &token, body).await?;
            server.send(Method::DELETE, &lock_path, &token, json_body(lock_info(&id))).await?;
            Ok(())
        })
        .await?;
    report.at_most(
        "tfstate cycle lock→get→write→unlock, 10 KB",
        "ms CPU of the functions",
        4.0,
        cost.cpu,
        cost.beside(),
    );
    Ok(())
}

async fn large(report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&["--lambda"]).await?;
    insert_apply(&server).await?;
    // Twice, so that the second one also downloads.
    for n in 0..2 {
        large_cycle(&server, n).await?;
    }
    let processes = server.function("plumbline-callb");
    ensure!(!processes.is_empty(), "the function callback has no process");
    let memory = |which: usize| -> anyhow::Result<f64> {
        let mut most = 0.0_f64;
        for pid in &processes {
            let (now, highest) = memory_megabytes(*pid)?;
            most = most.max([now, highest][which]);
        }
        Ok(most)
    };
    let cpu = || processes.iter().map(|pid| own_cpu_milliseconds(*pid)).sum::<f64>();
    let (before, resident) = (cpu(), memory(0)?);
    for n in 2..2 + LARGE_CYCLES {
        large_cycle(&server, n).await?;
    }
    let cost = (cpu() - before) / LARGE_CYCLES as f64;
    let highest = memory(1)?;
    let grown = highest - resident;
    report.at_most(
        "executor's state cycle, 20 MB",
        "ms CPU of the functions",
        40.0,
        cost,
        format!("memory {resident:.1} MB before, {highest:.1} MB at its highest"),
    );
    report.holds(
        "executor's state cycle, 20 MB: memory",
        "flat: grows by less than 4 MB",
        format!("{grown:.1} MB"),
        String::new(),
        grown < 4.0,
    );
    Ok(())
}

/// A run that applies, and the executor that does it and holds its task.
async fn insert_apply(server: &Server) -> anyhow::Result<WorkspaceId> {
    const RUN: &str = "
        INSERT INTO runs (id, business_unit_id, workspace_id, command, status, branch)
        VALUES ($1, $2, $3, 'apply', 'applying', 'main')";
    const EXECUTOR: &str = "
        INSERT INTO executors (id, business_unit_id, task_id, lease_token, kind, subject_id, launcher, status,
                               token_hash)
        VALUES ($1, $2, $3, 1, 'run_apply', $4, 'local', 'live', $5)";
    const TASK: &str = "
        INSERT INTO tasks (id, business_unit_id, class, kind, subject_id, status, attempts, attempts_max, dedupe_key,
                           lease_token, lease_phase, lease_expires_at)
        VALUES ($1, $2, 'executor', 'run_apply', $3, 'running', 1, 3, 'bench', 1, 'live', now() + interval '1 hour')";
    let workspace = server.workspace().await?;
    let (run, executor, task) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    let conn = server.db.conn().await?;
    conn.execute(RUN, &[&run, &server.unit, &workspace]).await?;
    let hash = Sha256Digest::of(TOKEN.as_bytes());
    conn.execute(TASK, &[&task, &server.unit, &run]).await?;
    conn.execute(EXECUTOR, &[&executor, &server.unit, &task, &run, &hash.0.as_slice()]).await?;
    Ok(workspace)
}

async fn large_cycle(server: &Server, n: usize) -> anyhow::Result<()> {
    let id = format!("lock-{n}");
    let send = async |method: Method, path: &str, body: Option<(&str, Bytes)>| {
        server.send(method, &format!("/executor/v1/{path}"), TOKEN, body).await
    };
    send(Method::POST, "state/lock", Some(json_body(lock_info(&id)))).await?;
    // Redirected to the object store; the client follows and reads the whole.
    let read = send(Method::GET, "state", None).await?;
    ensure!(n == 0 || read.len() >= LARGE_BYTES / 2, "a state of {} bytes", read.len());
    let body = state(n + 1, LARGE_BYTES);
    let begin = StateUploadBegin {
        lock_id: id.clone(),
        serial: i64::try_from(n + 1)?,
        lineage: "bench".into(),
        size_bytes: body.len() as u64,
        md5: hex::encode(md5::Md5::digest(&body)),
        sha256: Sha256Digest::of(&body),
        terraform_version: Some("1.11.4".into()),
    };
    let begun =
        send(Method::POST, "state/uploads", Some(json_body(serde_json::to_vec(&begin)?.into()))).await?;
    let begun: StateUploadAnswer = serde_json::from_slice(&begun).context("an upload")?;
    let mut put = server.http.put(&begun.request.url).body(body);
    for (name, value) in &begun.request.headers {
        put = put.header(name, value);
    }
    put.send().await?.error_for_status()?;
    let commit = format!("state/uploads/{}/commit", begun.upload_id.0);
    send(Method::POST, &commit, Some(json_body(Bytes::from_static(b"{}")))).await?;
    send(Method::DELETE, "state/lock", Some(json_body(lock_info(&id)))).await?;
    Ok(())
}
