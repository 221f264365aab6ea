//! The object store and the waker.

use std::path::Path;
use std::sync::Arc;

use plumbline_core::adapters::{DirectoryStore, NoWaker};
use plumbline_core::ports::{BlobStore, Waker};
use plumbline_core::secrets::{Domain, Keyring};
use plumbline_s3::S3Store;
use plumbline_sqs::SqsWaker;

use crate::environment::{Environment, SettingError};

const BLOBS: &str = "PLUMBLINE_BLOBS";
const WAKER: &str = "PLUMBLINE_WAKER";

pub(crate) async fn blob_store(
    environment: &Environment,
    keys: &Keyring,
    public_url: &str,
) -> Result<Arc<dyn BlobStore>, SettingError> {
    let place = environment.get(BLOBS, "the object store: s3://bucket or file:///directory")?;
    if let Some(bucket) = place.strip_prefix("s3://").filter(|bucket| !bucket.is_empty()) {
        let store = S3Store::from_environment(bucket).await;
        return Ok(match environment.find("PLUMBLINE_BLOBS_KMS_KEY") {
            Some(key_id) => Arc::new(store.encrypted_with(key_id)),
            None => Arc::new(store),
        });
    }
    let Some(directory) = place.strip_prefix("file://").map(Path::new).filter(|path| path.is_absolute())
    else {
        return Err(SettingError::wrong(BLOBS, "must be s3://bucket or file:///directory"));
    };
    if !directory.is_dir() {
        return Err(SettingError::wrong(BLOBS, "the directory does not exist"));
    }
    let key = keys.key(Domain::Blobs).map_err(|_| {
        SettingError::wrong(BLOBS, "a directory needs the key PLUMBLINE_KEY_BLOBS to sign URLs")
    })?;
    let base_url = match environment.find("PLUMBLINE_BLOBS_URL") {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("{public_url}/blobs"),
    };
    Ok(Arc::new(DirectoryStore::new(directory, base_url, *key)))
}

pub(crate) async fn waker(environment: &Environment) -> Result<Arc<dyn Waker>, SettingError> {
    match environment.find(WAKER) {
        None | Some("none") => Ok(Arc::new(NoWaker)),
        Some(setting) => match setting.strip_prefix("sqs:").filter(|url| !url.is_empty()) {
            Some(url) => Ok(Arc::new(SqsWaker::from_environment(url).await)),
            None => Err(SettingError::wrong(WAKER, "must be sqs:<queue URL> or none")),
        },
    }
}
