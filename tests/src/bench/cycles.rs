//! The state backend: cycles of lock, read, write and unlock, by people and by executors, alone and side by side.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use md5::Digest as _;
use plumbline_core::db::Query as _;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::{StateUploadAnswer, StateUploadBegin};
use reqwest::Method;
use uuid::Uuid;

use crate::harness::{Report, median};
use crate::processes::{forget_highest_memory, memory_megabytes, own_cpu_milliseconds};
use crate::server::Server;
use crate::state::{lock_info, state};

const WORKSPACES: [usize; 2] = [1, 16];
/// Measured rounds; the median counts.
const ROUNDS: usize = 3;

/// One size of state, and who writes it.
struct Kind {
    name: &'static str,
    bytes: usize,
    /// Through the object store, as executors do; else in the request, as people's terraform does.
    by_executors: bool,
    /// Of all workspaces together, in each round: the kernel counts CPU in hundredths of a second.
    cycles: usize,
    cpu_max: Option<f64>,
}

const KINDS: [Kind; 3] = [
    Kind { name: "10 KB", bytes: 10 << 10, by_executors: false, cycles: 160, cpu_max: Some(4.0) },
    Kind { name: "1 MB", bytes: 1 << 20, by_executors: false, cycles: 48, cpu_max: None },
    Kind { name: "20 MB", bytes: 20 << 20, by_executors: true, cycles: 16, cpu_max: Some(40.0) },
];
/// What the memory of a function may grow by while states pass that it never sees, in megabytes.
const GROWTH_MAX: f64 = 4.0;

/// Somebody with a workspace of their own.
struct Client {
    /// Of the state, below the server's address.
    path: String,
    token: String,
    cycles: usize,
}

/// What a round cost, for each cycle; memory is that of the largest function.
struct Round {
    cpu: f64,
    postgres: f64,
    wall: f64,
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    for kind in &KINDS {
        for workspaces in WORKSPACES {
            measure(report, kind, workspaces).await?;
        }
    }
    Ok(())
}

async fn measure(report: &mut Report, kind: &Kind, workspaces: usize) -> anyhow::Result<()> {
    let server = Server::start(&["--lambda"]).await?;
    let mut clients = Vec::new();
    for n in 0..workspaces {
        clients.push(if kind.by_executors {
            executor(&server, n).await?
        } else {
            let path = format!("/api/v1/state/{}", server.workspace().await?);
            Client { path, token: server.token.clone(), cycles: 0 }
        });
    }
    let each = kind.cycles / workspaces;
    // Twice, so that the second one also reads a whole state.
    round(&server, kind, &mut clients, 2).await?;
    let function = if kind.by_executors { "plumbline-callb" } else { "plumbline-tfsta" };
    let before = memory(&server, function, 0)?;
    for pid in server.function(function) {
        forget_highest_memory(pid)?;
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(round(&server, kind, &mut clients, each).await?);
    }
    let (during, after) = (memory(&server, function, 1)?, memory(&server, function, 0)?);
    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let who = if kind.by_executors {
        "executor's state cycle"
    } else {
        "tfstate cycle lock→get→write→unlock"
    };
    let many = if workspaces == 1 { String::new() } else { format!(", {workspaces} workspaces") };
    let what = format!("{who}, {}{many}", kind.name);
    let beside = format!(
        "Postgres {:.2} ms CPU, {:.2} ms wall; memory {before:.1} MB before, {during:.1} MB during, {after:.1} MB after",
        of(|round| round.postgres),
        of(|round| round.wall),
    );
    let (unit, cpu) = ("ms CPU of the functions", of(|round| round.cpu));
    match kind.cpu_max {
        Some(max) => report.at_most(&what, unit, max, cpu, beside),
        None => report.reported(&what, unit, cpu, beside),
    }
    if kind.by_executors {
        let grown = during - before;
        let budget = format!("flat: grows by less than {GROWTH_MAX} MB");
        let what = format!("{what}: memory");
        report.holds(&what, &budget, format!("{grown:.1} MB"), String::new(), grown < GROWTH_MAX);
    }
    Ok(())
}

/// Resident memory of the largest process of a function, in megabytes: now (0), or at its highest (1).
fn memory(server: &Server, function: &str, which: usize) -> anyhow::Result<f64> {
    let processes = server.function(function);
    ensure!(!processes.is_empty(), "the function {function} has no process");
    let mut most = 0.0_f64;
    for pid in processes {
        let (now, highest) = memory_megabytes(pid)?;
        most = most.max([now, highest][which]);
    }
    Ok(most)
}

