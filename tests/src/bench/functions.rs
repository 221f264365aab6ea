//! Functions as programs: from the start of the process to the first answer, memory, and the reconciler's tick.

use plumbline_tests::wire::Wire;
use serde_json::{Value, json};

use crate::harness::{Report, median};
use crate::lambda::{Function, expect_success, request};
use crate::processes::{memory_megabytes, own_cpu_milliseconds};
use crate::server::Server;
use crate::state;

const STARTS: usize = 9;
/// As much as a request may carry through Lambda.
const LARGE_STATE_BYTES: usize = 4 << 20;
const LARGE_WRITES: usize = 6;
const TICKS: usize = 5;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&[]).await?;
    starts(&server, report).await?;
    memory(&server, report).await?;
    ticks(&server, report).await
}

async fn starts(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let url = server.database_url()?;
    let calls =
        [("without database", "/api/v1/health/live", 60.0), ("with database", "/api/v1/workspaces", 120.0)];
    for (which, path, budget) in calls {
        let (mut taken, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            let mut function = Function::start("plumbline-api", server, &url).await?;
            let (elapsed, answer) = function.invoke(&request("GET", path, &server.token, b"")).await?;
            expect_success(&answer)?;
            taken.push(elapsed.as_secs_f64() * 1000.0);
            cpu.push(own_cpu_milliseconds(function.pid()));
        }
        let beside = format!("{:.0} ms of it CPU", median(cpu));
        report.at_most(
            &format!("function: process start → first response, {which}"),
            "ms",
            budget,
            median(taken),
            beside,
        );
    }
    Ok(())
}

async fn memory(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let path = format!("/api/v1/state/{}", server.workspace().await?);
    let mut function = Function::start("plumbline-tfstate", server, &server.database_url()?).await?;
    let (_, answer) = function.invoke(&request("GET", &path, &server.token, b"")).await?;
    expect_success(&answer)?;
    let (idle, _) = memory_megabytes(function.pid())?;
    for n in 0..LARGE_WRITES {
        let body = state::state(n + 1, LARGE_STATE_BYTES);
        let (_, answer) = function.invoke(&request("POST", &path, &server.token, &body)).await?;
        expect_success(&answer)?;
    }
    let (_, peak) = memory_megabytes(function.pid())?;
    let beside = format!("tfstate after {LARGE_WRITES} writes of {} MB", LARGE_STATE_BYTES >> 20);
    report.at_most("resident memory of one function, idle", "MB", 30.0, idle, "tfstate after a read".into());
    report.at_most("resident memory of one function, peak", "MB", 80.0, peak, beside);
    Ok(())
}

const FINISHED: &str = "
    INSERT INTO finished_tasks (id, business_unit_id, class, kind, subject_id, payload, priority, outcome, attempts,
                                attempts_max, lease_token, dedupe_key, created_at)
    SELECT gen_random_uuid(), unit.id, 'short', 'workspace_branches', gen_random_uuid(), '{}', 100, 'done', 1, 2, 1,
           n::text, now()
    FROM business_units unit, generate_series(1, 100000) n WHERE unit.slug = 'default';
    ANALYZE finished_tasks";

async fn ticks(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let wire = Wire::before(&server.database_url()?).await?;
    let mut function = Function::start("plumbline-reconciler", server, &wire.url).await?;
    // The first ones sign in, prepare statements and make the first checkpoint.
    for _ in 0..2 {
        tick(&mut function).await?;
    }
    wire.take();
    tick(&mut function).await?;
    let few = wire.take();
    server.execute(FINISHED).await?;
    let before = own_cpu_milliseconds(function.pid());
    let mut trips = Vec::new();
    for _ in 0..TICKS {
        tick(&mut function).await?;
        trips.push(wire.take());
    }
    let cpu = (own_cpu_milliseconds(function.pid()) - before) / TICKS as f64;
    report.holds(
        "reconciler tick, 100,000 finished tasks: round trips",
        "as many as without",
        format!("{trips:?}"),
        format!("{few} without"),
        trips.iter().all(|trips| *trips == few),
    );
    report.at_most(
        "reconciler tick, 100,000 finished tasks",
        "ms CPU",
        100.0,
        cpu,
        "the function's process".into(),
    );
    report.not_measured("reconciler tick, 10,000 instances", "≤ 100 ms CPU", "there are no instances yet");
    Ok(())
}

async fn tick(function: &mut Function) -> anyhow::Result<Value> {
    let event = json!({
        "version": "0", "id": "1", "detail-type": "Scheduled Event", "source": "aws.events",
        "account": "000000000000", "time": "2026-01-01T00:00:00Z", "region": "us-east-1", "resources": [],
        "detail": {},
    });
    Ok(function.invoke(&event).await?.1)
}
