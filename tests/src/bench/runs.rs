//! Runs: asking for one, what one plan's executor calls, the first pages of long lists.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use plumbline_core::Deps;
use plumbline_core::adapters::{DirectoryStore, NoWaker};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::executors::service::prepare_launch;
use plumbline_core::ids::{IdSource, WorkspaceId};
use plumbline_core::limits::Limits;
use plumbline_core::protocol::{
    ArtifactKind, Bundle, PlanDone, TradeRequest, UploadAnswer, UploadBegin, VERSION,
};
use plumbline_core::secrets::Keyring;
use plumbline_core::tasks::{TaskClass, service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Report;
use crate::server::Server;

const POSTS: usize = 200;
const CLIENTS: usize = 64;
const POSTS_PER_CLIENT: usize = 5;
const PLANS: usize = 20;
const PAGES: usize = 200;
const PLAN_JSON: &[u8] = br#"{"format_version":"1.2","complete":true,"errored":false,"resource_changes":[
    {"address":"terraform_data.a","mode":"managed","change":{"actions":["create"]}}]}"#;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&[]).await?;
    let workspace = server.workspace().await?;
    lists(&server, report).await?;
    posts(&server, workspace, report).await?;
    drop(server);
    plans(report).await
}

async fn post_run(server: &Server, workspace: WorkspaceId) -> anyhow::Result<()> {
    let body = json!({ "workspace_id": workspace, "command": "plan" });
    server.api(Method::POST, "/api/v1/runs", Some(&body)).await.map(drop)
}

async fn posts(server: &Server, workspace: WorkspaceId, report: &mut Report) -> anyhow::Result<()> {
    let cost = server.measure(POSTS, async |_| post_run(server, workspace).await).await?;
    report.at_most("POST run", "ms server CPU", 2.0, cost.cpu, cost.beside());
    let began = Instant::now();
    let clients = (0..CLIENTS).map(async |_| {
        let mut errors = Vec::new();
        for _ in 0..POSTS_PER_CLIENT {
            errors.extend(post_run(server, workspace).await.err());
        }
        errors
    });
    let errors: Vec<_> = futures::future::join_all(clients).await.into_iter().flatten().collect();
    let rate = (CLIENTS * POSTS_PER_CLIENT) as f64 / began.elapsed().as_secs_f64();
    let first = errors.first().map(|error| format!("; {error:#}")).unwrap_or_default();
    report.holds(
        "POST run, 64 clients",
        "no error",
        format!("{} errors", errors.len()),
        format!("{rate:.0} runs/s{first}"),
        errors.is_empty(),
    );
    Ok(())
}

async fn plans(report: &mut Report) -> anyhow::Result<()> {
    let server = &Server::start(&["--lambda"]).await?;
    let workspace = server.workspace().await?;
    // Prepares launches as the worker would: tickets are hashed, so any key does.
    let keys = Keyring::from_root("a root key of the benchmark, 32 characters or more")?;
    let scratch = tempfile::tempdir()?;
    let blobs_key = *keys.key(plumbline_core::secrets::Domain::Blobs)?;
    let deps = Deps {
        db: server.db.clone(),
        blobs: std::sync::Arc::new(DirectoryStore::new(
            scratch.path(),
            "http://127.0.0.1:9/blobs",
            blobs_key,
        )),
        waker: std::sync::Arc::new(NoWaker),
        state_stores: std::sync::Arc::default(),
        ids: IdSource,
        keys: std::sync::Arc::new(keys),
        limits: std::sync::Arc::new(Limits { launches_per_second: 1e6, ..Limits::default() }),
        public_url: server.facts.url.as_str().into(),
        local_repos_root: None,
        allow_private_addresses: true,
        task_identity: None,
        audit_signer: None,
        issuer_signers: std::sync::Arc::new([]),
        endpoints: std::sync::Arc::default(),
        sts_endpoint: None,
        overrides: std::sync::Arc::default(),
    };
    // Each round of the measurement plans runs that were asked for before: their cost is another row's.
    let mut tickets = Vec::new();
    for _ in 0..PLANS * 4 {
        post_run(server, workspace).await?;
        let mut claimed = service::claim(&deps.db, TaskClass::Executor, "bench", 1, &deps.limits).await?;
        let task = claimed.pop().context("the run's task is due")?;
        let launch = prepare_launch(&deps, &task, "local").await?;
        tickets.push(launch.ticket);
        // Only this bench's bookkeeping: the cap of a unit is not what is measured.
        server.execute("UPDATE queue_units SET running = 0; UPDATE launch_budget SET running = 0").await?;
    }
    server.execute("UPDATE queue_units SET running = 1000; UPDATE launch_budget SET running = 1000").await?;
    let mut calls = 0;
    let cost = server
        .measure(PLANS, async |n| {
            let ticket = tickets.get(n).context("a ticket")?;
            calls = plan(server, ticket).await?;
            Ok(())
        })
        .await?;
    report.at_most(
        &format!("one plan run's callbacks ({calls} calls)"),
        "ms CPU of the functions",
        20.0,
        cost.cpu,
        cost.beside(),
    );
    Ok(())
}

