//! State bodies of any size: begin, upload, commit, and the sweep over what was left behind.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use plumbline_core::ids::ExecutorId;
use plumbline_core::ports::{BlobError, BlobHead, BlobStore, PartWriter, UploadTerms};
use plumbline_core::protocol::{Presigned, RunPhase, StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use plumbline_core::tfstates::service::{self, StateActor, StateBody};
use plumbline_core::tfstates::{LockInfo, StateError};
use plumbline_runtime::Function;

use super::object_stores::{self, Store};
use super::state_client::{self, Backend, lock_info, send_signed, state};
use crate::plane::TestPlane;

/// A plane over an S3 store that signed URLs reach, and an apply that holds the lock.
struct World {
    backend: Backend,
    apply: StateActor<'static>,
    _store: Store,
}

impl World {
    async fn new() -> Self {
        let store = object_stores::s3s_fs().await;
        let mut plane = TestPlane::start().await;
        plane.deps.blobs = store.blobs.clone();
        let backend = Backend::on(plane).await;
        let apply = backend.executor(RunPhase::Apply).await;
        let info = LockInfo::parse(lock_info("l").as_bytes()).unwrap();
        service::lock(&backend.plane.as_function(Function::Callback), &apply, backend.workspace, &info)
            .await
            .unwrap();
        Self { backend, apply, _store: store }
    }

    async fn begin(&self, serial: i64, body: &str) -> StateUploadAnswer {
        let begin = announce("l", serial, body);
        service::begin_upload(
            &self.backend.plane.as_function(Function::Callback),
            &self.apply,
            self.backend.workspace,
            &begin,
        )
        .await
        .unwrap()
    }

    async fn commit(&self, upload: &StateUploadAnswer) -> Result<StateUploadCommit, StateError> {
        service::commit_upload(
            &self.backend.plane.as_function(Function::Callback),
            &self.apply,
            self.backend.workspace,
            upload.upload_id,
        )
        .await
    }

    async fn unlock(&self) -> Result<(), StateError> {
        let info = LockInfo::parse(lock_info("l").as_bytes()).unwrap();
        service::unlock(
            &self.backend.plane.as_function(Function::Callback),
            &self.apply,
            self.backend.workspace,
            &info,
        )
        .await
    }

    async fn sweep(&self) -> usize {
        service::sweep_uploads(&self.backend.plane.as_function(Function::Reconciler)).await.unwrap()
    }

    async fn lose_the_lock(&self) {
        let StateActor::Executor { executor_id, .. } = self.apply else { unreachable!() };
        let executor_id: ExecutorId = executor_id;
        let conn = self.backend.plane.db().conn().await.unwrap();
        assert!(service::free_lock_of_stopped(&conn, executor_id).await.unwrap());
    }

    async fn head_serial(&self) -> Option<i64> {
        let conn = self.backend.plane.db().conn().await.unwrap();
        service::find_head(&conn, self.backend.workspace).await.unwrap().map(|head| head.serial)
    }
}

fn announce(lock_id: &str, serial: i64, body: &str) -> StateUploadBegin {
    state_client::announce(Some(lock_id), serial, "l", body)
}

async fn upload(request: &Presigned, body: &str) -> StatusCode {
    send_signed(request, body.to_owned()).await.0
}

/// Lets no body pass through the control plane.
#[derive(Debug)]
struct OnlySigned(Arc<dyn BlobStore>);

#[async_trait]
impl BlobStore for OnlySigned {
    async fn put(&self, key: &str, _: Bytes, _: &str) -> Result<(), BlobError> {
        panic!("{key} went through the control plane")
    }
    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        panic!("{key} went through the control plane")
    }
    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        // A look at the beginning, to see that it is what was announced.
        assert!(part.end <= 64 << 10, "{key} went through the control plane");
        self.0.get_part(key, part).await
    }
    async fn begin_parts(&self, key: &str, _: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        panic!("{key} went through the control plane")
    }
    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        self.0.head(key).await
    }
    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.0.delete(key).await
    }
    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        self.0.presign_put(key, terms, age).await
    }
    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        self.0.presign_get(key, age).await
    }
}

