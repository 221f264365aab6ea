//! One workspace on a plane of its own, and runs of it with an executor that the test plays.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use crate::executors::{ADDS_ONE, FakeExecutor};
use crate::plane::TestPlane;

/// A plane, an admin of the unit `default`, and a workspace that only runs may change.
pub struct World {
    pub plane: TestPlane,
    pub token: String,
    pub workspace: String,
}

impl World {
    pub async fn new() -> Self {
        Self::on(TestPlane::start().await).await
    }

    /// On a plane whose wiring a test has changed.
    pub async fn on(plane: TestPlane) -> Self {
        let token = plane.user(Role::Admin).await;
        let (status, workspace) = post(
            &plane,
            &token,
            "/api/v1/workspaces",
            json!({"name": "net", "environment": "dev", "repo_url": "https://git.example.com/infra.git"}),
        )
        .await;
        assert_eq!(status, StatusCode::CREATED, "{workspace}");
        let workspace = workspace["id"].as_str().unwrap().to_owned();
        Self { plane, token, workspace }
    }

    /// Posts as the admin, relative to `/api/v1`.
    pub async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        post(&self.plane, &self.token, &format!("/api/v1/{path}"), body).await
    }

    /// Reads as the admin, relative to `/api/v1`.
    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        let answer = self.plane.call("GET", &format!("/api/v1/{path}"), self.token.as_str(), None).await;
        (answer.0, answer.2)
    }

    /// A new run of the workspace: its id.
    pub async fn trigger(&self, command: &str) -> String {
        let body = json!({"workspace_id": self.workspace, "command": command});
        let (status, run) = self.post("runs", body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    /// The run as people see it.
    pub async fn run(&self, id: &str) -> Value {
        let (status, run) = self.get(&format!("runs/{id}")).await;
        assert_eq!(status, StatusCode::OK, "{run}");
        run
    }

    /// Where the run stands.
    pub async fn status(&self, id: &str) -> String {
        self.run(id).await["status"].as_str().unwrap().to_owned()
    }

    /// Triggers an apply and plans it.
    pub async fn planned(&self) -> String {
        let id = self.trigger("apply").await;
        let (status, answer) = FakeExecutor::start(&self.plane).await.plan(ADDS_ONE).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
        id
    }

    /// Triggers, plans, approves and begins an apply.
    pub async fn applying(&self) -> (String, FakeExecutor<'_>) {
        let id = self.planned().await;
        let (status, answer) = self.post(&format!("approvals/{id}/approve"), json!({})).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let executor = FakeExecutor::start(&self.plane).await;
        assert_eq!(executor.begin_apply().await.0, StatusCode::NO_CONTENT);
        (id, executor)
    }

    /// How many tasks of a kind are queued or running.
    pub async fn live_tasks(&self, kind: &str) -> i64 {
        let conn = self.plane.db().conn().await.unwrap();
        conn.query_one("SELECT count(*) FROM tasks WHERE kind = $1", &[&kind]).await.unwrap().get(0)
    }

    /// What the audit log says about a run, oldest first.
    pub async fn audit_actions(&self, run: &str) -> Vec<String> {
        let conn = self.plane.db().conn().await.unwrap();
        let run: uuid::Uuid = run.parse().unwrap();
        conn.query("SELECT action FROM audit_entries WHERE run_id = $1 ORDER BY sequence", &[&run])
            .await
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect()
    }

    /// Moves the head of the state as an accepted write by somebody else would.
    pub async fn move_state(&self, serial: i64) {
        let conn = self.plane.db().conn().await.unwrap();
        let workspace: uuid::Uuid = self.workspace.parse().unwrap();
        let version = uuid::Uuid::now_v7();
        conn.execute(
            "INSERT INTO tfstates (workspace_id, business_unit_id)
             SELECT id, business_unit_id FROM workspaces WHERE id = $1 ON CONFLICT DO NOTHING",
            &[&workspace],
        )
        .await
        .unwrap();
        conn.execute(
            "INSERT INTO state_versions (id, business_unit_id, workspace_id, serial, lineage, generation, md5, sha256,
                                         size_bytes, key)
             SELECT $2, business_unit_id, id, $3, 'l', 1, decode(repeat('00', 16), 'hex'),
                    decode(repeat('00', 32), 'hex'), 2, 'k'
             FROM workspaces WHERE id = $1",
            &[&workspace, &version, &serial],
        )
        .await
        .unwrap();
        conn.execute(
            "UPDATE tfstates
             SET head_version_id = v.id, head_serial = v.serial, head_lineage = v.lineage, head_key = v.key,
                 head_size_bytes = v.size_bytes, head_md5 = v.md5, head_sha256 = v.sha256
             FROM state_versions v WHERE tfstates.workspace_id = $1 AND v.id = $2 AND v.serial = $3",
            &[&workspace, &version, &serial],
        )
        .await
        .unwrap();
    }
}

/// Posts as somebody.
pub async fn post(plane: &TestPlane, token: &str, path: &str, body: Value) -> (StatusCode, Value) {
    let answer = plane.call("POST", path, token, body).await;
    (answer.0, answer.2)
}
