//! Azure Blob Storage: one container of one storage account.

mod access;
mod parts;

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use object_store::azure::{AzureAuthorizer, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector as _};
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::{Attribute, ObjectStore as _, PutMode, PutOptions};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{BlobError, BlobHead, BlobPrefix, BlobStore, PartWriter, UploadTerms, settle};
use plumbline_core::protocol::Presigned;
use plumbline_core::secrets::SecretText;
use url::Url;

use crate::bucket::{Bucket, Existing, found};
use crate::wire::{self, Answer, Call, Fault, Telling};

/// Where the objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AzurePlace {
    /// The storage account.
    pub account: String,
    /// The container, which must exist.
    pub container: String,
    /// What all keys begin with; `None` is the whole container.
    pub prefix: Option<String>,
    /// Where the account answers, if not at `https://{account}.blob.core.windows.net`: another cloud of Azure's, or a
    /// stand-in such as `http://127.0.0.1:10000/{account}`. Its host is called with the credentials: check it first.
    pub endpoint: Option<String>,
}

/// What opens it.
#[derive(Clone, Debug)]
pub enum AzureAccess {
    /// A service principal. Its SAS URLs are signed with a user delegation key.
    ClientSecret {
        /// The directory's id or domain.
        tenant_id: String,
        /// The application's id.
        client_id: String,
        /// A client secret of the application.
        client_secret: SecretText,
        /// Where tokens come from, if not from `https://login.microsoftonline.com`.
        directory_endpoint: Option<String>,
    },
    /// One of the storage account's two keys, in base64. It opens the whole account.
    AccountKey(SecretText),
}

/// One container, or what is below a prefix in it.
#[derive(Clone)]
pub struct AzureStore {
    bucket: Bucket<MicrosoftAzure>,
    client: HttpClient,
    account: String,
    /// The container's address.
    container: Url,
}

impl std::fmt::Debug for AzureStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AzureStore")
            .field("container", &self.container.as_str())
            .field("prefix", &self.bucket.prefix.as_str())
            .finish_non_exhaustive()
    }
}

impl AzureStore {
    /// Makes the store without calling anybody. [`BlobError::Refused`] says what of place or access cannot be right.
    pub fn open(place: &AzurePlace, access: &AzureAccess) -> Result<Self, BlobError> {
        check_name("storage account", &place.account)?;
        check_name("container", &place.container)?;
        let prefix = BlobPrefix::new(place.prefix.as_deref())?;
        let endpoint = match &place.endpoint {
            Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
            None => format!("https://{}.blob.core.windows.net", place.account),
        };
        let container = Url::parse(&format!("{endpoint}/{}/", place.container))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.query().is_none())
            .ok_or_else(|| BlobError::Refused("the endpoint is no address".into()))?;

        let options = wire::options([endpoint.as_str()]);
        let client = Telling.connect(&options).map_err(|error| unusable(&error))?;
        let objects = MicrosoftAzureBuilder::new()
            .with_account(&place.account)
            .with_container_name(&place.container)
            .with_endpoint(endpoint)
            .with_credentials(access::credentials(place, access)?)
            .with_client_options(options)
            .with_http_connector(Telling)
            .with_retry(wire::retries())
            .build()
            .map_err(|error| unusable(&error))?;
        let name = format!("{}/{}", place.account, place.container);
        let bucket = Bucket { objects, name, prefix };
        Ok(Self { bucket, client, account: place.account.clone(), container })
    }

    fn url(&self, key: &str) -> Result<Url, BlobError> {
        let full = self.bucket.full(key)?;
        self.container.join(&full).map_err(|_| BlobError::Refused(format!("{key:?} is not a key")))
    }

    /// Writes if nothing has the key; a [`BlobError::Conflict`] may be our own earlier success.
    async fn create(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        let path = self.bucket.path(key)?;
        let mut options = PutOptions::from(PutMode::Create);
        options.attributes.insert(Attribute::ContentType, content_type.to_owned().into());
        let ended = self.bucket.objects.put_opts(&path, bytes.into(), options).await.map(drop);
        self.written(ended.map_err(|error| self.bucket.fault(key, &error))).await
    }

    /// A call of our own, tried as often as those of `object_store`.
    async fn send(&self, call: &Call) -> Result<Answer, Fault> {
        let mut tries = 1;
        loop {
            match self.send_once(call).await {
                Err(fault) if fault.passes() && tries < wire::TRIES => wire::pause(tries).await,
                ended => return ended,
            }
            tries += 1;
        }
    }

    async fn send_once(&self, call: &Call) -> Result<Answer, Fault> {
        let credential = self.bucket.objects.credentials().get_credential().await;
        let credential = credential.map_err(|error| Fault::of(&error))?;
        let mut request = call.request()?;
        AzureAuthorizer::new(&credential, &self.account)
            .try_authorize(&mut request)
            .map_err(|error| Fault::of(&error))?;
        wire::once(&self.client, request).await
    }
}

#[async_trait]
impl Existing for AzureStore {
    async fn require(&self) -> Result<(), BlobError> {
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        match self.bucket.objects.list_paginated(self.bucket.prefix.as_str(), options).await {
            Ok(_) => Ok(()),
            Err(error) => match self.bucket.fault("", &error) {
                BlobError::NotFound(_) => Err(self.bucket.missing()),
                other => Err(other),
            },
        }
    }
}

/// Names stand in addresses.
fn check_name(what: &str, name: &str) -> Result<(), BlobError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if (3..=63).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    Err(BlobError::Refused(format!("{name:?} is no name of a {what}")))
}

/// Texts of `object_store` may contain what it was given.
fn unusable(_: &object_store::Error) -> BlobError {
    BlobError::Refused("the access to Azure cannot be used".into())
}

#[async_trait]
impl BlobStore for AzureStore {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        match self.create(key, bytes.clone(), content_type).await {
            // Blocks that somebody left may stand for a blob that is not there: their list is what replaces them.
            Err(BlobError::Conflict(_)) if self.head(key).await?.is_none() => {
                parts::Parts::begin(self.clone(), key, content_type).in_one_block(bytes).await
            }
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
        let call = Call::new(Method::DELETE, self.url(key)?);
        let ended = self.send(&call).await.map(drop);
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
