//! Bodies as streams: their pieces come from the object store on this side, and are understood on a thread that may block.
//! A few megabytes are in memory, however large the state.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use md5::Digest as _;
use tokio::sync::mpsc;

use crate::Deps;
use crate::digest::{Sha256Digest, Sha256Hasher};
use crate::ids::StateStoreId;
use crate::ports::{self, BlobError, BlobStore, PartWriter};
use crate::state_stores;
use crate::tfstates::{StateError, StateHead};

/// Read at a time, in bytes.
const PIECE_BYTES: u64 = 1 << 20;
/// Pieces that wait to be understood.
const PIECES_AHEAD: usize = 1;

/// A body that a row says exists.
#[derive(Clone, Debug)]
pub(super) struct BodyAt {
    blobs: Arc<dyn BlobStore>,
    key: String,
    size_bytes: u64,
}

impl BodyAt {
    /// In the store that the row names. No connection may be held meanwhile.
    pub(super) async fn open(
        deps: &Deps,
        store_id: Option<StateStoreId>,
        key: &str,
        size_bytes: i64,
    ) -> Result<Self, StateError> {
        let blobs = state_stores::service::opened(deps, store_id).await?;
        Ok(Self { blobs, key: key.to_owned(), size_bytes: u64::try_from(size_bytes).unwrap_or(0) })
    }

    pub(super) async fn of_head(deps: &Deps, head: &StateHead) -> Result<Self, StateError> {
        Self::open(deps, head.store_id, &head.key, head.size_bytes).await
    }

    /// Pieces of it, from an offset on.
    async fn piece(&self, at: u64) -> Result<Bytes, StateError> {
        let part = at..self.size_bytes.min(at + PIECE_BYTES);
        match self.blobs.get_part(&self.key, part).await {
            // Shorter than the row says: these are not the bytes that were accepted.
            Ok(piece) if piece.is_empty() => Err(StateError::BodyMissing(self.key.clone())),
            Ok(piece) => Ok(piece),
            Err(BlobError::NotFound(key)) => Err(StateError::BodyMissing(key)),
            Err(error) => Err(error.into()),
        }
    }
}

/// What `read` makes of a body. It may stop before the end.
pub(super) async fn stream<T: Send + 'static>(
    body: &BodyAt,
    read: impl FnOnce(Pieces) -> T + Send + 'static,
) -> Result<T, StateError> {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    let reading = tokio::task::spawn_blocking(move || read(Pieces { receiver, piece: Bytes::new() }));
    let (fed, read) = tokio::join!(feed(body, sender), reading);
    // First: without its end a body looks like one that was cut off.
    fed?;
    read.map_err(|error| {
        BlobError::Unavailable(format!("the reading of a state ended early: {error}")).into()
    })
}

async fn feed(body: &BodyAt, pieces: mpsc::Sender<Bytes>) -> Result<(), StateError> {
    let mut at = 0;
    while at < body.size_bytes {
        let piece = body.piece(at).await?;
        at += piece.len() as u64;
        // Nobody reads on.
        if pieces.send(piece).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The pieces of a body, for a thread that may block.
#[derive(Debug)]
pub(super) struct Pieces {
    receiver: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = into.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

/// What a new object is recorded with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    pub(super) md5: [u8; 16],
    pub(super) sha256: Sha256Digest,
    pub(super) size_bytes: i64,
}

/// Copies a body to another place, with another serial where the old one is and every other byte as it was.
pub(super) async fn copy_with_serial(
    body: &BodyAt,
    (to, to_key): (&dyn BlobStore, &str),
    (serial_at, serial): (&Range<u64>, i64),
) -> Result<Copied, StateError> {
    copy(body, (to, to_key), Some((serial_at, serial))).await
}

/// Copies a body to another store, under its own key. What is there already is not copied again: a copy whose answer was
/// lost is as good as one.
pub(super) async fn copy_to(
    body: &BodyAt,
    to: &dyn BlobStore,
    sha256: Sha256Digest,
) -> Result<(), StateError> {
    if ports::holds(to, &body.key, body.size_bytes, sha256).await? {
        return Ok(());
    }
    copy(body, (to, &body.key), None).await.map(drop)
}

async fn copy(
    body: &BodyAt,
    (to, to_key): (&dyn BlobStore, &str),
    change: Option<(&Range<u64>, i64)>,
) -> Result<Copied, StateError> {
    let mut copy = Copy {
        writer: to.begin_parts(to_key, "application/json").await?,
        md5: md5::Md5::new(),
        sha256: Sha256Hasher::default(),
        size_bytes: 0,
    };
    match copy.pieces(body, change).await {
        Ok(()) => copy.finish().await,
        Err(error) => {
            if let Err(left) = copy.writer.abort().await {
                tracing::warn!(blob.key = to_key, error = %left, "a copy that was given up may have left parts");
            }
            Err(error)
        }
    }
}

struct Copy {
    writer: Box<dyn PartWriter>,
    md5: md5::Md5,
    sha256: Sha256Hasher,
    size_bytes: i64,
}

impl Copy {
    async fn pieces(&mut self, body: &BodyAt, change: Option<(&Range<u64>, i64)>) -> Result<(), StateError> {
        let mut end = 0;
        while end < body.size_bytes {
            let (at, piece) = (end, body.piece(end).await?);
            end = at + piece.len() as u64;
            let Some((serial_at, serial)) = change else {
                self.write(piece).await?;
                continue;
            };
            // Offsets in the piece; of a serial that lies elsewhere, one of its ends.
            let within = |offset: u64| usize::try_from(offset.clamp(at, end) - at).unwrap_or(piece.len());
            self.write(piece.slice(..within(serial_at.start))).await?;
            if (at..end).contains(&serial_at.start) {
                self.write(serial.to_string().into()).await?;
            }
            self.write(piece.slice(within(serial_at.end)..)).await?;
        }
        Ok(())
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), StateError> {
        self.md5.update(&bytes);
        self.sha256.update(&bytes);
        self.size_bytes += i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        Ok(self.writer.write(bytes).await?)
    }

    async fn finish(self) -> Result<Copied, StateError> {
        self.writer.finish().await?;
        let (md5, sha256) = (self.md5.finalize().into(), self.sha256.finish());
        Ok(Copied { md5, sha256, size_bytes: self.size_bytes })
    }
}
