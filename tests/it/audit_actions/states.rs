//! Stories of states.

use std::time::Duration;

use http::{Method, StatusCode};
use plumbline_core::tasks::{self, TaskClass};
use plumbline_core::{resources, tfstates};
use plumbline_runtime::Function;
use serde_json::json;

use super::ok;
use crate::executors::FakeExecutor;
use crate::plane::TestPlane;
use crate::store::state_client::{Backend, state};
use crate::world::World;

/// Outputs that are read by a run, and a history that is too long.
pub(super) async fn shared() -> TestPlane {
    let World { plane, workspace, .. } = World::new().await;
    let backend = Backend::on(plane).await;
    for serial in 1..=11 {
        backend.write(None, &state(serial, "l", &serial.to_string())).await;
    }
    let path = format!("workspaces/{}/state-consumers", backend.workspace);
    ok(&backend.plane, &backend.token, "PUT", &path, json!({ "workspace_ids": [workspace] })).await;
    let plan = json!({ "workspace_id": workspace, "command": "plan" });
    ok(&backend.plane, &backend.token, "POST", "runs", plan).await;
    let executor = FakeExecutor::start(&backend.plane).await;
    let read = backend.send_as(&executor.bundle.run_password, "GET", &backend.path(), "").await;
    assert_eq!(read.0, StatusCode::OK);
    drop(executor);
    let admin = backend.plane.admin_token().await;
    for (setting, value) in [("state_versions", 10), ("state_version_days", 1)] {
        let path = format!("runtime-config/retention.{setting}");
        ok(&backend.plane, &admin, "PUT", &path, json!({ "value": value })).await;
    }
    backend.plane.advance(Duration::from_secs(2 * 86_400)).await;
    let reconciler = backend.plane.as_function(Function::Reconciler);
    tfstates::service::sweep_versions(&reconciler).await.unwrap();
    backend.plane
}

/// A state that is written, rolled back, quarantined, unlocked by force and looked into.
pub(super) async fn states() -> TestPlane {
    let backend = Backend::start().await;
    backend.lock("l-1").await;
    backend.write(Some("l-1"), &state(1, "l", "a")).await;
    backend.unlock("l-1").await;
    backend.read().await;
    backend.write(None, &state(2, "l", "b")).await;
    let oldest = backend.versions().await[1]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        backend.api("POST", &format!("state-versions/{oldest}/rollback")).await.0,
        StatusCode::CREATED
    );
    for (value, decision) in [("late", "promote"), ("later", "discard")] {
        backend.write(Some("never-held"), &state(9, "l", value)).await;
        let id = backend.quarantined().await[0]["id"].as_str().unwrap().to_owned();
        let (status, decided) = backend.api("POST", &format!("quarantined-states/{id}/{decision}")).await;
        assert_eq!(status, StatusCode::OK, "{decided}");
    }
    backend.lock("l-2").await;
    let lock = format!("workspaces/{}/state-lock", backend.workspace);
    assert_eq!(backend.api(Method::DELETE.as_str(), &lock).await.0, StatusCode::NO_CONTENT);
    // What an upload brought is only known when somebody has read it.
    let conn = backend.plane.db().conn().await.unwrap();
    conn.batch("UPDATE tfstates SET head_serial = head_serial + 1").await.unwrap();
    resources::sweeps::enqueue_due(&backend.plane.as_function(Function::Reconciler)).await.unwrap();
    let worker = backend.plane.as_function(Function::Worker);
    let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "w", 1, &worker.limits).await.unwrap();
    resources::tasks::index(&worker, &claimed[0]).await.unwrap();
    let accept = format!("workspaces/{}/accept-next-lineage", backend.workspace);
    assert_eq!(backend.api("POST", &accept).await.0, StatusCode::NO_CONTENT);
    backend.plane
}
