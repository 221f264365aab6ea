//! The object store in S3.
//!
//! Writes carry `If-None-Match: *`, and stores that ignore the condition are asked first: an object is never replaced.

mod client;

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{BlobError, BlobHead, BlobStore, UploadTerms};
use plumbline_core::protocol::Presigned;

pub use client::Keys;

/// Where an object keeps its own digest, so that a repeated write is known without reading it back.
const DIGEST: &str = "sha256";

/// One bucket.
#[derive(Clone, Debug)]
pub struct S3Store {
    client: Client,
    bucket: String,
}

impl S3Store {
    /// The bucket, with credentials, region and endpoint from the environment.
    pub async fn from_environment(bucket: &str) -> Self {
        Self { client: client::from_environment().await, bucket: bucket.to_owned() }
    }

    /// The bucket at an endpoint of its own, with explicit keys and paths instead of host names.
    pub fn with_keys(keys: &Keys) -> Self {
        Self { client: client::with_keys(keys), bucket: keys.bucket.clone() }
    }

    fn error<E>(&self, key: &str, error: &SdkError<E>) -> BlobError
    where
        SdkError<E>: ProvideErrorMetadata,
        E: std::error::Error + 'static,
    {
        let reason = error.message().or(error.code()).unwrap_or("no answer").to_owned();
        let status = error.raw_response().map(|response| response.status().as_u16());
        match (error.code(), status) {
            (Some("NoSuchBucket"), _) => BlobError::StoreMissing { name: self.bucket.clone(), reason },
            (Some("NoSuchKey" | "NotFound"), _) | (None, Some(404)) => BlobError::NotFound(key.to_owned()),
            (_, Some(401 | 403)) => BlobError::Refused(reason),
            (_, Some(status)) if status < 500 && status != 429 => BlobError::Refused(reason),
            _ => BlobError::Unavailable(reason),
        }
    }

    /// Whether the object is there with this content; `None` if there is none.
    async fn holds(&self, key: &str, bytes: &Bytes, digest: &str) -> Result<Option<bool>, BlobError> {
        match self.client.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(head) => match head.metadata().and_then(|metadata| metadata.get(DIGEST)) {
                Some(stored) => Ok(Some(stored == digest)),
                // Uploaded by a signed URL: compare the bytes.
                None => Ok(Some(self.get(key).await? == *bytes)),
            },
            Err(error) => match self.error(key, &error) {
                BlobError::NotFound(_) => Ok(None),
                other => Err(other),
            },
        }
    }

    /// A HEAD answer has no body, so a missing bucket looks like a missing object: ask.
    async fn require_bucket(&self) -> Result<(), BlobError> {
        match self.client.head_bucket().bucket(&self.bucket).send().await {
            Ok(_) => Ok(()),
            Err(error) => match self.error("", &error) {
                BlobError::NotFound(_) => Err(BlobError::StoreMissing {
                    name: self.bucket.clone(),
                    reason: "the bucket does not exist".into(),
                }),
                other => Err(other),
            },
        }
    }
}

#[async_trait]
impl BlobStore for S3Store {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        let digest = Sha256Digest::of(&bytes).to_string();
        let settled = |same: bool| if same { Ok(()) } else { Err(BlobError::Conflict(key.to_owned())) };
        if let Some(same) = self.holds(key, &bytes, &digest).await? {
            return settled(same);
        }
        let sent = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .metadata(DIGEST, &digest)
            .if_none_match("*")
            .body(ByteStream::from(bytes.clone()))
            .send()
            .await;
        let Err(error) = sent else { return Ok(()) };
        let status = error.raw_response().map(|response| response.status().as_u16());
        if matches!(status, Some(409 | 412)) {
            // Another writer, or our own earlier try whose answer was lost.
            return settled(self.holds(key, &bytes, &digest).await?.unwrap_or(false));
        }
        Err(self.error(key, &error))
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        let answer = self.client.get_object().bucket(&self.bucket).key(key).send().await;
        let answer = answer.map_err(|error| self.error(key, &error))?;
        let body = answer.body.collect().await.map_err(|error| BlobError::Unavailable(error.to_string()))?;
        Ok(body.into_bytes())
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        match self.client.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(head) => {
                let size_bytes = u64::try_from(head.content_length().unwrap_or(0)).unwrap_or(0);
                Ok(Some(BlobHead { size_bytes }))
            }
            Err(error) => match self.error(key, &error) {
                BlobError::NotFound(_) => self.require_bucket().await.map(|()| None),
                other => Err(other),
            },
        }
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        match self.client.delete_object().bucket(&self.bucket).key(key).send().await {
            Ok(_) => Ok(()),
            Err(error) => match self.error(key, &error) {
                BlobError::NotFound(_) => Ok(()),
                other => Err(other),
            },
        }
    }

    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        let size = i64::try_from(terms.size_bytes).unwrap_or(i64::MAX);
        let checksum = client::base64(&terms.sha256.0);
        let signed = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(&terms.content_type)
            .content_length(size)
            .checksum_sha256(checksum)
            .presigned(terms_of(age)?)
            .await
            .map_err(|error| self.error(key, &error))?;
        Ok(presigned("PUT", &signed))
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        let signed = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .presigned(terms_of(age)?)
            .await
            .map_err(|error| self.error(key, &error))?;
        Ok(presigned("GET", &signed))
    }
}

fn terms_of(age: Duration) -> Result<PresigningConfig, BlobError> {
    PresigningConfig::expires_in(age).map_err(|error| BlobError::Refused(error.to_string()))
}

fn presigned(method: &str, signed: &PresignedRequest) -> Presigned {
    Presigned {
        method: method.to_owned(),
        url: signed.uri().to_owned(),
        headers: signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}