/// One plan as its executor reports it. Returns how many calls there were.
async fn plan(server: &Server, ticket: &str) -> anyhow::Result<usize> {
    let nonce = hex::encode(rand::random::<[u8; 32]>());
    let request = TradeRequest { protocol: VERSION, ticket: ticket.into(), nonce, identity: None };
    let body = Bytes::from(serde_json::to_vec(&request)?);
    let bundle = server.send(Method::POST, "/executor/v1/trade", "", ("application/json", body)).await?;
    let bundle: Bundle = serde_json::from_slice(&bundle)?;
    let mut calls = 1;
    let send = async |method: Method, path: &str, content_type: &str, body: Bytes| {
        server.send(method, &format!("/executor/v1/{path}"), &bundle.token, (content_type, body)).await
    };
    let tell = async |method: Method, path: &str, body: Value| {
        send(method, path, "application/json", body.to_string().into()).await
    };
    for step in &bundle.steps {
        let path = format!("steps/{}", step.position);
        tell(Method::PUT, &path, json!({ "status": "running" })).await?;
        let log = Bytes::from(format!("{}\n", step.name).repeat(40));
        send(Method::PUT, &format!("{path}/log?offset=0"), "application/octet-stream", log).await?;
        let mut report = json!({ "status": "succeeded" });
        if step.position == 1 {
            report["commit"] = "c0ffee0000000000000000000000000000000000".into();
        }
        if step.position == 3 {
            report["tool_version"] = "1.11.4".into();
        }
        tell(Method::PUT, &path, report).await?;
        calls += 3;
    }
    tell(Method::POST, "heartbeat", json!({})).await?;
    let file = Bytes::from(format!("the plan of {}", bundle.run_id));
    let kinds = [
        (ArtifactKind::PlanFile, file.clone()),
        (ArtifactKind::PlanJson, Bytes::from_static(PLAN_JSON)),
        (ArtifactKind::PlanJsonRedacted, Bytes::from_static(PLAN_JSON)),
        (ArtifactKind::PlanText, Bytes::from_static(b"a plan in words")),
    ];
    for (kind, bytes) in kinds {
        let begin = UploadBegin { kind, size_bytes: bytes.len() as u64, sha256: Sha256Digest::of(&bytes) };
        let answer = tell(Method::POST, "artifacts", serde_json::to_value(begin)?).await?;
        let answer: UploadAnswer = serde_json::from_slice(&answer)?;
        let mut put = server.http.put(&answer.request.url).body(bytes);
        for (name, value) in &answer.request.headers {
            put = put.header(name, value);
        }
        put.send().await?.error_for_status()?;
        tell(Method::POST, &format!("artifacts/{}/commit", kind.as_str()), json!({})).await?;
        calls += 2;
    }
    let done = PlanDone {
        plan_sha256: Sha256Digest::of(&file),
        plan_json_sha256: Sha256Digest::of(PLAN_JSON),
        lock_file_sha256: None,
        base_lineage: None,
        base_serial: None,
        summary: plumbline_core::runs::summarise(PLAN_JSON).ok(),
    };
    tell(Method::POST, "plan/complete", serde_json::to_value(done)?).await?;
    Ok(calls + 2)
}

const SEED_WORKSPACES: &str = "
    INSERT INTO workspaces (id, business_unit_id, name, environment, aws_account_id, region, repo_url, tf_working_dir)
    SELECT gen_random_uuid(), unit.id, 'net-' || n, 'dev', 'global', 'global', 'https://git.example.com/net.git',
           'stacks/' || n
    FROM business_units unit, generate_series(1, 1000) n WHERE unit.slug = 'default'";
const SEED_RUNS: &str = "
    INSERT INTO runs (id, business_unit_id, workspace_id, command, status, branch, plan_summary)
    SELECT gen_random_uuid(), w.business_unit_id, w.id, 'plan', 'planned', 'main', '{\"add\": 1}'
    FROM workspaces w, generate_series(1, 10) WHERE w.name LIKE 'net-%';
    ANALYZE workspaces; ANALYZE runs";

async fn lists(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    for _ in 0..60 {
        let workspace = server.workspace().await?;
        post_run(server, workspace).await?;
    }
    let few = [page(server, "workspaces").await?, page(server, "runs").await?];
    server.execute(SEED_WORKSPACES).await?;
    server.execute(SEED_RUNS).await?;
    let many = [page(server, "workspaces").await?, page(server, "runs").await?];
    for (n, what) in ["1,000 workspaces", "10,000 runs"].into_iter().enumerate() {
        let (few, many) = (few[n], many[n]);
        let beside = format!("{:.2} ms with one page of rows; {}", few.cpu, many.beside());
        report.at_most(&format!("first page of {what}"), "ms server CPU", 2.0, many.cpu, beside);
    }
    Ok(())
}

async fn page(server: &Server, what: &str) -> anyhow::Result<crate::server::Cost> {
    let path = format!("/api/v1/{what}");
    let body: Value = serde_json::from_slice(&server.api(Method::GET, &path, None).await?)?;
    ensure!(body["items"].as_array().is_some_and(|items| items.len() >= 50), "a full page of {what}");
    server.measure(PAGES, async |_| server.api(Method::GET, &path, None).await.map(drop)).await
}
