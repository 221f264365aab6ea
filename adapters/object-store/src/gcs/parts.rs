//! An object in several pieces: a resumable upload that was begun on the condition that nothing has the name, which the
//! service checks again when the last piece comes.
//!
//! What fits into one piece is written as any other object. The address of an upload is a secret: whoever has it may write.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, StatusCode};
use plumbline_core::ports::{BlobError, BlobStore as _, PartWriter, Pieces, settle};
use url::Url;

use super::GcsStore;
use crate::bucket::Existing as _;
use crate::wire::{self, Call, Fault};

/// Sent at a time, and in memory: a multiple of 256 KiB, as the service wants it.
const PIECE_BYTES: usize = 8 << 20;

pub(super) struct Parts {
    store: GcsStore,
    key: String,
    content_type: String,
    pieces: Pieces,
    sent_bytes: u64,
    upload: Upload,
}

/// Where the pieces go.
enum Upload {
    /// Nothing was sent yet.
    None,
    /// To this address.
    To(Url),
    /// Nowhere: something had the name before the first piece was sent. Whether that is what is being written is known
    /// at the end.
    Taken,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("store", &self.store)
            .field("key", &self.key)
            .field("size_bytes", &self.pieces.size_bytes())
            .finish_non_exhaustive()
    }
}

impl Parts {
    pub(super) fn begin(store: GcsStore, key: &str, content_type: &str) -> Self {
        Self {
            store,
            key: key.to_owned(),
            content_type: content_type.to_owned(),
            pieces: Pieces::new(PIECE_BYTES),
            sent_bytes: 0,
            upload: Upload::None,
        }
    }

    async fn open(&self) -> Result<Upload, BlobError> {
        let call = Call::new(Method::POST, self.store.upload_url(&self.key, "resumable")?)
            .header("x-upload-content-type", &self.content_type);
        match self.store.send(&call).await {
            Ok(answer) => {
                let place = answer.headers.get(http::header::LOCATION).and_then(|place| place.to_str().ok());
                place
                    .and_then(|place| Url::parse(place).ok())
                    .map(Upload::To)
                    .ok_or_else(|| BlobError::Unavailable("it named no upload".into()))
            }
            Err(fault) => match self.fault(fault).await {
                BlobError::Conflict(_) => Ok(Upload::Taken),
                other => Err(other),
            },
        }
    }

    /// What is not found is the bucket, or the upload.
    async fn fault(&self, fault: Fault) -> BlobError {
        let gone = fault.status == Some(410);
        match fault.into_blob(&self.store.bucket.name, &self.key) {
            BlobError::Refused(_) | BlobError::NotFound(_) if gone => lost(),
            BlobError::NotFound(_) => self.store.require().await.err().unwrap_or_else(lost),
            other => other,
        }
    }

    /// Sends a piece; with the last one comes the object's length.
    async fn send(&mut self, piece: Bytes, whole_bytes: Option<u64>) -> Result<(), BlobError> {
        if matches!(self.upload, Upload::None) {
            self.upload = self.open().await?;
        }
        let from = self.sent_bytes;
        self.sent_bytes += piece.len() as u64;
        match &self.upload {
            Upload::To(url) => match send_piece(&self.store, url, piece, from, whole_bytes).await {
                Ok(()) => Ok(()),
                Err(fault) => Err(self.fault(fault).await),
            },
            Upload::None | Upload::Taken => Ok(()),
        }
    }

    async fn give_up(&self) -> Result<(), BlobError> {
        let Upload::To(url) = &self.upload else { return Ok(()) };
        match wire::once(
            &self.store.client,
            Call::new(Method::DELETE, url.clone()).request().map_err(strange)?,
        )
        .await
        {
            Ok(_) => Ok(()),
            // 499 is how the service says that it stopped.
            Err(fault) if matches!(fault.status, Some(404 | 410 | 499)) => Ok(()),
            Err(fault) => Err(fault.into_blob(&self.store.bucket.name, &self.key)),
        }
    }
}

fn lost() -> BlobError {
    BlobError::Unavailable("the store has lost the parts".into())
}

fn strange(fault: Fault) -> BlobError {
    BlobError::Unavailable(fault.to_string())
}

/// Sends until the service has all of it: it may keep only the beginning of what comes, and then says how much.
async fn send_piece(
    store: &GcsStore,
    url: &Url,
    piece: Bytes,
    from: u64,
    whole_bytes: Option<u64>,
) -> Result<(), Fault> {
    let end = from + piece.len() as u64;
    let total = whole_bytes.map_or_else(|| "*".to_owned(), |bytes| bytes.to_string());
    let (mut at, mut tries, mut asks) = (from, 1, false);
    loop {
        let (range, body) = if asks {
            (format!("bytes */{total}"), Bytes::new())
        } else {
            let rest = piece.slice(usize::try_from(at - from).unwrap_or(usize::MAX).min(piece.len())..);
            (format!("bytes {at}-{}/{total}", end - 1), rest)
        };
        // The address is the permission: no token is sent, whoever it leads to.
        let call = Call::new(Method::PUT, url.clone()).header("content-range", &range).body(body);
        match wire::once(&store.client, call.request()?).await {
            Ok(answer) if answer.status == StatusCode::PERMANENT_REDIRECT => {
                let has = answer.headers.get(http::header::RANGE).and_then(|range| range.to_str().ok());
                let has = has.and_then(|range| range.rsplit_once('-')?.1.parse::<u64>().ok());
                let has = has.map_or(0, |last| last + 1);
                if has < from || has > end {
                    return Err(Fault::strange("it has other pieces than were sent"));
                }
                if has == end && whole_bytes.is_none() {
                    return Ok(());
                }
                // All is there and the object is not: ask again, as after an answer that was lost.
                asks = has == end;
                if has > at {
                    (at, tries) = (has, 1);
                    continue;
                }
                if tries == wire::TRIES {
                    return Err(Fault::strange("it keeps nothing of what is sent"));
                }
            }
            Ok(_) => return Ok(()),
            Err(fault) if fault.passes() && tries < wire::TRIES => asks = true,
            Err(fault) => return Err(fault),
        }
        wire::pause(tries).await;
        tries += 1;
    }
}

#[async_trait]
impl PartWriter for Parts {
    async fn write(&mut self, bytes: Bytes) -> Result<(), BlobError> {
        self.pieces.add(bytes);
        while let Some(piece) = self.pieces.next_whole() {
            self.send(piece, None).await?;
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<(), BlobError> {
        let last = self.pieces.last();
        if matches!(self.upload, Upload::None) {
            return self.store.put(&self.key, last, &self.content_type).await;
        }
        let error = match self.send(last, Some(self.pieces.size_bytes())).await {
            Ok(()) if matches!(self.upload, Upload::Taken) => BlobError::Conflict(self.key.clone()),
            Ok(()) => return Ok(()),
            Err(refused @ (BlobError::Refused(_) | BlobError::StoreMissing { .. })) => return Err(refused),
            Err(error) => error,
        };
        // The name is taken, or the upload is gone: either may be our own earlier try whose answer was lost.
        let sha256 = self.pieces.finish_digest();
        let ended = settle(&self.store, &self.key, self.pieces.size_bytes(), sha256, error).await;
        if ended.is_err()
            && let Err(error) = self.give_up().await
        {
            tracing::warn!(blob.key = self.key, %error, "parts of an object that was not made stay for a week");
        }
        ended
    }

    async fn abort(self: Box<Self>) -> Result<(), BlobError> {
        self.give_up().await
    }
}
