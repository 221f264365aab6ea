//! Google Cloud Storage: one bucket.

mod key;
mod parts;

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use object_store::client::{HttpClient, HttpConnector as _};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{BlobError, BlobHead, BlobPrefix, BlobStore, PartWriter, UploadTerms, settle};
use plumbline_core::protocol::Presigned;
use plumbline_core::secrets::SecretText;
use url::Url;

use crate::bucket::{Bucket, Existing, found};
use crate::wire::{self, Answer, Call, Fault, Telling};

/// Where Google answers.
const ENDPOINT: &str = "https://storage.googleapis.com";

/// Where the objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcsPlace {
    /// The bucket, which must exist.
    pub bucket: String,
    /// What all keys begin with; `None` is the whole bucket.
    pub prefix: Option<String>,
    /// Where the service answers, if not at `https://storage.googleapis.com`. Its host is called with the credentials:
    /// check it first. Signed addresses name Google's own host all the same, so only what passes that on can be asked for
    /// them.
    pub endpoint: Option<String>,
}

/// What opens it.
#[derive(Clone, Debug)]
pub enum GcsAccess {
    /// The key file of a service account, JSON. Only who it is and its private key are taken from it: no address, so
    /// nothing in a file decides who is called.
    ServiceAccountKey(SecretText),
}

/// One bucket, or what is below a prefix in it.
#[derive(Clone)]
pub struct GcsStore {
    bucket: Bucket<GoogleCloudStorage>,
    client: HttpClient,
    endpoint: Url,
}

impl std::fmt::Debug for GcsStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GcsStore")
            .field("bucket", &self.bucket.name)
            .field("prefix", &self.bucket.prefix.as_str())
            .finish_non_exhaustive()
    }
}

impl GcsStore {
    /// Makes the store without calling anybody. [`BlobError::Refused`] says what of place or access cannot be right.
    pub fn open(place: &GcsPlace, access: &GcsAccess) -> Result<Self, BlobError> {
        check_name(&place.bucket)?;
        let prefix = BlobPrefix::new(place.prefix.as_deref())?;
        let base = place.endpoint.as_deref().unwrap_or(ENDPOINT).trim_end_matches('/');
        let endpoint = Url::parse(base)
            .ok()
            .filter(|url| {
                matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none()
            })
            .ok_or_else(|| BlobError::Refused("the endpoint is no address".into()))?;
        let GcsAccess::ServiceAccountKey(key) = access;

        let options = wire::options([base]);
        let client = Telling.connect(&options).map_err(|error| unusable(&error))?;
        let objects = GoogleCloudStorageBuilder::new()
            .with_bucket_name(&place.bucket)
            .with_base_url(base)
            .with_service_account_key(key::only_the_key(key)?.expose())
            .with_client_options(options)
            .with_http_connector(Telling)
            .with_retry(wire::retries())
            .build()
            .map_err(|error| unusable(&error))?;
        let bucket = Bucket { objects, name: place.bucket.clone(), prefix };
        Ok(Self { bucket, client, endpoint })
    }

    /// What the service's own API calls something, below its address.
    fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        url.path_segments_mut().expect("http has paths").pop_if_empty().extend(segments);
        url
    }

    /// Where an object is sent to that nothing may have the name of.
    fn upload_url(&self, key: &str, kind: &str) -> Result<Url, BlobError> {
        let full = self.bucket.full(key)?;
        let mut url = self.url(&["upload", "storage", "v1", "b", &self.bucket.name, "o"]);
        let mut query = url.query_pairs_mut();
        query
            .append_pair("uploadType", kind)
            .append_pair("name", &full)
            .append_pair("ifGenerationMatch", "0");
        drop(query);
        Ok(url)
    }

    /// Writes if nothing has the key; a [`BlobError::Conflict`] may be our own earlier success.
    async fn create(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        let call = Call::new(Method::POST, self.upload_url(key, "media")?);
        let ended = self.send(&call.header("content-type", content_type).body(bytes)).await.map(drop);
        self.written(ended.map_err(|fault| fault.into_blob(&self.bucket.name, key))).await
    }

    async fn token(&self) -> Result<SecretText, Fault> {
        let credential = self.bucket.objects.credentials().get_credential().await;
        let credential = credential.map_err(|error| Fault::of(&error))?;
        Ok(SecretText::new(format!("Bearer {}", credential.bearer)))
    }

    /// A call of our own, tried as often as those of `object_store`.
    async fn send(&self, call: &Call) -> Result<Answer, Fault> {
        let mut tries = 1;
        loop {
            let call = call.clone().header("authorization", self.token().await?.expose());
            match wire::once(&self.client, call.request()?).await {
                Err(fault) if fault.passes() && tries < wire::TRIES => wire::pause(tries).await,
                ended => return ended,
            }
            tries += 1;
        }
    }
}

#[async_trait]
impl Existing for GcsStore {
    async fn require(&self) -> Result<(), BlobError> {
        let mut url = self.url(&["storage", "v1", "b", &self.bucket.name, "o"]);
        let prefix = self.bucket.prefix.as_str().unwrap_or_default();
        url.query_pairs_mut().append_pair("maxResults", "1").append_pair("prefix", prefix);
        match self.send(&Call::new(Method::GET, url)).await {
            Ok(_) => Ok(()),
            Err(fault) => match fault.into_blob(&self.bucket.name, "") {
                BlobError::NotFound(_) => Err(self.bucket.missing()),
                other => Err(other),
            },
        }
    }
}

/// Names stand in addresses.
fn check_name(name: &str) -> Result<(), BlobError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    if (3..=222).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.') {
        return Ok(());
    }
    Err(BlobError::Refused(format!("{name:?} is no name of a bucket")))
}

/// Texts of `object_store` may contain what it was given.
fn unusable(_: &object_store::Error) -> BlobError {
    BlobError::Refused("the key of the service account cannot be used".into())
}

#[async_trait]
impl BlobStore for GcsStore {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        match self.create(key, bytes.clone(), content_type).await {
            Err(conflict @ BlobError::Conflict(_)) => {
                settle(self, key, bytes.len() as u64, Sha256Digest::of(&bytes), conflict).await
            }
            ended => ended,
        }
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        self.sure(self.bucket.read(key, None).await).await
    }

    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        self.sure(self.bucket.read_part(key, part).await).await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        found(self.sure(self.bucket.head(key).await).await)
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let full = self.bucket.full(key)?;
        let url = self.url(&["storage", "v1", "b", &self.bucket.name, "o", &full]);
        let ended = self.send(&Call::new(Method::DELETE, url)).await.map(drop);
        self.deleted(ended.map_err(|fault| fault.into_blob(&self.bucket.name, key))).await
    }

    async fn begin_parts(&self, key: &str, content_type: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        self.bucket.full(key)?;
        Ok(Box::new(parts::Parts::begin(self.clone(), key, content_type)))
    }

    async fn presign_put(&self, key: &str, _: &UploadTerms, _: Duration) -> Result<Presigned, BlobError> {
        self.bucket.full(key)?;
        Err(self.bucket.no_uploads())
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        self.bucket.presign_get(key, age).await
    }
}
