//! Large bodies: they come to the platform's own store and are copied to the account's before a row names them.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use plumbline_core::Deps;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::ports::BlobError;
use plumbline_core::protocol::{Presigned, RunPhase, StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use plumbline_core::tfstates::service::{self, StateActor};
use plumbline_core::tfstates::{LockInfo, StateError};
use plumbline_runtime::Function;
use serde_json::json;

use super::super::object_stores;
use super::super::state_client::{self, lock_info, send_signed, state};
use super::super::state_memory::{Program, RESIDENT_KILOBYTES_MAX};
use super::{KEY, ONE, SECRET, TWO, World, problem};

/// An apply that holds the lock of the world's workspace.
struct Apply<'a> {
    world: &'a World,
    actor: StateActor<'static>,
    deps: Deps,
}

impl<'a> Apply<'a> {
    async fn begin(world: &'a World) -> Self {
        let actor = world.backend.executor(RunPhase::Apply).await;
        let apply = Self { world, actor, deps: world.backend.plane.as_function(Function::Callback) };
        service::lock(&apply.deps, &apply.actor, world.backend.workspace, &lock()).await.unwrap();
        apply
    }

    fn workspace(&self) -> WorkspaceId {
        self.world.backend.workspace
    }

    /// A body whose bytes have come.
    async fn arrived(&self, serial: i64, body: &str) -> StateUploadAnswer {
        let begin = announce(serial, body);
        let begun = service::begin_upload(&self.deps, &self.actor, self.workspace(), &begin).await.unwrap();
        upload(&begun.request, body).await;
        begun
    }

    async fn commit(&self, upload: &StateUploadAnswer) -> Result<StateUploadCommit, StateError> {
        service::commit_upload(&self.deps, &self.actor, self.workspace(), upload.upload_id).await
    }

    /// Begins a commit and lets it come to where its copy is made and no row names it yet. Then `meanwhile` happens, and
    /// the commit goes on if `goes_on`, or is dropped as by a kill.
    async fn commit_interrupted(
        &self,
        upload: &StateUploadAnswer,
        meanwhile: impl AsyncFnOnce(),
        goes_on: bool,
    ) -> Option<Result<StateUploadCommit, StateError>> {
        const HOLD: &str = "SELECT 1 FROM tfstates WHERE workspace_id = $1 FOR UPDATE";
        let plane = &self.world.backend.plane;
        let mut conn = plane.db().conn().await.unwrap();
        let held = conn.begin().await.unwrap();
        held.query(HOLD, &[&self.workspace()]).await.unwrap();
        let mut commit = Box::pin(self.commit(upload));
        tokio::select! {
            early = &mut commit => panic!("it did not wait: {early:?}"),
            () = plane.until_a_lock_is_waited_for() => {}
        }
        meanwhile().await;
        if !goes_on {
            drop(commit);
            held.commit().await.unwrap();
            return None;
        }
        held.commit().await.unwrap();
        Some(commit.await)
    }

    async fn unlock(&self) -> Result<(), StateError> {
        service::unlock(&self.deps, &self.actor, self.workspace(), &lock()).await
    }
}

fn lock() -> LockInfo {
    LockInfo::parse(lock_info("l").as_bytes()).unwrap()
}

pub(super) fn announce(serial: i64, body: &str) -> StateUploadBegin {
    state_client::announce(Some("l"), serial, "l", body)
}

async fn upload(request: &Presigned, body: &str) {
    let (status, answer) = send_signed(request, body.to_owned()).await;
    assert!(status.is_success(), "{status}: {answer:?}");
}

async fn sweep(world: &World) -> Result<usize, StateError> {
    service::sweep_uploads(&world.backend.plane.as_function(Function::Reconciler)).await
}

#[tokio::test]
async fn a_large_body_is_copied_to_the_accounts_bucket_and_does_not_stay_where_it_came() {
    let world = World::with_a_bucket().await;
    let apply = Apply::begin(&world).await;
    let body = state(1, "l", &"x".repeat(30 << 20));
    let begun = apply.arrived(1, &body).await;
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (1, 0));
    assert_eq!(apply.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (0, 1));
    assert_eq!(apply.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    assert!(world.body().await == body, "by a URL of the account's bucket");
    apply.unlock().await.unwrap();
}

