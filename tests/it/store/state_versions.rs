//! The order of versions.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use plumbline_core::ports::{BlobError, BlobHead, BlobStore, PartWriter, UploadTerms};
use plumbline_core::protocol::Presigned;
use serde_json::json;
use tokio::sync::Notify;

use super::state_client::{Backend, state};
use crate::plane::TestPlane;

const SLOW: &str = "slow";

/// Takes bodies that say so only when it is told to.
#[derive(Debug)]
struct SlowStore {
    inner: Arc<dyn BlobStore>,
    reached: Arc<Notify>,
    go_on: Arc<Notify>,
}

#[async_trait]
impl BlobStore for SlowStore {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        if bytes.windows(SLOW.len()).any(|part| part == SLOW.as_bytes()) {
            self.reached.notify_one();
            self.go_on.notified().await;
        }
        self.inner.put(key, bytes, content_type).await
    }
    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        self.inner.get(key).await
    }
    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        self.inner.get_part(key, part).await
    }
    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        self.inner.head(key).await
    }
    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.inner.delete(key).await
    }
    async fn begin_parts(&self, key: &str, content_type: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        self.inner.begin_parts(key, content_type).await
    }
    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        self.inner.presign_put(key, terms, age).await
    }
    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        self.inner.presign_get(key, age).await
    }
}

#[tokio::test]
async fn versions_are_listed_in_the_order_in_which_they_were_accepted_also_if_an_earlier_write_was_slower() {
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut plane = TestPlane::start().await;
    let inner = Arc::clone(&plane.deps.blobs);
    plane.deps.blobs = Arc::new(SlowStore { inner, reached: reached.clone(), go_on: go_on.clone() });
    let backend = Backend::on(plane).await;
    assert_eq!(backend.write(None, &state(1, "l", "first")).await.0, StatusCode::OK);

    let (slow_body, fast_body) = (state(3, "l", SLOW), state(2, "l", "fast"));
    let slow = backend.write(None, &slow_body);
    let fast = async {
        reached.notified().await;
        // Its id is younger than that of the slow one.
        let (status, ..) = backend.write(None, &fast_body).await;
        go_on.notify_one();
        status
    };
    let ((slow, ..), fast) = tokio::join!(slow, fast);
    assert_eq!((slow, fast), (StatusCode::OK, StatusCode::OK));

    let versions = backend.versions().await;
    let serials: Vec<_> = versions.iter().map(|version| version["serial"].clone()).collect();
    assert_eq!(serials, [json!(3), json!(2), json!(1)], "newest first");
    assert_eq!(versions[0]["is_current"], json!(true));
    let path = format!("state-versions/{}/diff", versions[0]["id"].as_str().unwrap());
    let (status, diff) = backend.api("GET", &path).await;
    assert_eq!((status, &diff["from"]), (StatusCode::OK, &versions[1]["id"]), "compared with the one before");
}
