//! The object store in S3, or in what speaks its protocol.
//!
//! Objects are written once: a write carries `If-None-Match: *` and its SHA-256, so it can neither replace an object nor
//! arrive damaged. Signed uploads carry the SHA-256 too, as a signed header: sent again they can only write the same
//! bytes, so they need no condition, and a client whose answer was lost just sends again. Large objects of ours come in
//! parts, each with its SHA-256; the condition stands in the completion. S3 keeps no SHA-256 of such an object as a whole.

mod client;
mod errors;
mod parts;

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumMode, ServerSideEncryption};
use bytes::Bytes;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{BlobError, BlobHead, BlobPrefix, BlobStore, PartWriter, UploadTerms, settle};
use plumbline_core::protocol::Presigned;

pub use client::{Keys, S3Credentials, S3Place};

/// One bucket, or what is below a prefix in it.
#[derive(Clone, Debug)]
pub struct S3Store {
    client: Client,
    bucket: String,
    prefix: BlobPrefix,
    /// Encrypts what is written; `None` leaves it to the bucket's default.
    kms_key_id: Option<String>,
}

impl S3Store {
    /// The bucket, with credentials, region and endpoint from the environment.
    pub async fn from_environment(bucket: &str) -> Self {
        Self::of(client::from_environment().await, bucket, BlobPrefix::default())
    }

    /// The bucket at an endpoint of its own, with explicit keys and paths instead of host names.
    pub fn with_keys(keys: &Keys) -> Self {
        Self::of(client::with_keys(keys), &keys.bucket, BlobPrefix::default())
    }

    /// A place of somebody's own, with the credentials given: nothing comes from the environment, and nobody is called.
    /// [`BlobError::Refused`] says what of the place cannot be right.
    pub fn open(place: &S3Place, credentials: &S3Credentials) -> Result<Self, BlobError> {
        check_name("bucket", &place.bucket)?;
        check_name("region", &place.region)?;
        let prefix = BlobPrefix::new(place.prefix.as_deref())?;
        Ok(Self::of(client::opened(place, credentials), &place.bucket, prefix))
    }

    fn of(client: Client, bucket: &str, prefix: BlobPrefix) -> Self {
        Self { client, bucket: bucket.to_owned(), prefix, kms_key_id: None }
    }

    /// The same bucket; what is written from now on is encrypted with this KMS key.
    #[must_use]
    pub fn encrypted_with(mut self, kms_key_id: impl Into<String>) -> Self {
        self.kms_key_id = Some(kms_key_id.into());
        self
    }

    fn error<E>(&self, key: &str, error: &SdkError<E>) -> BlobError
    where
        SdkError<E>: ProvideErrorMetadata,
    {
        errors::blob_error(&self.bucket, key, error)
    }

    /// A write with what every write says, by whatever way its bytes come.
    fn write(&self, full: &str, sha256: Sha256Digest, content_type: &str) -> PutObjectFluentBuilder {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(full)
            .content_type(content_type)
            .checksum_sha256(client::base64(&sha256.0))
            .set_server_side_encryption(self.kms_key_id.as_ref().map(|_| ServerSideEncryption::AwsKms))
            .set_ssekms_key_id(self.kms_key_id.clone())
    }

    /// The whole object, or the bytes that a `Range` header names.
    async fn read(&self, key: &str, range: Option<String>) -> Result<Bytes, BlobError> {
        let full = self.prefix.full(key)?;
        match self.client.get_object().bucket(&self.bucket).key(full).set_range(range).send().await {
            Ok(answer) => match answer.body.collect().await {
                Ok(body) => Ok(body.into_bytes()),
                Err(_) => Err(BlobError::Unavailable("the object broke off".into())),
            },
            // The range begins where the object ends, or behind it.
            Err(error) if errors::status(&error) == Some(416) => Ok(Bytes::new()),
            Err(error) => match self.error(key, &error) {
                missing @ BlobError::NotFound(_) => self.require_bucket().await.and(Err(missing)),
                other => Err(other),
            },
        }
    }

    /// Some stores take a missing bucket for a missing object, and a HEAD's answer cannot say which it is: ask.
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
        let full = self.prefix.full(key)?;
        let sha256 = Sha256Digest::of(&bytes);
        let size_bytes = bytes.len() as u64;
        let write = self.write(&full, sha256, content_type).if_none_match("*").body(ByteStream::from(bytes));
        match write.send().await.map_err(|error| self.error(key, &error)) {
            Ok(_) => Ok(()),
            // Somebody else's object, or our own earlier try whose answer was lost.
            Err(conflict @ BlobError::Conflict(_)) => settle(self, key, size_bytes, sha256, conflict).await,
            Err(BlobError::NotFound(_)) => {
                self.require_bucket().await?;
                Err(BlobError::Unavailable("it did not find what it was about to write".into()))
            }
            Err(other) => Err(other),
        }
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        self.read(key, None).await
    }

    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        // S3 knows no empty range; the object must be there all the same.
        if part.is_empty() {
            let there = self.head(key).await?;
            return there.map(|_| Bytes::new()).ok_or_else(|| BlobError::NotFound(key.into()));
        }
        self.read(key, Some(format!("bytes={}-{}", part.start, part.end - 1))).await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        let full = self.prefix.full(key)?;
        let request = self.client.head_object().bucket(&self.bucket).key(full);
        match request.checksum_mode(ChecksumMode::Enabled).send().await {
            Ok(head) => {
                // The checksum of an object in parts is one of the parts' checksums, whatever it looks like.
                let in_parts = head.e_tag().is_some_and(|tag| tag.contains('-'));
                Ok(Some(BlobHead {
                    size_bytes: head.content_length().and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
                    sha256: head.checksum_sha256().filter(|_| !in_parts).and_then(client::digest),
                }))
            }
            Err(error) => match self.error(key, &error) {
                BlobError::NotFound(_) => self.require_bucket().await.map(|()| None),
                other => Err(other),
            },
        }
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let full = self.prefix.full(key)?;
        match self.client.delete_object().bucket(&self.bucket).key(full).send().await {
            Ok(_) => Ok(()),
            Err(error) => match self.error(key, &error) {
                BlobError::NotFound(_) => self.require_bucket().await,
                other => Err(other),
            },
        }
    }

    async fn begin_parts(&self, key: &str, content_type: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        let full = self.prefix.full(key)?;
        Ok(Box::new(parts::Parts::begin(self.clone(), key, full, content_type)))
    }

    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        let full = self.prefix.full(key)?;
        let size = i64::try_from(terms.size_bytes)
            .map_err(|_| BlobError::Refused("no object can be that long".into()))?;
        let signed = self
            .write(&full, terms.sha256, &terms.content_type)
            .content_length(size)
            .presigned(terms_of(age)?)
            .await
            .map_err(|error| self.error(key, &error))?;
        Ok(presigned("PUT", &signed))
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        let full = self.prefix.full(key)?;
        let request = self.client.get_object().bucket(&self.bucket).key(full);
        let signed = request.presigned(terms_of(age)?).await.map_err(|error| self.error(key, &error))?;
        Ok(presigned("GET", &signed))
    }
}

/// Names stand in the address of a host.
fn check_name(what: &str, name: &str) -> Result<(), BlobError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    if (3..=63).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.') {
        return Ok(());
    }
    Err(BlobError::Refused(format!("{name:?} is no name of a {what}")))
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
