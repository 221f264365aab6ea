//! The object store as a directory of this machine.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::{BlobError, BlobHead, BlobStore, UploadTerms};
use crate::protocol::Presigned;

/// Objects as files below a root; signed URLs are answered by whoever serves `base_url`.
#[derive(Clone)]
pub struct DirectoryStore {
    root: PathBuf,
    base_url: String,
    key: [u8; 32],
}

impl std::fmt::Debug for DirectoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoryStore").field("root", &self.root).finish_non_exhaustive()
    }
}

impl DirectoryStore {
    /// A store below `root`, which must exist. `base_url` is where signed URLs point; `key` signs them.
    pub fn new(root: impl Into<PathBuf>, base_url: impl Into<String>, key: [u8; 32]) -> Self {
        Self { root: root.into(), base_url: base_url.into(), key }
    }
}

#[async_trait]
impl BlobStore for DirectoryStore {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        let _ = (key, bytes, content_type, &self.base_url, &self.key);
        todo!("directory store")
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        let _ = key;
        todo!("directory store")
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        let _ = key;
        todo!("directory store")
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let _ = key;
        todo!("directory store")
    }

    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        let _ = (key, terms, age);
        todo!("directory store")
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        let _ = (key, age);
        todo!("directory store")
    }
}
