//! What the audit log costs a client: edits through the API with the log and without it, by 32 clients at once.

use std::time::{Duration, Instant};

use anyhow::ensure;
use plumbline_core::db::Query as _;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Report, median};
use crate::server::Server;

const CLIENTS: usize = 32;
const UNITS: usize = 20;
const ROUND: Duration = Duration::from_secs(5);
/// Interleaved rounds of each variant; the median counts.
const ROUNDS: usize = 3;

const UNIT: &str = "INSERT INTO business_units (id, slug, name)
    SELECT md5('unit' || n)::uuid, 'unit-' || n, 'unit' FROM generate_series(0, 19) n";
const WORKSPACES: &str = "
    INSERT INTO workspaces (id, business_unit_id, name, environment, aws_account_id, region, repo_url, tf_working_dir)
    SELECT md5('row' || n || '/' || units)::uuid, md5('unit' || n % units)::uuid, 'net', 'dev', 'global', 'global',
           'https://git.example.com/net.git', n || '/' || units
    FROM generate_series(0, 31) n, unnest(ARRAY[1, 20]) units";
const IDS: &str = "
    SELECT md5('row' || n || '/' || $1::int8)::uuid::text FROM generate_series(0, 31) n ORDER BY n";
const ORIGINAL: &str = "SELECT pg_get_functiondef('audit_append'::regproc)";
/// What is asked for all the same costs its round trip in both variants.
const NOTHING: &str = "
    CREATE OR REPLACE FUNCTION audit_append(chain uuid, before text, middle text, after text) RETURNS bigint
    LANGUAGE sql AS 'SELECT 0::bigint'";
const ENTRIES: &str = "SELECT count(*) FROM audit_entries";

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&[]).await?;
    server.execute(&[UNIT, WORKSPACES].join(";")).await?;
    let original: String = server.db.conn().await?.query_one(ORIGINAL, &[]).await?.get(0);
    for units in [UNITS, 1] {
        let (mut plain, mut audited) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            server.execute(NOTHING).await?;
            plain.push(round(&server, units, false).await?);
            server.execute(&original).await?;
            audited.push(round(&server, units, true).await?);
        }
        let (plain, audited) = (median(plain), median(audited));
        let (ratio, beside) = (audited / plain, format!("{audited:.0}/s; {plain:.0}/s without"));
        match units {
            1 => report.reported("audited edits, 32 clients in one unit", UNIT_OF_RATIO, ratio, beside),
            _ => {
                report.at_least("audited edits, 32 clients over 20 units", UNIT_OF_RATIO, 0.8, ratio, beside)
            }
        }
    }
    Ok(())
}

const UNIT_OF_RATIO: &str = "× without the log";

/// Edits per second.
async fn round(server: &Server, units: usize, audited: bool) -> anyhow::Result<f64> {
    let conn = server.db.conn().await?;
    let ids: Vec<String> =
        conn.query(IDS, &[&i64::try_from(units)?]).await?.iter().map(|row| row.get(0)).collect();
    let before: i64 = conn.query_one(ENTRIES, &[]).await?.get(0);
    let began = Instant::now();
    let clients = (0..CLIENTS).map(async |client| {
        // No two clients edit the same row: only the log is what they share.
        let mut written = 0_usize;
        while began.elapsed() < ROUND {
            edit(server, &ids[client], client % units, written).await?;
            written += 1;
        }
        Ok::<_, anyhow::Error>(written)
    });
    let written: usize = futures::future::try_join_all(clients).await?.into_iter().sum();
    let rate = written as f64 / began.elapsed().as_secs_f64();
    let recorded = conn.query_one(ENTRIES, &[]).await?.get::<_, i64>(0) - before;
    ensure!(
        recorded == if audited { i64::try_from(written)? } else { 0 },
        "{written} edits, {recorded} entries"
    );
    Ok(rate)
}

async fn edit(server: &Server, id: &str, unit: usize, n: usize) -> anyhow::Result<()> {
    let environment = if n.is_multiple_of(2) { "prod" } else { "dev" };
    let answer = server
        .http
        .request(Method::PUT, format!("{}/api/v1/workspaces/{id}", server.facts.url))
        .bearer_auth(&server.token)
        .header("X-Business-Unit", format!("unit-{unit}"))
        .header("If-Match", "*")
        .json(&json!({ "environment": environment }))
        .send()
        .await?;
    let status = answer.status();
    ensure!(status.is_success(), "{status} {}", answer.text().await?);
    Ok(())
}
