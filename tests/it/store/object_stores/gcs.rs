//! Google: a stand-in of our own, and an emulator where one is installed.

use std::sync::Arc;

use plumbline_core::ports::BlobStore;
use plumbline_object_store::{GcsAccess, GcsPlace, GcsStore};

pub use super::fake_gcs::{FakeGcs, key_file};
use super::{BUCKET, Program, Store};

pub async fn fake() -> (Store, FakeGcs) {
    let gcs = FakeGcs::start().await;
    let store = Store::remote("fake GCS", &gcs.url, Some("states"), opened).await;
    (store.signing_no_uploads(), gcs)
}

/// fake-gcs-server with a bucket: it knows no conditions, so it is not one of those that the whole suite runs on.
pub async fn emulator() -> Option<Store> {
    let (server, url) = Program::start("PLUMBLINE_TEST_GCS", |port| {
        let host = format!("127.0.0.1:{port}");
        let port = port.to_string();
        let told =
            ["-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-port", &port, "-public-host"];
        told.into_iter().chain([host.as_str()]).map(str::to_owned).collect()
    })
    .await?;
    let bucket = serde_json::json!({ "name": BUCKET });
    let address = format!("{url}/storage/v1/b?project=project");
    let made = reqwest::Client::new().post(address).json(&bucket).send().await.unwrap();
    assert!(made.status().is_success(), "the emulator has no bucket: {}", made.status());
    let store = Store::remote("fake-gcs-server", &url, Some("states"), opened).await;
    Some(store.signing_no_uploads().taking_any_credentials().keeping(server))
}

fn opened(url: &str, bucket: &str, prefix: Option<&str>, is_right: bool) -> Arc<dyn BlobStore> {
    let place = GcsPlace {
        bucket: bucket.to_owned(),
        prefix: prefix.map(str::to_owned),
        endpoint: Some(url.to_owned()),
    };
    Arc::new(GcsStore::open(&place, &GcsAccess::ServiceAccountKey(key_file(is_right))).unwrap())
}
