//! One workspace, and a client that speaks Terraform's backend protocol to it.

use axum::Router;
use axum::body::Body;
use axum::serve::ListenerExt as _;
use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use md5::Digest as _;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::{BusinessUnitId, ExecutorId, RunId, WorkspaceId};
use plumbline_core::protocol::{Presigned, RunPhase, StateUploadBegin};
use plumbline_core::tfstates::service::StateActor;
use plumbline_runtime::Function;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt as _;
use uuid::Uuid;

use crate::plane::TestPlane;

/// A workspace and an admin who may write its state.
pub struct Backend {
    pub plane: TestPlane,
    pub unit: BusinessUnitId,
    pub workspace: WorkspaceId,
    pub token: String,
}

/// Status, headers, body.
pub type Answer = (StatusCode, HeaderMap, Bytes);

/// A state as Terraform writes it.
pub fn state(serial: i64, lineage: &str, value: &str) -> String {
    let attributes = json!({ "id": "x", "input": value });
    json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": lineage,
        "outputs": { "value": { "value": value, "type": "string" } },
        "resources": [{ "mode": "managed", "type": "terraform_data", "name": "one", "provider": "p",
                        "instances": [{ "schema_version": 0, "attributes": attributes }] }],
        "check_results": null,
    })
    .to_string()
}

/// A LockInfo as Terraform sends it.
pub fn lock_info(id: &str) -> String {
    json!({ "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "somebody@somewhere", "Version": "1.11.4",
            "Created": "2026-01-01T00:00:00Z", "Path": "" })
    .to_string()
}

/// A new workspace of a unit.
pub async fn insert_workspace(plane: &TestPlane, unit: BusinessUnitId, state_writes: &str) -> WorkspaceId {
    const INSERT: &str = "
        INSERT INTO workspaces (id, business_unit_id, name, environment, aws_account_id, region, repo_url,
                                tf_working_dir, state_writes)
        VALUES ($1, $2, 'net', 'dev', 'global', 'global', 'https://git.example.com/net.git', $4, $3)";
    let id: WorkspaceId = plane.deps.ids.mint();
    let conn = plane.db().conn().await.unwrap();
    conn.execute(INSERT, &[&id, &unit, &state_writes, &id.to_string()]).await.unwrap();
    id
}

impl Backend {
    pub async fn start() -> Self {
        Self::on(TestPlane::start().await).await
    }

    /// On a plane whose wiring a test has changed.
    pub async fn on(plane: TestPlane) -> Self {
        let token = plane.user(Role::Admin).await;
        let unit = plane.unit("default").await;
        let workspace = insert_workspace(&plane, unit, "runs_and_people").await;
        Self { plane, unit, workspace, token }
    }

    pub fn router(&self) -> Router {
        plumbline_tfstate::router(self.plane.as_function(Function::Tfstate))
    }

    /// Serves the backend over real HTTP, and gives scheme, host and port.
    pub async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
        let router = self.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        origin
    }

    /// Sends a request with Basic authentication, as Terraform does.
    pub async fn send_as(&self, token: &str, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let body: Bytes = body.into();
        let mut request = Request::builder().method(method).uri(path).header("authorization", basic(token));
        if !body.is_empty() {
            request = request.header("content-type", "application/json").header("content-md5", md5_of(&body));
        }
        self.raw(request.body(Body::from(body)).unwrap()).await
    }

    pub async fn raw(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.router().oneshot(request).await.unwrap().into_parts();
        (parts.status, parts.headers, body.collect().await.unwrap().to_bytes())
    }

    pub fn path(&self) -> String {
        format!("/api/v1/state/{}", self.workspace)
    }

    pub async fn read(&self) -> Answer {
        self.send_as(&self.token, "GET", &self.path(), "").await
    }

    pub async fn write(&self, lock: Option<&str>, body: &str) -> Answer {
        let query = lock.map(|id| format!("?ID={id}")).unwrap_or_default();
        self.send_as(&self.token, "POST", &(self.path() + &query), body.to_owned()).await
    }

    pub async fn lock(&self, id: &str) -> Answer {
        self.send_as(&self.token, "LOCK", &self.path(), lock_info(id)).await
    }

    pub async fn unlock(&self, id: &str) -> Answer {
        self.send_as(&self.token, "UNLOCK", &self.path(), lock_info(id)).await
    }

    /// Calls the users' API as the admin.
    pub async fn api(&self, method: &str, path: &str) -> (StatusCode, Value) {
        let body = (method == "POST").then(|| json!({}));
        let (status, _, body) =
            self.plane.call(method, &format!("/api/v1/{path}"), self.token.as_str(), body).await;
        (status, body)
    }

    pub async fn versions(&self) -> Vec<Value> {
        let (status, page) = self.api("GET", &format!("workspaces/{}/state-versions", self.workspace)).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page["items"].as_array().unwrap().clone()
    }

    pub async fn quarantined(&self) -> Vec<Value> {
        let path = format!("workspaces/{}/quarantined-states", self.workspace);
        let (status, page) = self.api("GET", &path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page["items"].as_array().unwrap().clone()
    }

    /// What the audit log says about the workspace, oldest first.
    pub async fn audited(&self) -> Vec<String> {
        const ACTIONS: &str = "SELECT action FROM audit_entries WHERE workspace_id = $1 ORDER BY sequence";
        let conn = self.plane.db().conn().await.unwrap();
        conn.query(ACTIONS, &[&self.workspace]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// An executor of this workspace, as the callback function would name it.
    pub async fn executor(&self, phase: RunPhase) -> StateActor<'static> {
        const INSERT: &str = "
            INSERT INTO executors (id, business_unit_id, task_id, lease_token, kind, subject_id, launcher, status)
            VALUES ($1, $2, $3, 1, 'run_apply', $4, 'local', 'live')";
        let executor_id: ExecutorId = self.plane.deps.ids.mint();
        let run_id: RunId = self.plane.deps.ids.mint();
        let conn = self.plane.db().conn().await.unwrap();
        conn.execute(INSERT, &[&executor_id, &self.unit, &Uuid::now_v7(), &run_id]).await.unwrap();
        StateActor::Executor { business_unit_id: self.unit, run_id, executor_id, phase }
    }
}

pub fn basic(token: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("terraform:{token}")))
}

/// What announces an upload of a body.
pub fn announce(lock_id: Option<&str>, serial: i64, lineage: &str, body: &str) -> StateUploadBegin {
    StateUploadBegin {
        lock_id: lock_id.map(str::to_owned),
        serial,
        lineage: lineage.into(),
        size_bytes: body.len() as u64,
        md5: hex::encode(md5::Md5::digest(body)),
        sha256: Sha256Digest::of(body.as_bytes()),
        terraform_version: Some("1.11.4".into()),
    }
}

/// Does what was signed, with these bytes.
pub async fn send_signed(request: &Presigned, body: impl Into<reqwest::Body>) -> (StatusCode, Bytes) {
    let method = request.method.parse().unwrap();
    let mut call = reqwest::Client::new().request(method, &request.url).body(body);
    // The client says by itself how long the body is.
    for (name, value) in
        request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-length"))
    {
        call = call.header(name, value);
    }
    let answer = call.send().await.expect("an answer");
    (answer.status(), answer.bytes().await.unwrap_or_default())
}

pub fn md5_of(body: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(body))
}
