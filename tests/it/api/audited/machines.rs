//! How the routes of Terraform's backend and of the executors succeed.

use md5::Digest as _;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::protocol::{ArtifactKind, VERSION};
use plumbline_tfstate::{Call, METHODS, UPLOADS};
use serde_json::{Value, json};

use super::super::cloud_accounts;
use super::requests::Request;
use super::stage::{Stage, Unit, text};
use crate::executors::{FakeExecutor, claim_and_prepare, nonce};
use crate::store::state_client::{lock_info, state};

const LOCK: &str = "l-1";

/// Method and path of every route of Terraform's backend.
pub(super) fn routes() -> Vec<(&'static str, String)> {
    let path = |on_lock: &bool| {
        let lock = if *on_lock { "/lock" } else { "" };
        format!("/api/v1/state/{{workspace_id}}{lock}")
    };
    let protocol = METHODS.iter().map(|(method, on_lock, _)| (*method, path(on_lock)));
    let uploads = UPLOADS.iter().map(|below| ("POST", format!("/api/v1/state/{{workspace_id}}{below}")));
    protocol.chain(uploads).collect()
}

/// The body that takes or releases a lock.
pub(super) fn lock(id: &str) -> Value {
    serde_json::from_str(&lock_info(id)).unwrap()
}

fn call_of(method: &str, path: &str) -> Call {
    let on_lock = path.ends_with("/lock");
    METHODS.iter().find(|(name, lock, _)| *name == method && *lock == on_lock).unwrap().2
}

fn some_state() -> Value {
    serde_json::from_str(&state(1, "l", "a")).unwrap()
}

/// A request to Terraform's backend that succeeds, of a person.
pub(super) async fn state_request(stage: &Stage, method: &str, path: &str) -> Request {
    let unit = &stage.fresh().await;
    let workspace = stage.workspace(unit).await;
    if path.contains("/uploads") {
        return upload(stage, unit, workspace, path).await;
    }
    let call = call_of(method, path);
    if call == Call::Read {
        assert!(stage.write_state(workspace, "", 1).await.is_success());
    }
    let path = path.trim_start_matches("/api/v1/").replace("{workspace_id}", &workspace.to_string());
    let request = Request::of(&stage.admin, unit, method, &path);
    if call == Call::Unlock {
        let place = format!("/api/v1/state/{workspace}/lock");
        let locked = stage.plane().call("POST", &place, stage.superadmin.token.as_str(), lock(LOCK)).await;
        assert!(locked.0.is_success(), "{}", locked.2);
    }
    // One of the ways to unlock is to force it: with an empty body.
    let is_forced = method == "UNLOCK" && path.ends_with("/lock");
    match call {
        Call::Write => request.with(some_state()),
        Call::Lock => request.with(lock(LOCK)),
        Call::Unlock if !is_forced => request.with(lock(LOCK)),
        Call::Read | Call::Purge | Call::Unlock => request,
    }
}

/// Begins an upload of a state, or commits one whose bytes have come.
async fn upload(stage: &Stage, unit: &Unit, workspace: WorkspaceId, path: &str) -> Request {
    let body = state(1, "l", "a");
    let begin = json!({
        "serial": 1, "lineage": "l", "size_bytes": body.len(), "md5": hex::encode(md5::Md5::digest(&body)),
        "sha256": Sha256Digest::of(body.as_bytes()),
    });
    let place = format!("state/{workspace}/uploads");
    let begins = Request::of(&stage.admin, unit, "POST", &place).with(begin.clone());
    if path.ends_with("/uploads") {
        return begins;
    }
    let headers = [("x-business-unit", unit.slug.as_str())];
    let path = format!("/api/v1/{place}");
    let token = stage.admin.token.as_str();
    let (status, _, begun) = stage.plane().call_with("POST", &path, token, begin, &headers).await;
    assert!(status.is_success(), "{begun}");
    stage.store(&begun["request"], body.as_bytes()).await;
    let commit = format!("{place}/{}/commit", text(&begun["upload_id"]));
    Request::of(&stage.admin, unit, "POST", &commit).with(json!({}))
}

/// A request of an executor that succeeds.
pub(super) async fn executor_request(stage: &Stage, method: &str, path: &str) -> Request {
    let unit = &stage.fresh().await;
    let below = path.trim_start_matches("/executor/v1/");
    if below == "trade" {
        return trade(stage, unit).await;
    }
    if below == "identity-token" {
        // The first of all makes the keys, too.
        let executor = stage.trusted(unit).await;
        return of(&executor, unit, method, below).with(json!({ "for": "aws" }));
    }
    let plans = ["heartbeat", "steps", "plan", "fail"];
    let by_planner = plans.iter().any(|one| below.starts_with(one))
        || (below.starts_with("artifacts") && method == "POST");
    if by_planner {
        return plan(stage, unit, method, below).await;
    }
    if below == "apply/begin" {
        let executor = stage.approved(unit).await;
        let sha256 = executor.bundle.plan.as_ref().unwrap().sha256;
        return of(&executor, unit, method, below).with(json!({ "plan_sha256": sha256 }));
    }
    let executor = stage.applying(unit).await;
    match below {
        "apply/touched" => of(&executor, unit, method, below).with(json!({ "resources": [] })),
        "apply/complete" => of(&executor, unit, method, below).with(json!({ "summary": null })),
        "artifacts/{kind}" => of(&executor, unit, method, "artifacts/plan_file"),
        _ => its_state(stage, &executor, unit, method, below).await,
    }
}

