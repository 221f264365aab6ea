//! An executor played by a test: speaks the protocol to the real `callback` router, without terraform.

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::executors::service::{prepare_launch, record_launched};
use plumbline_core::limits::Limits;
use plumbline_core::ports::LaunchRequest;
use plumbline_core::protocol::{
    ArtifactKind, Bundle, PlanDone, TradeRequest, UploadAnswer, UploadBegin, VERSION,
};
use plumbline_core::tasks::{ClaimedTask, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::plane::TestPlane;

/// A plan that adds one resource.
pub const ADDS_ONE: &str = r#"{"format_version":"1.2","complete":true,"errored":false,"resource_changes":[
    {"address":"terraform_data.a","mode":"managed","change":{"actions":["create"]}}]}"#;
/// A plan that changes nothing.
pub const NO_CHANGES: &str = r#"{"format_version":"1.2","complete":true,"errored":false,"resource_changes":[
    {"address":"terraform_data.a","mode":"managed","change":{"actions":["no-op"]}}]}"#;

/// One launched attempt.
pub struct FakeExecutor<'p> {
    plane: &'p TestPlane,
    /// What it was launched with.
    pub launch: LaunchRequest,
    /// What it got for its ticket.
    pub bundle: Bundle,
}

/// Claims one executor task and launches nothing for it: the ticket is in the test's hands.
pub async fn claim_and_prepare(plane: &TestPlane) -> Option<(ClaimedTask, LaunchRequest)> {
    let (task, launch) = prepare_on(plane, "local").await?;
    record(plane, &launch, "test:1").await;
    Some((task, launch))
}

/// What a launch gave.
pub async fn record(plane: &TestPlane, launch: &LaunchRequest, handle: &str) {
    let deps = &plane.as_function(Function::Worker);
    record_launched(deps, launch.executor_id, handle).await.expect("the launch is recorded");
}

/// Claims one executor task for the launcher of this name, which does not say yet what it calls the executor.
pub async fn prepare_on(plane: &TestPlane, launcher: &str) -> Option<(ClaimedTask, LaunchRequest)> {
    let deps = &plane.as_function(Function::Worker);
    let limits = Limits { launches_per_second: 1000.0, ..(*deps.limits).clone() };
    let mut claimed =
        plumbline_core::tasks::service::claim(&deps.db, TaskClass::Executor, "test", 1, &limits)
            .await
            .expect("the claim works");
    let task = claimed.pop()?;
    let launch = prepare_launch(deps, &task, launcher).await.expect("the launch is prepared");
    Some((task, launch))
}

/// Presents a ticket; gives the status and the answer.
pub async fn trade(plane: &TestPlane, ticket: &str, nonce: &str) -> (StatusCode, Value) {
    let request =
        TradeRequest { protocol: VERSION, ticket: ticket.into(), nonce: nonce.into(), identity: None };
    let body = serde_json::to_vec(&request).unwrap();
    send(plane, Method::POST, "/executor/v1/trade", None, "application/json", body).await
}

