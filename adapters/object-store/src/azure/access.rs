//! Who we are to Azure: keys, and tokens of its directory.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::azure::AzureAccessKey;
use object_store::azure::{AzureCredential, AzureCredentialProvider, MicrosoftAzureBuilder};
use object_store::{CredentialProvider, StaticCredentialProvider};
use plumbline_core::ports::BlobError;

use super::{AzureAccess, AzurePlace, unusable};
use crate::wire::{self, Fault, Telling};

pub(super) fn credentials(
    place: &AzurePlace,
    access: &AzureAccess,
) -> Result<AzureCredentialProvider, BlobError> {
    let (tenant_id, client_id, client_secret, directory) = match access {
        AzureAccess::AccountKey(key) => {
            let key = AzureAccessKey::try_new(key.expose())
                .map_err(|_| BlobError::Refused("the key of the storage account is no base64".into()))?;
            return Ok(Arc::new(StaticCredentialProvider::new(AzureCredential::AccessKey(key))));
        }
        AzureAccess::ClientSecret { tenant_id, client_id, client_secret, directory_endpoint } => {
            (tenant_id, client_id, client_secret, directory_endpoint)
        }
    };
    // It stands in the address of the directory.
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
    if tenant_id.is_empty() || !tenant_id.bytes().all(plain) {
        return Err(BlobError::Refused(format!("{tenant_id:?} is no id of a directory")));
    }
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(&place.account)
        .with_container_name(&place.container)
        .with_client_secret_authorization(client_id, client_secret.expose(), tenant_id)
        .with_client_options(wire::options(directory.as_deref()))
        .with_http_connector(Telling)
        .with_retry(wire::retries());
    if let Some(directory) = directory {
        builder = builder.with_authority_host(directory.trim_end_matches('/'));
    }
    let store = builder.build().map_err(|error| unusable(&error))?;
    Ok(Arc::new(Directory(Arc::clone(store.credentials()))))
}

/// Tokens, and the directory's refusals as such: none of them says anything about a blob.
struct Directory(AzureCredentialProvider);

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Directory(..)")
    }
}

#[async_trait]
impl CredentialProvider for Directory {
    type Credential = AzureCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AzureCredential>> {
        self.0.get_credential().await.map_err(|error| object_store::Error::Generic {
            store: "the directory",
            source: Box::new(Fault::of(&error).of_the_directory()),
        })
    }
}
