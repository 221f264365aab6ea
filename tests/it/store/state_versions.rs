//! The order of versions.

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use plumbline_core::ports::BlobError;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

use super::hooked_store::{Before, Hooked};
use super::state_client::{Backend, state};
use crate::plane::TestPlane;

const SLOW: &str = "slow";

/// Takes bodies that say so only when it is told to.
#[derive(Debug)]
struct Slow {
    reached: Arc<Notify>,
    go_on: Arc<Notify>,
}

#[async_trait]
impl Before for Slow {
    async fn put(&self, bytes: &Bytes) -> Result<(), BlobError> {
        if bytes.windows(SLOW.len()).any(|part| part == SLOW.as_bytes()) {
            self.reached.notify_one();
            self.go_on.notified().await;
        }
        Ok(())
    }
}

#[tokio::test]
async fn versions_are_listed_in_the_order_in_which_they_were_accepted_also_if_an_earlier_write_was_slower() {
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut plane = TestPlane::start().await;
    let before = Slow { reached: reached.clone(), go_on: go_on.clone() };
    plane.deps.blobs = Arc::new(Hooked { store: Arc::clone(&plane.deps.blobs), before });
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