async fn send(
    plane: &TestPlane,
    method: Method,
    path: &str,
    token: Option<&str>,
    content_type: &str,
    body: Vec<u8>,
) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method).uri(path).header("content-type", content_type);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::from(body)).unwrap();
    let response =
        plumbline_callback::router(plane.as_function(Function::Callback)).oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    assert!(!status.is_server_error(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

impl<'p> FakeExecutor<'p> {
    /// Claims the next executor task and trades its ticket.
    pub async fn start(plane: &'p TestPlane) -> Self {
        Self::try_start(plane).await.expect("a task is due")
    }

    /// The same, if a task is due.
    pub async fn try_start(plane: &'p TestPlane) -> Option<Self> {
        let (_, launch) = claim_and_prepare(plane).await?;
        let (status, bundle) = trade(plane, &launch.ticket, &nonce(1)).await;
        assert_eq!(status, StatusCode::OK, "{bundle}");
        Some(Self { plane, launch, bundle: serde_json::from_value(bundle).unwrap() })
    }

    /// One whose ticket the test has traded.
    pub fn traded(plane: &'p TestPlane, launch: LaunchRequest, bundle: Bundle) -> Self {
        Self { plane, launch, bundle }
    }

    /// Any call with a JSON body.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let path = format!("/executor/v1/{path}");
        let body = serde_json::to_vec(&body).unwrap();
        send(self.plane, method, &path, Some(&self.bundle.token), "application/json", body).await
    }

    /// A heartbeat.
    pub async fn heartbeat(&self) -> (StatusCode, Value) {
        self.call(Method::POST, "heartbeat", json!({})).await
    }

    /// A step's status.
    pub async fn step(&self, position: i16, report: Value) -> (StatusCode, Value) {
        self.call(Method::PUT, &format!("steps/{position}"), report).await
    }

    /// A piece of log.
    pub async fn log(&self, position: i16, offset: u64, bytes: &[u8]) -> (StatusCode, Value) {
        let path = format!("/executor/v1/steps/{position}/log?offset={offset}");
        let token = Some(self.bundle.token.as_str());
        send(self.plane, Method::PUT, &path, token, "application/octet-stream", bytes.to_vec()).await
    }

    /// Uploads and commits an artifact; the object store is written as a signed request would.
    pub async fn upload(&self, kind: ArtifactKind, bytes: &[u8]) -> StatusCode {
        let begin = UploadBegin { kind, size_bytes: bytes.len() as u64, sha256: Sha256Digest::of(bytes) };
        let (status, answer) =
            self.call(Method::POST, "artifacts", serde_json::to_value(begin).unwrap()).await;
        if status != StatusCode::OK {
            return status;
        }
        let answer: UploadAnswer = serde_json::from_value(answer).unwrap();
        let key = answer.request.url.split('?').next().unwrap().split("/blobs/").nth(1).unwrap().to_owned();
        self.plane.deps.blobs.put(&key, Bytes::copy_from_slice(bytes), "application/json").await.unwrap();
        self.call(Method::POST, &format!("artifacts/{}/commit", kind.as_str()), json!({})).await.0
    }

    /// Does a whole plan phase with the given plan JSON and reports it.
    pub async fn plan(&self, json: &str) -> (StatusCode, Value) {
        self.pin().await;
        self.report_plan(json, plumbline_core::runs::summarise(json.as_bytes()).ok()).await
    }

    /// Reports commit, tool version and the plan step.
    pub async fn pin(&self) {
        let commit = "c0ffee0000000000000000000000000000000000";
        let (status, answer) = self.step(1, json!({"status": "succeeded", "commit": commit})).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
        let (status, _) = self.step(3, json!({"status": "succeeded", "tool_version": "1.11.4"})).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let (status, _) = self.step(5, json!({"status": "running"})).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }

    /// Uploads the plan and completes the phase.
    pub async fn report_plan(
        &self,
        plan_json: &str,
        summary: Option<plumbline_core::runs::PlanSummary>,
    ) -> (StatusCode, Value) {
        for (kind, status) in self.upload_plan(plan_json).await {
            assert_eq!(status, StatusCode::NO_CONTENT, "{kind:?}");
        }
        self.plan_done(plan_json, summary).await
    }

    /// Uploads everything that a plan needs.
    pub async fn upload_plan(&self, plan_json: &str) -> Vec<(ArtifactKind, StatusCode)> {
        let plan = plan_file(&self.bundle.run_id.to_string());
        let mut statuses = Vec::new();
        for (kind, bytes) in [
            (ArtifactKind::PlanFile, plan.as_bytes()),
            (ArtifactKind::PlanText, b"a plan in words".as_slice()),
            (ArtifactKind::PlanJson, plan_json.as_bytes()),
            (ArtifactKind::PlanJsonRedacted, plan_json.as_bytes()),
        ] {
            statuses.push((kind, self.upload(kind, bytes).await));
        }
        statuses
    }

    /// Completes the plan phase.
    pub async fn plan_done(
        &self,
        plan_json: &str,
        summary: Option<plumbline_core::runs::PlanSummary>,
    ) -> (StatusCode, Value) {
        let plan = plan_file(&self.bundle.run_id.to_string());
        let done = PlanDone {
            plan_sha256: Sha256Digest::of(plan.as_bytes()),
            plan_json_sha256: Sha256Digest::of(plan_json.as_bytes()),
            lock_file_sha256: None,
            base_lineage: self.bundle.state.as_ref().map(|state| state.lineage.clone()),
            base_serial: self.bundle.state.as_ref().map(|state| state.serial),
            summary,
        };
        self.call(Method::POST, "plan/complete", serde_json::to_value(done).unwrap()).await
    }

    /// Asks to start changing things, with the digest from the bundle.
    pub async fn begin_apply(&self) -> (StatusCode, Value) {
        let sha256 = self.bundle.plan.as_ref().expect("an apply has a plan").sha256;
        self.call(Method::POST, "apply/begin", json!({"plan_sha256": sha256})).await
    }

    /// Reports the end of an apply.
    pub async fn apply_done(&self) -> (StatusCode, Value) {
        self.call(Method::POST, "apply/complete", json!({"summary": null})).await
    }

    /// Reports a failure.
    pub async fn fail(&self, kind: &str, error: &str) -> (StatusCode, Value) {
        self.call(Method::POST, "fail", json!({"kind": kind, "error": error, "is_state_whole": true})).await
    }
}

/// A nonce of the right length.
pub fn nonce(n: u8) -> String {
    format!("{n:064x}")
}

/// The bytes that stand for a plan file.
pub fn plan_file(run: &str) -> String {
    format!("the plan of {run}")
}
