//! A unit's own store, whose errors say which one it is. What it refuses its owners can mend; it is no defect of ours.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::{BlobError, BlobHead, BlobStore, PartWriter, UploadTerms};
use crate::protocol::Presigned;

/// A store and what people call it.
#[derive(Clone, Debug)]
pub(super) struct Described {
    blobs: Arc<dyn BlobStore>,
    name: Arc<str>,
}

impl Described {
    pub(super) fn new(blobs: Arc<dyn BlobStore>, name: String) -> Self {
        Self { blobs, name: name.into() }
    }
}

fn told(name: &str, error: BlobError) -> BlobError {
    match error {
        BlobError::StoreMissing { reason, .. } => BlobError::StoreMissing { name: name.into(), reason },
        BlobError::Refused(reason) => BlobError::Unusable { name: name.into(), reason },
        BlobError::Unavailable(reason) => BlobError::Unavailable(format!("{name}: {reason}")),
        other @ (BlobError::NotFound(_) | BlobError::Conflict(_) | BlobError::Unusable { .. }) => other,
    }
}

#[async_trait]
impl BlobStore for Described {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        self.blobs.put(key, bytes, content_type).await.map_err(|error| told(&self.name, error))
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        self.blobs.get(key).await.map_err(|error| told(&self.name, error))
    }

    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        self.blobs.get_part(key, part).await.map_err(|error| told(&self.name, error))
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        self.blobs.head(key).await.map_err(|error| told(&self.name, error))
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.blobs.delete(key).await.map_err(|error| told(&self.name, error))
    }

    async fn begin_parts(&self, key: &str, content_type: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        let parts = self.blobs.begin_parts(key, content_type).await;
        let parts = parts.map_err(|error| told(&self.name, error))?;
        Ok(Box::new(DescribedParts { parts, name: Arc::clone(&self.name) }))
    }

    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        self.blobs.presign_put(key, terms, age).await.map_err(|error| told(&self.name, error))
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        self.blobs.presign_get(key, age).await.map_err(|error| told(&self.name, error))
    }
}

#[derive(Debug)]
struct DescribedParts {
    parts: Box<dyn PartWriter>,
    name: Arc<str>,
}

#[async_trait]
impl PartWriter for DescribedParts {
    async fn write(&mut self, bytes: Bytes) -> Result<(), BlobError> {
        self.parts.write(bytes).await.map_err(|error| told(&self.name, error))
    }

    async fn finish(self: Box<Self>) -> Result<(), BlobError> {
        let Self { parts, name } = *self;
        parts.finish().await.map_err(|error| told(&name, error))
    }

    async fn abort(self: Box<Self>) -> Result<(), BlobError> {
        let Self { parts, name } = *self;
        parts.abort().await.map_err(|error| told(&name, error))
    }
}