#[tokio::test]
async fn a_state_of_30_megabytes_never_passes_through_the_control_plane() {
    let mut world = World::new().await;
    let deps = &mut world.backend.plane.deps;
    deps.blobs = Arc::new(OnlySigned(Arc::clone(&deps.blobs)));
    let body = state(1, "l", &"x".repeat(30 << 20));
    let begun = world.begin(1, &body).await;
    assert!(upload(&begun.request, &body).await.is_success());
    assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    world.unlock().await.unwrap();

    let (status, headers, _) = world.backend.read().await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    let read = reqwest::get(headers["location"].to_str().unwrap()).await.unwrap().bytes().await.unwrap();
    assert!(read == body);
    let read = service::read(
        &world.backend.plane.as_function(Function::Callback),
        &world.apply,
        world.backend.workspace,
    )
    .await
    .unwrap();
    assert!(matches!(read, StateBody::Elsewhere(_)), "{read:?}");
    let version = &world.backend.versions().await[0];
    assert_eq!(
        (version["serial"].as_i64(), version["size_bytes"].as_u64()),
        (Some(1), Some(body.len() as u64))
    );
}

#[tokio::test]
async fn the_lock_is_not_given_back_before_the_upload_is_committed() {
    let world = World::new().await;
    let body = state(1, "l", "a");
    let begun = world.begin(1, &body).await;
    assert!(matches!(world.unlock().await, Err(StateError::UploadUnresolved)));
    assert!(matches!(world.commit(&begun).await, Err(StateError::UploadMissing)));
    // The answer to the first begin may have been lost: the second finds the same upload.
    assert_eq!(world.begin(1, &body).await.upload_id, begun.upload_id);
    assert!(upload(&begun.request, &body).await.is_success());
    world.commit(&begun).await.unwrap();
    world.unlock().await.unwrap();
    assert_eq!(world.head_serial().await, Some(1));
}

#[tokio::test]
async fn other_bytes_than_announced_are_not_the_state() {
    let world = World::new().await;
    let (body, other) = (state(1, "l", "a"), state(1, "l", "b"));
    let begun = world.begin(1, &body).await;
    assert!(!upload(&begun.request, &other).await.is_success());
    assert!(matches!(world.commit(&begun).await, Err(StateError::UploadMissing)));
    assert!(upload(&begun.request, &body).await.is_success());
    assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
}

#[tokio::test]
async fn an_upload_that_is_committed_after_its_lock_was_lost_is_quarantined() {
    let world = World::new().await;
    let body = state(1, "l", "a");
    let begun = world.begin(1, &body).await;
    upload(&begun.request, &body).await;
    world.lose_the_lock().await;
    // Not even the same id, taken again by the same executor, lets the old upload in.
    let info = LockInfo::parse(lock_info("l").as_bytes()).unwrap();
    service::lock(
        &world.backend.plane.as_function(Function::Callback),
        &world.apply,
        world.backend.workspace,
        &info,
    )
    .await
    .unwrap();
    assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Quarantined);
    assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Quarantined);
    assert_eq!(world.head_serial().await, None);
    assert_eq!(world.backend.quarantined().await[0]["reason"], "lost_lock");
}

#[tokio::test]
async fn an_upload_begun_without_the_lock_is_taken_for_quarantine() {
    let world = World::new().await;
    let body = state(1, "l", "a");
    let (deps, workspace) = (&world.backend.plane.as_function(Function::Callback), world.backend.workspace);
    let other = world.backend.executor(RunPhase::Apply).await;
    let begun = service::begin_upload(deps, &other, workspace, &announce("l", 1, &body)).await.unwrap();
    upload(&begun.request, &body).await;
    // It is the other executor's upload: this one cannot commit it.
    assert!(matches!(world.commit(&begun).await, Err(StateError::NotFound(_))));
    let answer = service::commit_upload(deps, &other, workspace, begun.upload_id).await.unwrap();
    assert_eq!(answer, StateUploadCommit::Quarantined);
    let unlocked = StateUploadBegin { lock_id: None, ..announce("l", 1, &body) };
    let refused = service::begin_upload(deps, &other, workspace, &unlocked).await;
    assert!(matches!(refused, Err(StateError::Invalid(_))), "only people write without a lock: {refused:?}");
    let plan = world.backend.executor(RunPhase::Plan).await;
    let refused = service::begin_upload(deps, &plan, workspace, &announce("l", 1, &body)).await;
    assert!(matches!(refused, Err(StateError::PlanMayNotWrite)));
}

