//! An object in several parts: a multipart upload whose completion carries the condition that the key is free.
//!
//! What fits into one part is written as any other object. Parts of an upload that nobody ends cost money until the
//! bucket's lifecycle rule removes them.

use async_trait::async_trait;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart, ServerSideEncryption};
use bytes::Bytes;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{BlobError, BlobStore, PartWriter, Pieces, settle};

use crate::{S3Store, client};

/// The smallest part that S3 takes, the last one aside. One part is in memory at a time.
const PART_BYTES: usize = 5 << 20;

#[derive(Debug)]
pub(super) struct Parts {
    store: S3Store,
    key: String,
    /// The key as the bucket knows it.
    full: String,
    content_type: String,
    pieces: Pieces,
    /// Named by S3 when the first part is sent.
    upload_id: Option<String>,
    sent: Vec<CompletedPart>,
}

impl Parts {
    pub(super) fn begin(store: S3Store, key: &str, full: String, content_type: &str) -> Self {
        Self {
            store,
            key: key.to_owned(),
            full,
            content_type: content_type.to_owned(),
            pieces: Pieces::new(PART_BYTES),
            upload_id: None,
            sent: Vec::new(),
        }
    }

    fn fault<E>(&self, error: &SdkError<E>) -> BlobError
    where
        SdkError<E>: ProvideErrorMetadata,
    {
        match self.store.error(&self.key, error) {
            // The key of an upload that is under way cannot be missing: the upload is.
            BlobError::NotFound(_) => BlobError::Unavailable("the store has lost the parts".into()),
            other => other,
        }
    }

    async fn upload_id(&mut self) -> Result<String, BlobError> {
        if let Some(id) = &self.upload_id {
            return Ok(id.clone());
        }
        let kms_key_id = self.store.kms_key_id.clone();
        let request = self
            .store
            .client
            .create_multipart_upload()
            .bucket(&self.store.bucket)
            .key(&self.full)
            .content_type(&self.content_type)
            .checksum_algorithm(ChecksumAlgorithm::Sha256)
            .set_server_side_encryption(kms_key_id.as_ref().map(|_| ServerSideEncryption::AwsKms))
            .set_ssekms_key_id(kms_key_id);
        let begun = match request.send().await {
            Ok(begun) => begun,
            Err(error) => {
                let fault = self.fault(&error);
                self.store.require_bucket().await?;
                return Err(fault);
            }
        };
        let id = begun.upload_id.ok_or_else(|| BlobError::Unavailable("it named no upload".into()))?;
        self.upload_id = Some(id.clone());
        Ok(id)
    }

    async fn send(&mut self, part: Bytes) -> Result<(), BlobError> {
        let upload_id = self.upload_id().await?;
        let number = i32::try_from(self.sent.len() + 1)
            .map_err(|_| BlobError::Refused("no object can have that many parts".into()))?;
        let checksum = client::base64(&Sha256Digest::of(&part).0);
        let request = self
            .store
            .client
            .upload_part()
            .bucket(&self.store.bucket)
            .key(&self.full)
            .upload_id(upload_id)
            .part_number(number)
            .checksum_sha256(&checksum)
            .body(ByteStream::from(part));
        let sent = request.send().await.map_err(|error| self.fault(&error))?;
        let part =
            CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag).checksum_sha256(checksum);
        self.sent.push(part.build());
        Ok(())
    }

    async fn complete(&mut self, upload_id: &str) -> Result<(), BlobError> {
        let parts =
            CompletedMultipartUpload::builder().set_parts(Some(std::mem::take(&mut self.sent))).build();
        let request = self
            .store
            .client
            .complete_multipart_upload()
            .bucket(&self.store.bucket)
            .key(&self.full)
            .upload_id(upload_id)
            .if_none_match("*")
            .multipart_upload(parts);
        let error = match request.send().await {
            Ok(_) => return Ok(()),
            Err(error) => self.fault(&error),
        };
        // The key is taken, or the upload is gone: both may be our own earlier try whose answer was lost.
        let sha256 = self.pieces.finish_digest();
        settle(&self.store, &self.key, self.pieces.size_bytes(), sha256, error).await
    }

    async fn drop_parts(&self, upload_id: &str) -> Result<(), BlobError> {
        let request = self.store.client.abort_multipart_upload().bucket(&self.store.bucket).key(&self.full);
        match request.upload_id(upload_id).send().await {
            Ok(_) => Ok(()),
            Err(error) => match self.store.error(&self.key, &error) {
                BlobError::NotFound(_) => Ok(()),
                other => Err(other),
            },
        }
    }
}

#[async_trait]
impl PartWriter for Parts {
    async fn write(&mut self, bytes: Bytes) -> Result<(), BlobError> {
        self.pieces.add(bytes);
        while let Some(part) = self.pieces.next_whole() {
            self.send(part).await?;
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<(), BlobError> {
        let last = self.pieces.last();
        let Some(upload_id) = self.upload_id.clone() else {
            return self.store.put(&self.key, last, &self.content_type).await;
        };
        let ended = match self.send(last).await {
            Ok(()) => self.complete(&upload_id).await,
            Err(error) => Err(error),
        };
        if ended.is_err()
            && let Err(error) = self.drop_parts(&upload_id).await
        {
            tracing::warn!(blob.key = self.key, %error, "parts of an object that was not made stay in the store");
        }
        ended
    }

    async fn abort(self: Box<Self>) -> Result<(), BlobError> {
        match &self.upload_id {
            Some(upload_id) => self.drop_parts(upload_id).await,
            None => Ok(()),
        }
    }
}