/// The function's own program, over stores that are one server for both.
#[tokio::test]
async fn a_state_of_120_megabytes_is_copied_in_80_megabytes() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let scratch = tempfile::tempdir().unwrap();
    for bucket in ["plumbline", "states-one"] {
        std::fs::create_dir(scratch.path().join(bucket)).unwrap();
    }
    let url = object_stores::serve_s3s_to(scratch.path().to_owned(), KEY, SECRET).await;
    let mut world = World::start().await;
    world.backend.plane.deps.blobs = Arc::new(plumbline_s3::S3Store::with_keys(&plumbline_s3::Keys {
        endpoint: url.clone(),
        region: "us-east-1".into(),
        bucket: "plumbline".into(),
        access_key_id: KEY.into(),
        secret_access_key: SECRET.into(),
    }));
    world.backend.plane.deps.state_stores = super::stores_at(&url);
    world.account(ONE, Some("states-one")).await;
    world.backend.workspace = world.workspace(ONE).await;
    let (workspace, body) = (world.backend.workspace, state(1, "l", &"x".repeat(120 << 20)));
    let begin = StateUploadBegin { lock_id: None, ..announce(1, &body) };
    let begin = Some(serde_json::to_value(&begin).unwrap());
    let (_, begun) = world.api("POST", &format!("state/{workspace}/uploads"), begin).await;
    let begun: StateUploadAnswer = serde_json::from_value(begun).unwrap();
    upload(&begun.request, &body).await;

    let plane = &world.backend.plane;
    let keys = (KEY, SECRET);
    let mut tfstate = Program::start_with(Function::Tfstate, "plumbline-tfstate", plane, &url, keys).await;
    let commit = format!("/api/v1/state/{workspace}/uploads/{}/commit", begun.upload_id);
    let answer = tfstate.call("POST", &commit, &world.backend.token).await;
    assert_eq!(answer, json!("accepted"));
    let peak = tfstate.peak();
    eprintln!("tfstate: 120 MB copied from one store to another, at most {} MB resident", peak >> 10);
    assert!(peak <= RESIDENT_KILOBYTES_MAX, "{peak} kB");
    assert!(world.body().await == body);
}

#[tokio::test]
async fn a_commit_that_is_killed_between_copy_and_row_is_sent_again_and_leaves_nothing_behind() {
    let world = World::with_a_bucket().await;
    let apply = Apply::begin(&world).await;
    let body = state(1, "l", &"x".repeat(6 << 20));
    let begun = apply.arrived(1, &body).await;
    assert!(apply.commit_interrupted(&begun, async || {}, false).await.is_none());
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (1, 1));
    assert!(world.backend.versions().await.is_empty(), "no row names the copy");
    assert!(matches!(apply.unlock().await, Err(StateError::UploadUnresolved)));

    assert_eq!(apply.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (0, 1));
    assert_eq!(world.backend.versions().await.len(), 1);
    assert!(world.body().await == body);
    apply.unlock().await.unwrap();
}