#[tokio::test]
async fn the_sweep_commits_what_came_under_a_lock_that_still_holds() {
    let world = World::new().await;
    let body = state(1, "l", "a");
    let begun = world.begin(1, &body).await;
    upload(&begun.request, &body).await;
    assert_eq!(world.sweep().await, 0, "its URL has not expired");
    world.backend.plane.advance(Duration::from_secs(61)).await;
    assert_eq!((world.sweep().await, world.sweep().await), (1, 0));
    assert_eq!(world.head_serial().await, Some(1));
    world.unlock().await.unwrap();
}

#[tokio::test]
async fn the_sweep_quarantines_what_came_under_a_lost_lock() {
    let world = World::new().await;
    let body = state(1, "l", "a");
    let begun = world.begin(1, &body).await;
    upload(&begun.request, &body).await;
    world.lose_the_lock().await;
    world.backend.plane.advance(Duration::from_secs(61)).await;
    assert_eq!((world.sweep().await, world.sweep().await), (1, 0));
    assert_eq!(world.head_serial().await, None);
    assert_eq!(world.backend.quarantined().await.len(), 1);
}

#[tokio::test]
async fn an_upload_that_never_came_is_closed_a_day_after_its_url_expired() {
    let world = World::new().await;
    let begun = world.begin(1, &state(1, "l", "a")).await;
    world.backend.plane.advance(Duration::from_secs(23 * 3600)).await;
    assert_eq!(world.sweep().await, 0);
    assert!(matches!(world.unlock().await, Err(StateError::UploadUnresolved)));
    world.backend.plane.advance(Duration::from_secs(2 * 3600)).await;
    assert_eq!(world.sweep().await, 1);
    assert!(matches!(world.commit(&begun).await, Err(StateError::UploadClosed)));
    world.unlock().await.unwrap();
}

#[tokio::test]
async fn two_sweeps_and_a_commit_at_once_settle_an_upload_once() {
    let world = World::new().await;
    let body = state(1, "l", "a");
    let begun = world.begin(1, &body).await;
    upload(&begun.request, &body).await;
    world.backend.plane.advance(Duration::from_secs(61)).await;
    let reconciler = world.backend.plane.as_function(Function::Reconciler);
    let (first, second, committed) = tokio::join!(
        service::sweep_uploads(&reconciler),
        service::sweep_uploads(&reconciler),
        world.commit(&begun),
    );
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(committed.unwrap(), StateUploadCommit::Accepted);
    assert_eq!(world.backend.versions().await.len(), 1);
    let writes = world.backend.audited().await.iter().filter(|action| *action == "state.write").count();
    assert_eq!(writes, 1);
}

#[tokio::test]
async fn a_body_that_is_not_what_was_announced_waits_in_quarantine() {
    let world = World::new().await;
    for (number, body) in [
        state(2, "l", "another serial"),
        state(1, "m", "another lineage"),
        r#"{"version":3,"serial":1,"lineage":"l","modules":[]}"#.to_owned(),
        "PK this is a plan".to_owned(),
        state(1, "l", "cut off")[..200].to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let begun = world.begin(1, body).await;
        assert!(upload(&begun.request, body).await.is_success());
        assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Quarantined, "{body}");
        assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Quarantined, "{body}");
        let kept = world.backend.quarantined().await;
        assert_eq!((kept.len(), kept[0]["reason"].as_str()), (number + 1, Some("contradiction")));
    }
    assert_eq!(world.head_serial().await, None);
    let body = state(1, "l", "as announced");
    let begun = world.begin(1, &body).await;
    assert!(upload(&begun.request, &body).await.is_success());
    assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    assert_eq!(world.backend.versions().await[0]["resource_count"].as_i64(), Some(1));
}

#[tokio::test]
async fn an_encrypted_upload_is_known_to_be_opaque() {
    let world = World::new().await;
    let data = "A".repeat(100_000);
    let body = format!(r#"{{"serial":1,"lineage":"l","meta":{{}},"encrypted_data":"{data}"}}"#);
    let begun = world.begin(1, &body).await;
    assert!(upload(&begun.request, &body).await.is_success());
    assert_eq!(world.commit(&begun).await.unwrap(), StateUploadCommit::Accepted);
    assert_eq!(world.backend.versions().await[0]["opaque"], serde_json::json!(true));
}
