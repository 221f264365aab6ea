//! An object store at which something happens before some calls.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use plumbline_core::ports::{BlobError, BlobHead, BlobStore, PartWriter, UploadTerms};
use plumbline_core::protocol::Presigned;

/// What happens before; an error is the call's.
#[async_trait]
pub trait Before: Send + Sync + std::fmt::Debug {
    async fn put(&self, _bytes: &Bytes) -> Result<(), BlobError> {
        Ok(())
    }

    async fn delete(&self) -> Result<(), BlobError> {
        Ok(())
    }
}

/// Another store with that.
#[derive(Debug)]
pub struct Hooked<B> {
    pub store: Arc<dyn BlobStore>,
    pub before: B,
}

#[async_trait]
impl<B: Before> BlobStore for Hooked<B> {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        self.before.put(&bytes).await?;
        self.store.put(key, bytes, content_type).await
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        self.store.get(key).await
    }

    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        self.store.get_part(key, part).await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        self.store.head(key).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.before.delete().await?;
        self.store.delete(key).await
    }

    async fn begin_parts(&self, key: &str, content_type: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        self.store.begin_parts(key, content_type).await
    }

    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        self.store.presign_put(key, terms, age).await
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        self.store.presign_get(key, age).await
    }
}
