//! States in buckets of units' own accounts: which body lies where, and what happens where one cannot be used.

mod accounts;
mod failures;
mod history;
mod places;
mod uploads;
mod ways_in;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::state_stores::OpenStores;
use plumbline_runtime::{AccountStores, StoreEndpoints};
use serde_json::{Value, json};

use super::object_stores;
use super::state_client::{Answer, Backend};
use crate::plane::TestPlane;

/// The number of the first account.
const ONE: &str = "111111111111";
/// The number of the second account.
const TWO: &str = "222222222222";

/// What lets into the buckets of all accounts.
const KEY: &str = "AKIATESTTESTTESTTEST";
const SECRET: &str = "not-a-secret-but-long-enough-for-one";

/// S3 of all accounts. A bucket is a directory, which can be looked into.
struct Cloud {
    root: tempfile::TempDir,
    url: String,
}

impl Cloud {
    async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let root = tempfile::tempdir().unwrap();
        let url = object_stores::serve_s3s_to(root.path().to_owned(), KEY, SECRET).await;
        Self { root, url }
    }

    fn path(&self, bucket: &str) -> PathBuf {
        self.root.path().join(bucket)
    }

    fn make(&self, bucket: &str) {
        std::fs::create_dir(self.path(bucket)).unwrap();
    }

    /// The bucket is not there any more; what was in it comes back with [`Cloud::restore`].
    fn lose(&self, bucket: &str) {
        std::fs::rename(self.path(bucket), self.root.path().join(format!(".lost-{bucket}"))).unwrap();
    }

    fn restore(&self, bucket: &str) {
        std::fs::rename(self.root.path().join(format!(".lost-{bucket}")), self.path(bucket)).unwrap();
    }

    /// The keys of a bucket's objects.
    fn keys(&self, bucket: &str) -> Vec<String> {
        let mut keys = Vec::new();
        files(&self.path(bucket), "", &mut keys);
        keys.sort();
        keys
    }
}

fn files(directory: &Path, below: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let key = format!("{below}{}", name.to_string_lossy());
        if path.is_dir() {
            files(&path, &format!("{key}/"), found);
        } else {
            found.push(key);
        }
    }
}

/// A plane over stores that signed URLs reach, and a cloud where accounts have buckets.
struct World {
    backend: Backend,
    cloud: Cloud,
    /// What the platform's own store holds.
    platform: object_stores::Store,
}

impl World {
    async fn start() -> Self {
        let (cloud, platform) = (Cloud::start().await, object_stores::s3s_fs().await);
        let mut plane = TestPlane::start().await;
        plane.deps.blobs = platform.blobs.clone();
        plane.deps.state_stores = stores_at(&cloud.url);
        let backend = Backend::on(plane).await;
        Self { backend, cloud, platform }
    }

    /// A world whose workspace is in an account with the bucket `states-one`, which is there.
    async fn with_a_bucket() -> Self {
        let mut world = Self::start().await;
        world.cloud.make("states-one");
        world.account(ONE, Some("states-one")).await;
        world.backend.workspace = world.workspace(ONE).await;
        world
    }

    /// Registers an account with good keys, and gives its id.
    async fn account(&self, number: &str, bucket: Option<&str>) -> String {
        let new = json!({
            "account_id": number, "name": format!("account {number}"), "state_bucket": bucket,
            "access_key_id": KEY, "secret_access_key": SECRET,
        });
        let (status, body) = self.api("POST", "aws-accounts", Some(new)).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    /// Edits an account of the first unit.
    async fn edit(&self, id: &str, change: Value) {
        let (status, body) = self.api("PUT", &format!("aws-accounts/{id}"), Some(change)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }

    async fn api(&self, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let path = format!("/api/v1/{path}");
        let token = self.backend.token.as_str();
        let (status, _, body) =
            self.backend.plane.call_with(method, &path, token, body, &[("if-match", "*")]).await;
        (status, body)
    }

    /// A new workspace in an AWS account of the first unit.
    async fn workspace(&self, number: &str) -> WorkspaceId {
        workspace_in(&self.backend, self.backend.unit, number).await
    }

    async fn write_to(&self, workspace: WorkspaceId, body: &str) -> Answer {
        let path = format!("/api/v1/state/{workspace}");
        self.backend.send_as(&self.backend.token, "POST", &path, body.to_owned()).await
    }

    async fn read_from(&self, workspace: WorkspaceId) -> Answer {
        let path = format!("/api/v1/state/{workspace}");
        self.backend.send_as(&self.backend.token, "GET", &path, "").await
    }

    /// The head's body, by whatever way it comes.
    async fn body(&self) -> Bytes {
        let (status, headers, body) = self.backend.read().await;
        match status {
            StatusCode::OK => body,
            StatusCode::TEMPORARY_REDIRECT => {
                let answer = reqwest::get(headers["location"].to_str().unwrap()).await.unwrap();
                assert!(answer.status().is_success(), "{}", answer.status());
                answer.bytes().await.unwrap()
            }
            other => panic!("{other}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// The keys of states in the platform's own store.
    fn staged(&self) -> Vec<String> {
        let mut keys = Vec::new();
        files(self.platform.root(), "", &mut keys);
        keys.retain(|key| key.starts_with("states/"));
        keys
    }
}

/// Stores of accounts that are all at one address.
fn stores_at(s3: &str) -> Arc<OpenStores> {
    let endpoints = StoreEndpoints { s3: Some(s3.to_owned()), ..StoreEndpoints::default() };
    Arc::new(OpenStores::new(Arc::new(AccountStores::at(endpoints))))
}

async fn workspace_in(
    backend: &Backend,
    unit: plumbline_core::ids::BusinessUnitId,
    number: &str,
) -> WorkspaceId {
    use plumbline_core::db::Query as _;
    let id = super::state_client::insert_workspace(&backend.plane, unit, "runs_and_people").await;
    let conn = backend.plane.db().conn().await.unwrap();
    conn.execute("UPDATE workspaces SET aws_account_id = $2, name = $2 WHERE id = $1", &[&id, &number])
        .await
        .unwrap();
    id
}

/// An admin of another unit, which has the same account registered with a bucket of its own.
async fn neighbour(world: &World, bucket: Option<&str>) -> (String, WorkspaceId) {
    let unit = world.backend.plane.unit("neighbours").await;
    let token = world.backend.plane.member(unit, Role::Admin).await;
    let new = json!({
        "account_id": ONE, "name": "theirs", "state_bucket": bucket,
        "access_key_id": KEY, "secret_access_key": SECRET,
    });
    let (status, _, body) =
        world.backend.plane.call("POST", "/api/v1/aws-accounts", token.as_str(), new).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    (token, workspace_in(&world.backend, unit, ONE).await)
}

/// What a problem document says.
fn problem(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or(Value::Null)
}
