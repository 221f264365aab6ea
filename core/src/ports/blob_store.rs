//! The object store: immutable objects, named by their key, written once.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::digest::{Sha256Digest, Sha256Hasher};
use crate::protocol::Presigned;

/// What an upload URL is good for: exactly these bytes under exactly this key.
#[derive(Clone, Debug)]
pub struct UploadTerms {
    /// Length in bytes.
    pub size_bytes: u64,
    /// Content digest; the store refuses other bytes.
    pub sha256: Sha256Digest,
    /// MIME type.
    pub content_type: String,
}

/// What the store knows of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobHead {
    /// Length in bytes.
    pub size_bytes: u64,
    /// Digest that the store checked when the bytes came. `None` proves nothing: another writer, or a store that took
    /// the bytes before it found them to be wrong.
    pub sha256: Option<Sha256Digest>,
}

/// What can go wrong with the object store.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// No object has this key.
    #[error("no object {0}")]
    NotFound(String),
    /// The bucket or directory itself is missing: a set-up fault, and never the same as "no object".
    #[error("the object store {name} is missing: {reason}")]
    StoreMissing {
        /// Bucket or directory.
        name: String,
        /// What the store said.
        reason: String,
    },
    /// An object with this key and other content exists.
    #[error("an object {0} with other content exists")]
    Conflict(String),
    /// The store refuses us for good: credentials, permissions.
    #[error("the object store refused: {0}")]
    Refused(String),
    /// The store is somebody's own and cannot be used as they have set it up: a fault that they can mend.
    #[error("{name} cannot be used: {reason}")]
    Unusable {
        /// Which store, and whose.
        name: String,
        /// Why.
        reason: String,
    },
    /// Passes by itself.
    #[error("the object store cannot be reached: {0}")]
    Unavailable(String),
}

/// An object store. Implementations: a local directory, S3. All pass one conformance suite.
///
/// Keys are relative paths of `[A-Za-z0-9._/-]`, without `..` or an empty segment.
#[async_trait]
pub trait BlobStore: Send + Sync + std::fmt::Debug {
    /// Writes an object. Writing the same bytes under the same key again succeeds; other bytes are a
    /// [`BlobError::Conflict`].
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError>;

    /// The whole object.
    async fn get(&self, key: &str) -> Result<Bytes, BlobError>;

    /// A part of the object, by offsets in bytes. What lies beyond its end is left out.
    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError>;

    /// `None` if there is no such object; a missing bucket is an error.
    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError>;

    /// Removes an object; absent is success.
    async fn delete(&self, key: &str) -> Result<(), BlobError>;

    /// Begins an object that comes piece by piece, for what must not stand in memory whole. Nothing has the key before
    /// [`PartWriter::finish`], which means what [`BlobStore::put`] means. A missing bucket may be told here or later.
    async fn begin_parts(&self, key: &str, content_type: &str) -> Result<Box<dyn PartWriter>, BlobError>;

    /// A URL to write the object once. It signs key, length and checksum.
    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError>;

    /// A URL to read the object.
    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError>;
}

/// An object on its way into the store, piece by piece. It keeps a few megabytes at most, however long the object.
///
/// One that is dropped leaves no object, but may leave parts in the store: call [`PartWriter::abort`] where that can be
/// awaited, and let the store's lifecycle rule remove what a killed process left.
#[async_trait]
pub trait PartWriter: Send + std::fmt::Debug {
    /// Appends bytes; pieces may have any length. After an error only [`PartWriter::abort`] is of use.
    async fn write(&mut self, bytes: Bytes) -> Result<(), BlobError>;

    /// Gives the whole its key, at once. As with [`BlobStore::put`], the same bytes under the same key again succeed,
    /// our own earlier success whose answer was lost included, and other bytes are a [`BlobError::Conflict`], which
    /// leaves the object that is there as it is. What was written is gone after an error.
    async fn finish(self: Box<Self>) -> Result<(), BlobError>;

    /// Gives up: nothing has the key because of this writer.
    async fn abort(self: Box<Self>) -> Result<(), BlobError>;
}

/// Whether a store holds exactly the announced bytes. They are read only if the store does not know their digest: it
/// knows none of an object that came in parts.
pub async fn holds(
    store: &dyn BlobStore,
    key: &str,
    size_bytes: u64,
    sha256: Sha256Digest,
) -> Result<bool, BlobError> {
    match store.head(key).await? {
        Some(BlobHead { size_bytes: size, sha256: Some(known) }) => Ok(size == size_bytes && known == sha256),
        Some(BlobHead { size_bytes: size, sha256: None }) if size == size_bytes => {
            Ok(digest_of(store, key, size).await? == sha256)
        }
        Some(_) | None => Ok(false),
    }
}

/// What a write that did not succeed was: our own earlier success whose answer was lost, or, with its error, none.
pub async fn settle(
    store: &dyn BlobStore,
    key: &str,
    size_bytes: u64,
    sha256: Sha256Digest,
    error: BlobError,
) -> Result<(), BlobError> {
    if holds(store, key, size_bytes, sha256).await? { Ok(()) } else { Err(error) }
}

/// Reads piece by piece: objects may be larger than memory.
async fn digest_of(store: &dyn BlobStore, key: &str, size_bytes: u64) -> Result<Sha256Digest, BlobError> {
    let (mut hasher, mut offset) = (Sha256Hasher::default(), 0);
    while offset < size_bytes {
        let piece = store.get_part(key, offset..size_bytes.min(offset + PIECE_BYTES)).await?;
        // An object that became shorter is another one: its digest differs.
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        hasher.update(&piece);
    }
    Ok(hasher.finish())
}

/// Refuses keys that are not plain relative paths.
pub fn check_key(key: &str) -> Result<(), BlobError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/');
    let segment_ok = |segment: &str| !matches!(segment, "" | "." | "..");
    if key.len() <= KEY_BYTES_MAX && key.bytes().all(plain) && key.split('/').all(segment_ok) {
        return Ok(());
    }
    Err(BlobError::Refused(format!("{key:?} is not a key")))
}

/// Where in a bucket a store keeps its objects. Stores of one bucket do not see each other's, unless the prefix of one lies
/// below that of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobPrefix(Option<String>);

impl BlobPrefix {
    /// Nothing, or a plain relative path, which may end in a slash.
    pub fn new(prefix: Option<&str>) -> Result<Self, BlobError> {
        let Some(path) = prefix.map(|prefix| prefix.strip_suffix('/').unwrap_or(prefix)) else {
            return Ok(Self(None));
        };
        check_key(path).map_err(|_| BlobError::Refused(format!("{path:?} is not a prefix")))?;
        Ok(Self(Some(format!("{path}/"))))
    }

    /// The key as the bucket knows it.
    pub fn full(&self, key: &str) -> Result<String, BlobError> {
        check_key(key)?;
        let Some(prefix) = &self.0 else { return Ok(key.to_owned()) };
        let full = [prefix, key].concat();
        check_key(&full)?;
        Ok(full)
    }

    /// What all keys begin with, the slash included.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Read at a time, in bytes.
const PIECE_BYTES: u64 = 1 << 20;
/// The longest key, in bytes: the limit of S3.
const KEY_BYTES_MAX: usize = 1024;
