//! What Azure's containers and Google's buckets have in common.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use plumbline_core::ports::{BlobError, BlobHead, BlobPrefix};
use plumbline_core::protocol::Presigned;

use crate::wire::Fault;

/// The longest that Google's signatures and Azure's delegated ones hold.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A container or bucket, and where in it.
#[derive(Clone)]
pub(crate) struct Bucket<S> {
    pub(crate) objects: S,
    /// As its owner calls it.
    pub(crate) name: String,
    pub(crate) prefix: BlobPrefix,
}

/// What can tell whether its container or bucket exists.
#[async_trait]
pub(crate) trait Existing: Sync {
    /// Asks for the first name in it.
    async fn require(&self) -> Result<(), BlobError>;

    /// "Not found" may be the container's: a HEAD cannot say, and some services do not.
    async fn sure<T: Send>(&self, asked: Result<T, BlobError>) -> Result<T, BlobError> {
        match asked {
            Err(missing @ BlobError::NotFound(_)) => self.require().await.and(Err(missing)),
            other => other,
        }
    }

    /// The same of a write, which needs nothing but its container.
    async fn written(&self, ended: Result<(), BlobError>) -> Result<(), BlobError> {
        match self.sure(ended).await {
            Err(BlobError::NotFound(_)) => {
                Err(BlobError::Unavailable("it did not find what it was about to write".into()))
            }
            other => other,
        }
    }

    /// The same of a delete: what is not there is deleted.
    async fn deleted(&self, ended: Result<(), BlobError>) -> Result<(), BlobError> {
        match self.sure(ended).await {
            Err(BlobError::NotFound(_)) => Ok(()),
            // Held by a lease, a snapshot or a rule of its owner's.
            Err(BlobError::Conflict(key)) => {
                Err(BlobError::Refused(format!("something holds the object {key}")))
            }
            other => other,
        }
    }
}

impl<S: ObjectStore + Signer> Bucket<S> {
    /// The key as the service knows it.
    pub(crate) fn full(&self, key: &str) -> Result<String, BlobError> {
        self.prefix.full(key)
    }

    pub(crate) fn path(&self, key: &str) -> Result<Path, BlobError> {
        let full = self.full(key)?;
        Path::parse(full).map_err(|_| BlobError::Refused(format!("{key:?} is not a key")))
    }

    pub(crate) fn fault(&self, key: &str, error: &object_store::Error) -> BlobError {
        Fault::of(error).into_blob(&self.name, key)
    }

    /// The container's or bucket's own "not found".
    pub(crate) fn missing(&self) -> BlobError {
        BlobError::StoreMissing { name: self.name.clone(), reason: "it does not exist".into() }
    }

    pub(crate) async fn read(&self, key: &str, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        let path = self.path(key)?;
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        let read = match self.objects.get_opts(&path, options).await {
            Ok(answer) => answer.bytes().await,
            Err(error) => Err(error),
        };
        match read {
            Ok(bytes) => Ok(bytes),
            // The range begins where the object ends, or behind it.
            Err(error) if Fault::of(&error).status == Some(416) => Ok(Bytes::new()),
            Err(error) => Err(self.fault(key, &error)),
        }
    }

    pub(crate) async fn read_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        // No service knows an empty range; the object must be there all the same.
        if part.is_empty() {
            return self.head(key).await.map(|_| Bytes::new());
        }
        let from = part.start;
        match self.read(key, Some(part)).await {
            // Of an empty object, or from behind the end, not every service says the same.
            Err(error @ BlobError::Unavailable(_)) => match self.head(key).await {
                Ok(head) if head.size_bytes <= from => Ok(Bytes::new()),
                _ => Err(error),
            },
            read => read,
        }
    }

    pub(crate) async fn head(&self, key: &str) -> Result<BlobHead, BlobError> {
        match self.objects.head(&self.path(key)?).await {
            Ok(meta) => Ok(BlobHead { size_bytes: meta.size, sha256: None }),
            Err(error) => Err(self.fault(key, &error)),
        }
    }

    pub(crate) async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        let path = self.path(key)?;
        if age > AGE_MAX {
            return Err(BlobError::Refused("a signature holds for a week at most".into()));
        }
        let url = self.objects.signed_url(Method::GET, &path, age).await;
        let url = url.map_err(|error| self.fault(key, &error))?;
        Ok(Presigned { method: "GET".into(), url: url.into(), headers: Default::default() })
    }

    pub(crate) fn no_uploads(&self) -> BlobError {
        BlobError::Refused(format!(
            "{}: no URL can be signed that takes exactly these bytes; uploads go through the platform's own store",
            self.name
        ))
    }
}

/// `None` if there is no such object.
pub(crate) fn found(head: Result<BlobHead, BlobError>) -> Result<Option<BlobHead>, BlobError> {
    match head {
        Ok(head) => Ok(Some(head)),
        Err(BlobError::NotFound(_)) => Ok(None),
        Err(other) => Err(other),
    }
}
