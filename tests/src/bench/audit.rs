//! Verifying the audit log.

use plumbline_core::access::Actor;
use plumbline_core::audit::{self, Action, Entry};
use plumbline_core::db::DbError;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Report;
use crate::server::Server;

const ENTRIES: i64 = 10_000;
const VERIFICATIONS: usize = 10;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&[]).await?;
    let unit = server.unit;
    let record = server.db.transaction(async |tx| {
        for n in 0..ENTRIES {
            let entry = Entry {
                business_unit_id: Some(unit),
                actor: Actor::System,
                action: Action::StateWrite,
                resource_type: "tfstate",
                resource_id: uuid::Uuid::now_v7().to_string(),
                workspace_id: None,
                run_id: None,
                details: json!({ "serial": n, "lineage": "bench", "size_bytes": 10_240, "lock_id": null }),
            };
            audit::service::record(tx, &entry).await?;
        }
        Ok::<_, DbError>(())
    });
    record.await?;
    let path = "/api/v1/audit/verify";
    let cost = server
        .measure(VERIFICATIONS, async |_| {
            let found: Value = serde_json::from_slice(&server.api(Method::GET, path, None).await?)?;
            let whole = found["ok"] == true && found["entries"].as_i64() >= Some(ENTRIES);
            anyhow::ensure!(whole, "the log verifies: {found}");
            Ok(())
        })
        .await?;
    report.at_most("audit verify, 10,000 rows", "ms server CPU", 40.0, cost.cpu, cost.beside());
    Ok(())
}