/// All clients at once, each its cycles one after the other.
async fn round(server: &Server, kind: &Kind, clients: &mut [Client], each: usize) -> anyhow::Result<Round> {
    let functions = || server.function("plumbline-").into_iter().map(own_cpu_milliseconds).sum::<f64>();
    let (cpu, postgres) = (functions(), server.postgres_cpu());
    let all = (clients.len() * each) as f64;
    let running = clients.iter_mut().map(async |client| {
        let began = Instant::now();
        for _ in 0..each {
            client.cycles += 1;
            if kind.by_executors {
                by_executor(server, client, kind.bytes).await?;
            } else {
                by_person(server, client, kind.bytes).await?;
            }
        }
        Ok::<_, anyhow::Error>(began.elapsed().as_secs_f64() * 1000.0)
    });
    let taken = futures::future::try_join_all(running).await?;
    Ok(Round {
        cpu: (functions() - cpu) / all,
        postgres: (server.postgres_cpu() - postgres) / all,
        wall: taken.iter().sum::<f64>() / all,
    })
}

fn json_body(body: Bytes) -> Option<(&'static str, Bytes)> {
    Some(("application/json", body))
}

async fn by_person(server: &Server, client: &Client, bytes: usize) -> anyhow::Result<()> {
    let Client { path, token, cycles } = client;
    let id = format!("lock-{cycles}");
    let lock_path = format!("{path}/lock");
    server.send(Method::POST, &lock_path, token, json_body(lock_info(&id))).await?;
    // Above a size redirected to the object store; the client follows and reads the whole.
    let read = server.send(Method::GET, path, token, None).await?;
    ensure!(*cycles == 1 || read.len() >= bytes / 2, "a state of {} bytes", read.len());
    let body = json_body(state(*cycles, bytes));
    server.send(Method::PUT, &format!("{path}?ID={id}"), token, body).await?;
    server.send(Method::DELETE, &lock_path, token, json_body(lock_info(&id))).await?;
    Ok(())
}

/// A run that applies, and the executor that does it and holds its task.
async fn executor(server: &Server, n: usize) -> anyhow::Result<Client> {
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
        VALUES ($1, $2, 'executor', 'run_apply', $3, 'running', 1, 3, $4, 1, 'live', now() + interval '1 hour')";
    let workspace = server.workspace().await?;
    let (run, executor, task) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    let token = format!("the token of the benchmark's executor {n}");
    let conn = server.db.conn().await?;
    conn.execute(RUN, &[&run, &server.unit, &workspace]).await?;
    let hash = Sha256Digest::of(token.as_bytes());
    conn.execute(TASK, &[&task, &server.unit, &run, &run.to_string()]).await?;
    conn.execute(EXECUTOR, &[&executor, &server.unit, &task, &run, &hash.0.as_slice()]).await?;
    Ok(Client { path: "/executor/v1/state".into(), token, cycles: 0 })
}

async fn by_executor(server: &Server, client: &Client, bytes: usize) -> anyhow::Result<()> {
    let Client { path, token, cycles } = client;
    let id = format!("lock-{cycles}");
    let lock_path = format!("{path}/lock");
    server.send(Method::POST, &lock_path, token, json_body(lock_info(&id))).await?;
    let read = server.send(Method::GET, path, token, None).await?;
    ensure!(*cycles == 1 || read.len() >= bytes / 2, "a state of {} bytes", read.len());
    let body = state(*cycles, bytes);
    let begin = StateUploadBegin {
        lock_id: Some(id.clone()),
        serial: i64::try_from(*cycles)?,
        lineage: "bench".into(),
        size_bytes: body.len() as u64,
        md5: hex::encode(md5::Md5::digest(&body)),
        sha256: Sha256Digest::of(&body),
        terraform_version: Some("1.11.4".into()),
    };
    let begin = json_body(serde_json::to_vec(&begin)?.into());
    let begun = server.send(Method::POST, &format!("{path}/uploads"), token, begin).await?;
    let begun: StateUploadAnswer = serde_json::from_slice(&begun).context("an upload")?;
    let mut put = server.http.put(&begun.request.url).body(body);
    for (name, value) in &begun.request.headers {
        put = put.header(name, value);
    }
    put.send().await?.error_for_status()?;
    let commit = format!("{path}/uploads/{}/commit", begun.upload_id.0);
    server.send(Method::POST, &commit, token, json_body(Bytes::from_static(b"{}"))).await?;
    server.send(Method::DELETE, &lock_path, token, json_body(lock_info(&id))).await?;
    Ok(())
}
