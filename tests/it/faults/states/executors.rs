//! Executors of real runs: each is prepared in quiet, then acts as the script wants, and ends in some way.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use md5::Digest as _;
use plumbline_core::db::Query as _;
use plumbline_core::ports::LaunchRequest;
use plumbline_core::protocol::{Bundle, RunPhase, StateUploadBegin};
use plumbline_runtime::Function;
use serde_json::json;
use uuid::Uuid;

use super::answers::begun;
use super::client::Client;
use super::history::{Operation, Who, Written};
use super::platform::Platform;
use super::script::{Act, Part, Script, Step};
use super::world::World;
use crate::executors::{ADDS_ONE, FakeExecutor, nonce, prepare_on, record, trade};
use crate::plane::{TestPlane, slug};

/// Steps that one takes whose process has ended as far as the platform knows: calls that were on their way.
const LATE_STEPS: u32 = 8;
/// Calls of others between two of its late ones.
const OPERATIONS_BETWEEN: usize = 6;
const LOOKS_MAX: usize = 40;

/// The executors of one workspace, one after the other.
pub struct Executors {
    world: Arc<World>,
    place: usize,
    script: Script,
    living: Option<Executor>,
    number: usize,
}

struct Executor {
    client: Client,
    id: Uuid,
    launch: LaunchRequest,
    bundle: Bundle,
    uploads: Vec<Upload>,
    /// Steps until the next one comes.
    late: Option<u32>,
}

/// An upload that it began.
#[derive(Clone)]
struct Upload {
    id: Uuid,
    lock: String,
    state: Written,
    is_next: bool,
}

impl Executors {
    pub fn new(world: &Arc<World>, place: usize) -> Self {
        let script = Script::new(world.cast.seed, Part::Executor(place));
        Self { world: world.clone(), place, script, living: None, number: 0 }
    }

    pub async fn act(&mut self) {
        let Some(executor) = &mut self.living else {
            self.number += 1;
            let name = format!("e{}-{}", self.place, self.number);
            self.living = prepare(&self.world, self.place, name).await;
            return;
        };
        let is_last = executor.late.is_some_and(|late| late <= LATE_STEPS / 2);
        // The last of its late calls come when its lock is free for others, and they had time to take it.
        if is_last
            && (!self.world.operations_pass(OPERATIONS_BETWEEN).await
                || !self.world.platform.is_told(executor.id))
        {
            return;
        }
        let mut step = self.script.executor();
        if is_last && !executor.uploads.is_empty() {
            step.act = Act::CommitLate;
        } else if executor.late.is_some() && matches!(step.act, Act::CommitLate | Act::CommitAgain) {
            // What was under way when it ended is committed last, if at all.
            step.act = Act::Read;
        }
        executor.act(&step).await;
        if self.world.platform.has_ended(executor.id) && executor.late.is_none() {
            executor.late = Some(LATE_STEPS);
        }
        if let Some(late) = &mut executor.late {
            *late -= 1;
            if *late == 0 {
                self.living = None;
            }
        }
    }
}

impl Executor {
    async fn act(&mut self, step: &Step) {
        let is_free = self.client.held.is_none();
        match step.act {
            Act::Lock | Act::WriteNext | Act::Upload | Act::UploadHalf if is_free => {
                let id = self.client.label();
                self.client.lock(&id, true, step).await;
            }
            Act::Lock | Act::Read => self.client.read(step).await,
            Act::LockAgain => {
                let old = || self.client.old.last().map(|(_, id)| id.clone());
                if let Some(id) = self.client.held.clone().or_else(old) {
                    self.client.lock(&id, true, step).await;
                }
            }
            Act::WriteNext => {
                if let Some(state) = self.client.next_state(step).await {
                    let lock = self.client.held.clone();
                    self.client.write(lock, state, true, step).await;
                }
            }
            Act::WriteAgain => self.client.write_again(step).await,
            Act::WriteLower => self.write_lower(step).await,
            Act::Upload | Act::UploadHalf => self.upload(step).await,
            Act::CommitLate | Act::CommitAgain => {
                let all = self.uploads.len();
                if let Some(back) = (step.pick as usize).checked_rem(all) {
                    // Late, the newest: it is the one that may still be under way.
                    let back = if self.late.is_some() { 0 } else { back };
                    let upload = self.uploads[all - 1 - back].clone();
                    self.commit(&Upload { is_next: false, ..upload }, step).await;
                }
            }
            Act::Unlock => {
                if let Some(id) = self.client.held.clone() {
                    let reply = self.client.unlock(&id, step).await;
                    if reply.is_some_and(|reply| reply.status == 200) {
                        self.client.remember(&id);
                    }
                }
            }
            Act::Force => drop(self.client.force(step).await),
            Act::Heartbeat => self.heartbeat(step).await,
            Act::Crash => self.client.world.platform.end(self.id),
            Act::Done => self.done().await,
            _ => unreachable!("executors have no such step"),
        }
    }

