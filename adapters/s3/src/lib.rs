//! The object store in S3.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use plumbline_core::ports::{BlobError, BlobHead, BlobStore, UploadTerms};
use plumbline_core::protocol::Presigned;

/// One bucket.
#[derive(Clone, Debug)]
pub struct S3Store {
    bucket: String,
}

impl S3Store {
    /// The bucket, with credentials and endpoint from the environment.
    pub async fn from_environment(bucket: &str) -> Self {
        Self { bucket: bucket.to_owned() }
    }

    fn missing(&self) -> BlobError {
        BlobError::StoreMissing { name: self.bucket.clone(), reason: "this build has no S3".into() }
    }
}

#[async_trait]
impl BlobStore for S3Store {
    async fn put(&self, _key: &str, _bytes: Bytes, _content_type: &str) -> Result<(), BlobError> {
        Err(self.missing())
    }

    async fn get(&self, _key: &str) -> Result<Bytes, BlobError> {
        Err(self.missing())
    }

    async fn head(&self, _key: &str) -> Result<Option<BlobHead>, BlobError> {
        Err(self.missing())
    }

    async fn delete(&self, _key: &str) -> Result<(), BlobError> {
        Err(self.missing())
    }

    async fn presign_put(&self, _: &str, _: &UploadTerms, _: Duration) -> Result<Presigned, BlobError> {
        Err(self.missing())
    }

    async fn presign_get(&self, _key: &str, _age: Duration) -> Result<Presigned, BlobError> {
        Err(self.missing())
    }
}
