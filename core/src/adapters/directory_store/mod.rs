//! The object store as a directory of this machine.
//!
//! Objects appear whole or not at all: bytes go to a temporary file, are synced, and get their name by a step that
//! never replaces an existing file. A missing root is never taken for an empty store.

mod files;
mod signed;

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::digest::Sha256Digest;
use crate::ports::{BlobError, BlobHead, BlobStore, PartWriter, UploadTerms};
use crate::protocol::Presigned;

pub use signed::{Grant, GrantError};

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

    /// Checks a signed URL's query for a method and an object. `now_unix` is seconds since 1970.
    pub fn verify(&self, method: &str, key: &str, query: &str, now_unix: i64) -> Result<Grant, GrantError> {
        signed::verify(&self.key, method, key, query, now_unix)
    }

    /// Answers a signed PUT: for whoever serves `base_url`.
    pub async fn accept_put(&self, key: &str, query: &str, bytes: Bytes) -> Result<(), GrantError> {
        let grant = self.verify("PUT", key, query, signed::now_unix())?;
        if grant.size_bytes != bytes.len() as u64 || grant.sha256 != Some(Sha256Digest::of(&bytes)) {
            return Err(GrantError::OtherBytes);
        }
        Ok(self.put(key, bytes, "application/octet-stream").await?)
    }

    /// Answers a signed GET: for whoever serves `base_url`.
    pub async fn accept_get(&self, key: &str, query: &str) -> Result<Bytes, GrantError> {
        self.verify("GET", key, query, signed::now_unix())?;
        Ok(self.get(key).await?)
    }

    fn url(&self, key: &str, query: &str) -> String {
        format!("{}/{key}?{query}", self.base_url)
    }
}

/// File calls block, so they leave the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(BlobError::Unavailable(format!("the file task ended early: {error}"))))
}

#[async_trait]
impl BlobStore for DirectoryStore {
    async fn put(&self, key: &str, bytes: Bytes, _content_type: &str) -> Result<(), BlobError> {
        let (root, key) = (self.root.clone(), key.to_owned());
        blocking(move || files::put(&root, &key, &bytes)).await
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        let (root, key) = (self.root.clone(), key.to_owned());
        blocking(move || files::get(&root, &key)).await
    }

    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        let (root, key) = (self.root.clone(), key.to_owned());
        blocking(move || files::get_part(&root, &key, &part)).await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        let (root, key) = (self.root.clone(), key.to_owned());
        blocking(move || files::head(&root, &key)).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let (root, key) = (self.root.clone(), key.to_owned());
        blocking(move || files::delete(&root, &key)).await
    }

    async fn begin_parts(&self, key: &str, _content_type: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        let (root, key) = (self.root.clone(), key.to_owned());
        let incoming = blocking(move || files::Incoming::begin(&root, &key)).await?;
        Ok(Box::new(Parts(Some(incoming))))
    }

    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        crate::ports::check_key(key)?;
        let grant = Grant {
            size_bytes: terms.size_bytes,
            sha256: Some(terms.sha256),
            expires_at_unix: signed::expiry(age),
        };
        let url = self.url(key, &signed::query(&self.key, "PUT", key, &grant));
        let headers = [("content-type".to_owned(), terms.content_type.clone())].into();
        Ok(Presigned { method: "PUT".into(), url, headers })
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        crate::ports::check_key(key)?;
        let grant = Grant { size_bytes: 0, sha256: None, expires_at_unix: signed::expiry(age) };
        let url = self.url(key, &signed::query(&self.key, "GET", key, &grant));
        Ok(Presigned { method: "GET".into(), url, headers: Default::default() })
    }
}

/// An object that comes piece by piece. Empty once a write failed.
#[derive(Debug)]
struct Parts(Option<files::Incoming>);

impl Parts {
    fn take(&mut self) -> Result<files::Incoming, BlobError> {
        self.0.take().ok_or_else(|| BlobError::Refused("a piece before this one was not written".into()))
    }
}

#[async_trait]
impl PartWriter for Parts {
    async fn write(&mut self, bytes: Bytes) -> Result<(), BlobError> {
        let mut incoming = self.take()?;
        let written = blocking(move || incoming.write(&bytes).map(|()| incoming)).await?;
        self.0 = Some(written);
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<(), BlobError> {
        let incoming = self.take()?;
        blocking(move || incoming.finish()).await
    }

    async fn abort(self: Box<Self>) -> Result<(), BlobError> {
        blocking(move || {
            drop(self);
            Ok(())
        })
        .await
    }
}