    async fn write_lower(&mut self, step: &Step) {
        let (Some((Some(head), true)), Some(lock)) = (self.client.head.clone(), self.client.held.clone())
        else {
            return;
        };
        let state = self.client.state((head.serial - 1).max(0), Some(head.lineage), step.padding);
        self.client.write(Some(lock), state, false, step).await;
    }

    async fn upload(&mut self, step: &Step) {
        let Some((state, body)) = self.client.next_state(step).await else { return };
        let Some(lock) = self.client.held.clone() else { return };
        let begin = StateUploadBegin {
            lock_id: Some(lock.clone()),
            serial: state.serial,
            lineage: state.lineage.clone(),
            size_bytes: body.len() as u64,
            md5: hex::encode(md5::Md5::digest(&body)),
            sha256: plumbline_core::digest::Sha256Digest::of(&body),
            terraform_version: None,
        };
        let operation = Operation::Begin { lock: lock.clone(), state: state.clone() };
        let message = Bytes::from(serde_json::to_vec(&begin).unwrap());
        let uri = "/executor/v1/state/uploads".to_owned();
        let reply = self.client.call("POST", uri, operation, message, step).await;
        let Some(begun) = reply.as_ref().and_then(begun) else { return };
        let upload = Upload { id: begun.upload_id.0, lock, state, is_next: true };
        self.uploads.push(upload.clone());
        if step.act == Act::UploadHalf && step.pick.is_multiple_of(2) {
            return;
        }
        self.put(&upload, &begun.request.url, body).await;
        match step.act {
            Act::Upload => self.commit(&upload, step).await,
            // Killed in the middle of it.
            _ => self.client.world.platform.end(self.id),
        }
    }

    /// Sends the bytes as whoever has the signed URL does.
    async fn put(&self, upload: &Upload, url: &str, body: Bytes) {
        let world = &self.client.world;
        let from = world.chronicle.tick();
        let (key, query) = world.signed(url);
        let put = world.objects.accept_put(key, query, body).await;
        world.chronicle.note(super::history::Event {
            workspace: Some(self.client.place),
            who: self.client.who,
            from,
            to: Some(world.chronicle.tick()),
            operation: Operation::Put { upload: upload.id },
            answer: Some(super::history::Answer {
                status: if put.is_ok() { 200 } else { 409 },
                ..super::history::Answer::default()
            }),
        });
    }

    async fn commit(&mut self, upload: &Upload, step: &Step) {
        let operation = Operation::Commit {
            upload: upload.id,
            lock: upload.lock.clone(),
            state: upload.state.clone(),
            is_next: upload.is_next,
        };
        let uri = format!("/executor/v1/state/uploads/{}/commit", upload.id);
        self.client.call("POST", uri, operation, Bytes::from_static(b"{}"), step).await;
    }

    async fn heartbeat(&self, step: &Step) {
        let draft = super::servers::Draft {
            method: "POST",
            uri: "/executor/v1/heartbeat".into(),
            authorization: format!("Bearer {}", self.bundle.token),
            content_md5: None,
            body: Bytes::from_static(b"{}"),
        };
        // Part of the run, not of the state.
        self.client.world.servers[usize::from(step.server) % 2].call(&draft).await;
    }

