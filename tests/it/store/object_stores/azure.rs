//! Azure: a stand-in of our own with a service principal, and azurite where it is installed, with the account's key.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::HttpRequestBody;
use plumbline_core::ports::BlobStore;
use plumbline_core::secrets::SecretText;
use plumbline_object_store::{AzureAccess, AzurePlace, AzureStore};

use super::fake_azure::{ACCOUNT, FakeAzure, SECRET, TENANT};
use super::{BUCKET, Program, Store};

/// The account and key that azurite has unless it is told otherwise: published, and no secret.
const AZURITE_ACCOUNT: &str = "devstoreaccount1";
const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

pub async fn fake() -> Store {
    let azure = FakeAzure::start().await;
    Store::remote("fake Azure", &azure.url, Some("states"), with_principal).await.signing_no_uploads()
}

pub async fn azurite() -> Option<Store> {
    let (server, url) = Program::start("PLUMBLINE_TEST_AZURITE", |port| {
        let port = port.to_string();
        let told = ["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence"];
        let place = ["--blobHost", "127.0.0.1", "--blobPort", &port];
        told.into_iter().chain(place).map(str::to_owned).collect()
    })
    .await?;
    make_container(&url).await;
    let store = Store::remote("azurite", &url, None, with_account_key).await;
    Some(store.signing_no_uploads().keeping(server))
}

async fn make_container(url: &str) {
    let address = format!("{url}/{AZURITE_ACCOUNT}/{BUCKET}?restype=container");
    let mut request = Request::new(HttpRequestBody::empty());
    *request.method_mut() = Method::PUT;
    *request.uri_mut() = address.parse().unwrap();
    request.headers_mut().insert("content-length", 0.into());
    let key = AzureCredential::AccessKey(AzureAccessKey::try_new(AZURITE_KEY).unwrap());
    AzureAuthorizer::new(&key, AZURITE_ACCOUNT).try_authorize(&mut request).unwrap();
    let call = reqwest::Client::new().put(address).headers(request.headers().clone());
    let made = call.send().await.unwrap();
    assert!(made.status().is_success(), "azurite has no container: {}", made.text().await.unwrap());
}

fn place(account: &str, url: &str, container: &str, prefix: Option<&str>) -> AzurePlace {
    AzurePlace {
        account: account.to_owned(),
        container: container.to_owned(),
        prefix: prefix.map(str::to_owned),
        endpoint: Some(format!("{url}/{account}")),
    }
}

fn with_principal(url: &str, container: &str, prefix: Option<&str>, is_right: bool) -> Arc<dyn BlobStore> {
    let access = AzureAccess::ClientSecret {
        tenant_id: TENANT.into(),
        client_id: "the-application".into(),
        client_secret: SecretText::new(if is_right { SECRET } else { "hunter2-another" }),
        directory_endpoint: Some(url.to_owned()),
    };
    Arc::new(AzureStore::open(&place(ACCOUNT, url, container, prefix), &access).unwrap())
}

fn with_account_key(url: &str, container: &str, prefix: Option<&str>, is_right: bool) -> Arc<dyn BlobStore> {
    let key = if is_right { AZURITE_KEY.to_owned() } else { STANDARD.encode("another") };
    let place = place(AZURITE_ACCOUNT, url, container, prefix);
    Arc::new(AzureStore::open(&place, &AzureAccess::AccountKey(key.into())).unwrap())
}