#[tokio::test]
async fn a_bucket_that_changes_during_a_commit_leaves_the_version_where_its_body_is() {
    let mut world = World::start().await;
    for bucket in ["states-one", "states-new"] {
        world.cloud.make(bucket);
    }
    let account = world.account(ONE, Some("states-one")).await;
    world.backend.workspace = world.workspace(ONE).await;
    let apply = Apply::begin(&world).await;
    let first = state(1, "l", "a");
    let begun = apply.arrived(1, &first).await;
    let change = async || world.edit(&account, json!({ "state_bucket": "states-new" })).await;
    let committed = apply.commit_interrupted(&begun, change, true).await;
    assert_eq!(committed.unwrap().unwrap(), StateUploadCommit::Accepted);
    assert_eq!((world.cloud.keys("states-one").len(), world.cloud.keys("states-new").len()), (1, 0));
    assert!(world.body().await == first);

    // One that is killed, and sent again after the change, lies in the new one.
    let second = state(2, "l", "b");
    let begun = apply.arrived(2, &second).await;
    let back = async || world.edit(&account, json!({ "state_bucket": "states-one" })).await;
    apply.commit_interrupted(&begun, back, false).await;
    assert_eq!(apply.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    assert!(world.body().await == second);
    let conn = world.backend.plane.db().conn().await.unwrap();
    const WHERE: &str = "
        SELECT s.bucket FROM tfstates t JOIN state_stores s ON s.id = t.head_store_id WHERE t.workspace_id = $1";
    let row = conn.query_one(WHERE, &[&world.backend.workspace]).await.unwrap();
    assert_eq!(row.get::<_, &str>("bucket"), "states-one");
    assert_eq!(world.staged(), Vec::<String>::new());
}

#[tokio::test]
async fn an_upload_waits_for_a_missing_bucket_and_keeps_nobody_else_waiting() {
    let mut world = World::with_a_bucket().await;
    let apply = Apply::begin(&world).await;
    let body = state(1, "l", "a");
    let begun = apply.arrived(1, &body).await;
    world.cloud.lose("states-one");
    let failed = apply.commit(&begun).await;
    assert!(matches!(failed, Err(StateError::Store(BlobError::StoreMissing { .. }))), "{failed:?}");
    assert!(matches!(apply.unlock().await, Err(StateError::UploadUnresolved)), "it is pending");
    drop(apply);
    // Another workspace's upload, whose own bucket is there.
    world.cloud.make("states-two");
    world.account(TWO, Some("states-two")).await;
    let first = world.backend.workspace;
    world.backend.workspace = world.workspace(TWO).await;
    let other = Apply::begin(&world).await;
    other.arrived(1, &body).await;
    drop(other);
    world.backend.plane.advance(Duration::from_secs(61)).await;
    assert_eq!(sweep(&world).await.unwrap(), 1, "the other one's");
    assert_eq!(world.cloud.keys("states-two").len(), 1);
    // Not even after a day is it given up: its bytes are here.
    world.backend.plane.advance(Duration::from_secs(3 * 86_400)).await;
    assert_eq!(sweep(&world).await.unwrap(), 0);

    world.cloud.restore("states-one");
    assert_eq!(sweep(&world).await.unwrap(), 1);
    world.backend.token = world.backend.plane.user(Role::Admin).await;
    assert_eq!(world.read_from(first).await.2, body.as_bytes());
    assert_eq!(world.staged(), Vec::<String>::new());
}

#[tokio::test]
async fn a_person_is_told_424_at_commit_and_sends_the_same_commit_again() {
    let world = World::with_a_bucket().await;
    let (backend, workspace) = (&world.backend, world.backend.workspace);
    let body = state(1, "l", "a");
    backend.lock("l").await;
    let begin = serde_json::to_value(announce(1, &body)).unwrap();
    let (_, begun) = world.api("POST", &format!("state/{workspace}/uploads"), Some(begin)).await;
    let begun: StateUploadAnswer = serde_json::from_value(begun).unwrap();
    upload(&begun.request, &body).await;
    world.cloud.lose("states-one");
    let commit = format!("/api/v1/state/{workspace}/uploads/{}/commit", begun.upload_id);
    let (status, _, answer) = backend.send_as(&backend.token, "POST", &commit, "{}").await;
    assert_eq!(status, StatusCode::FAILED_DEPENDENCY, "{}", problem(&answer));
    world.cloud.restore("states-one");
    let (status, ..) = backend.send_as(&backend.token, "POST", &commit, "{}").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(backend.unlock("l").await.0, StatusCode::OK);
    assert_eq!(world.body().await, body);
}

#[tokio::test]
async fn what_is_refused_is_nowhere_and_what_is_quarantined_lies_in_the_bucket() {
    let world = World::with_a_bucket().await;
    let (backend, workspace) = (&world.backend, world.backend.workspace);
    // A person's, without a lock: the head moves while the bytes come.
    let late = StateUploadBegin { lock_id: None, ..announce(1, &state(1, "l", "late")) };
    let body = Some(serde_json::to_value(&late).unwrap());
    let (_, begun) = world.api("POST", &format!("state/{workspace}/uploads"), body).await;
    let begun: StateUploadAnswer = serde_json::from_value(begun).unwrap();
    upload(&begun.request, &state(1, "l", "late")).await;
    backend.write(None, &state(5, "l", "newer")).await;
    let commit = format!("/api/v1/state/{workspace}/uploads/{}/commit", begun.upload_id);
    assert_eq!(backend.send_as(&backend.token, "POST", &commit, "{}").await.0, StatusCode::CONFLICT);
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (0, 1));

    let apply = Apply::begin(&world).await;
    let begun = apply.arrived(6, &state(6, "l", "lost lock")).await;
    let StateActor::Executor { executor_id, .. } = apply.actor else { unreachable!() };
    let conn = backend.plane.db().conn().await.unwrap();
    assert!(service::free_lock_of_stopped(&conn, executor_id).await.unwrap());
    drop(conn);
    assert_eq!(apply.commit(&begun).await.unwrap(), StateUploadCommit::Quarantined);
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (0, 2));
    let quarantined = backend.quarantined().await[0]["id"].as_str().unwrap().to_owned();
    let (status, promoted) = backend.api("POST", &format!("quarantined-states/{quarantined}/promote")).await;
    assert_eq!(status, StatusCode::OK, "{promoted}");
    assert!(world.body().await == state(6, "l", "lost lock"));
}