    /// Reports that the run is done, and ends.
    async fn done(&self) {
        let world = &self.client.world;
        {
            let _calm = world.calm.lock().await;
            FakeExecutor::traded(&world.plane, self.launch.clone(), self.bundle.clone()).apply_done().await;
        }
        world.platform.end(self.id);
    }
}

/// A run of the workspace that has begun to apply. `None`: not this time.
async fn prepare(world: &Arc<World>, place: usize, name: String) -> Option<Executor> {
    let _calm = world.calm.lock().await;
    let plane = &world.plane;
    let workspace = world.workspaces[place];
    clear(world, workspace).await?;
    let _quiet = world.quiet[place].write().await;
    let token = world.people[0].as_str();
    let body = json!({ "workspace_id": workspace, "command": "apply" });
    let (status, _, run) = plane.call("POST", "/api/v1/runs", token, body).await;
    assert_eq!(status, StatusCode::CREATED, "{run}");
    let run = run["id"].as_str().unwrap().to_owned();
    let (planner, bundle) = launch(plane).await;
    assert_eq!(bundle.run_id.to_string(), run, "nobody else prepares runs");
    let (status, answer) = FakeExecutor::traded(plane, planner.clone(), bundle).plan(ADDS_ONE).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    world.platform.end(planner.executor_id.0);
    let path = format!("/api/v1/approvals/{run}/approve");
    let (status, _, answer) = plane.call("POST", &path, token, json!({})).await;
    if status != StatusCode::OK {
        // A write that nobody waited for came late.
        assert_eq!(slug(&answer), "stale-plan", "{answer}");
        let path = format!("/api/v1/runs/{run}/cancel");
        let (status, _, answer) = plane.call("POST", &path, token, json!({})).await;
        assert!(status.is_success(), "{answer}");
        return None;
    }
    let (launch, bundle) = launch(plane).await;
    assert_eq!(bundle.phase, RunPhase::Apply);
    let id = launch.executor_id.0;
    let executor = FakeExecutor::traded(plane, launch.clone(), bundle.clone());
    let (status, answer) = executor.begin_apply().await;
    if status != StatusCode::NO_CONTENT {
        assert_eq!(slug(&answer), "stale-plan", "{answer}");
        executor.fail("permanent", "the plan is stale").await;
        world.platform.end(id);
        return None;
    }
    let client =
        Client::new(world.clone(), Who::Executor(id), place, name, format!("Bearer {}", bundle.token));
    Some(Executor { client, id, launch, bundle, uploads: Vec::new(), late: None })
}

async fn launch(plane: &TestPlane) -> (LaunchRequest, Bundle) {
    let (_, launch) = prepare_on(plane, "local").await.expect("its task is due");
    record(plane, &launch, &Platform::handle(launch.executor_id.0)).await;
    let (status, bundle) = trade(plane, &launch.ticket, &nonce(1)).await;
    assert_eq!(status, StatusCode::OK, "{bundle}");
    (launch, serde_json::from_value(bundle).unwrap())
}

/// Waits for the workspace to be free of the run before, and unblocks it.
async fn clear(world: &World, workspace: Uuid) -> Option<()> {
    const STANDS: &str = "
        SELECT active_run_id IS NOT NULL AS is_taken, blocked_at IS NOT NULL AS is_blocked
        FROM workspaces WHERE id = $1";
    for _ in 0..LOOKS_MAX {
        let row = {
            let conn = world.plane.db().conn().await.unwrap();
            conn.query_one(STANDS, &[&workspace]).await.unwrap()
        };
        if row.get("is_blocked") {
            let path = format!("/api/v1/workspaces/{workspace}/unblock");
            world
                .plane
                .call("POST", &path, world.people[0].as_str(), json!({ "note": "looked at it" }))
                .await;
        } else if !row.get::<_, bool>("is_taken") {
            return Some(());
        } else {
            world.sweep(&world.plane.as_function(Function::Reconciler)).await;
        }
    }
    None
}