fn of(executor: &FakeExecutor<'_>, unit: &Unit, method: &str, below: &str) -> Request {
    Request {
        method: method.into(),
        path: format!("/executor/v1/{below}"),
        unit: unit.clone(),
        user: None,
        token: Some(executor.bundle.token.clone()),
        body: None,
    }
}

/// A run that is given a credential of each sort, about to get them.
async fn trade(stage: &Stage, unit: &Unit) -> Request {
    let forge = json!({ "name": "forge", "kind": "token", "host": "git.example.com", "token": "planted" });
    stage.made(unit, "POST", "git-credentials", forge).await;
    stage.made(unit, "POST", "aws-accounts", cloud_accounts::aws()).await;
    let secret = json!({ "key": "k", "value": "hunter2-hunter2", "is_secret": true });
    stage.made(unit, "POST", "variables", secret).await;
    let workspace = stage.workspace(unit).await;
    let link = json!({ "state_aws_account_id": cloud_accounts::ACCOUNT });
    stage.made(unit, "PUT", &format!("workspaces/{workspace}"), link).await;
    let run = stage.id(unit, "runs", json!({ "workspace_id": workspace, "command": "plan" })).await;
    let ticket = loop {
        let (task, launch) = claim_and_prepare(stage.plane()).await.expect("a task is due");
        if task.subject_id.to_string() == run {
            break launch.ticket;
        }
    };
    Request {
        method: "POST".into(),
        path: "/executor/v1/trade".into(),
        unit: unit.clone(),
        user: None,
        token: None,
        body: Some(json!({ "protocol": VERSION, "ticket": ticket, "nonce": nonce(1) })),
    }
}

async fn plan(stage: &Stage, unit: &Unit, method: &str, below: &str) -> Request {
    let executor = stage.planning(unit).await;
    let text_of_plan = b"a plan in words";
    let announced = json!({ "kind": ArtifactKind::PlanText, "size_bytes": text_of_plan.len(),
                            "sha256": Sha256Digest::of(text_of_plan) });
    let (path, body) = match below {
        "plan/complete" => (below.to_owned(), stage.finished_plan(&executor).await),
        "steps/{position}" => ("steps/1".into(), json!({ "status": "running" })),
        "steps/{position}/log" => ("steps/1/log?offset=0".into(), json!("a line")),
        "artifacts" => (below.to_owned(), announced),
        "artifacts/{kind}/commit" => {
            let (_, begun) = executor.call(http::Method::POST, "artifacts", announced).await;
            stage.store(&begun["request"], text_of_plan).await;
            ("artifacts/plan_text/commit".into(), json!({}))
        }
        "fail" => (below.to_owned(), json!({ "kind": "permanent", "error": "enough" })),
        _ => (below.to_owned(), json!({})),
    };
    of(&executor, unit, method, &path).with(body)
}

/// What an apply does with the state.
async fn its_state(
    stage: &Stage,
    executor: &FakeExecutor<'_>,
    unit: &Unit,
    method: &str,
    below: &str,
) -> Request {
    let uploads = below.starts_with("state/uploads");
    let call = (!uploads).then(|| call_of(method, below));
    if call != Some(Call::Lock) {
        assert!(executor.call(http::Method::POST, "state/lock", lock(LOCK)).await.0.is_success());
    }
    if call == Some(Call::Read) {
        let write = format!("state?ID={LOCK}");
        assert!(executor.call(http::Method::POST, &write, some_state()).await.0.is_success());
    }
    let body = some_state().to_string();
    let md5: String = md5::Md5::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    let announced = json!({ "lock_id": LOCK, "serial": 1, "lineage": "l", "size_bytes": body.len(), "md5": md5,
                            "sha256": Sha256Digest::of(body.as_bytes()) });
    match (call, below) {
        (Some(Call::Read | Call::Purge), _) => of(executor, unit, method, below),
        (Some(Call::Write), _) => of(executor, unit, method, &format!("state?ID={LOCK}")).with(some_state()),
        (Some(Call::Lock | Call::Unlock), _) => of(executor, unit, method, below).with(lock(LOCK)),
        (None, "state/uploads") => of(executor, unit, method, below).with(announced),
        (None, _) => {
            let (_, begun) = executor.call(http::Method::POST, "state/uploads", announced).await;
            stage.store(&begun["request"], body.as_bytes()).await;
            let id = text(&begun["upload_id"]);
            of(executor, unit, method, &below.replace("{id}", &id)).with(json!({}))
        }
    }
}
