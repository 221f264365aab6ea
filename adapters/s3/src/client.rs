//! The SDK's client over the one TLS stack of this workspace.

use aws_config::{BehaviorVersion, Region};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{Builder, Credentials, RequestChecksumCalculation, SharedHttpClient};
use aws_smithy_http_client::tls;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::secrets::SecretText;

/// Explicit access to a bucket.
#[derive(Clone)]
pub struct Keys {
    /// Where the store answers.
    pub endpoint: String,
    /// The region that signatures name.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// Access key.
    pub access_key_id: String,
    /// Secret key.
    pub secret_access_key: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("endpoint", &self.endpoint)
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

/// Where the objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Place {
    /// The bucket, which must exist.
    pub bucket: String,
    /// The region that it is in.
    pub region: String,
    /// What all keys begin with; `None` is the whole bucket.
    pub prefix: Option<String>,
    /// Where the store answers, if that is not AWS. Its host is called with signatures of the credentials: check it first.
    pub endpoint: Option<String>,
}

/// What opens it.
#[derive(Clone, Debug)]
pub struct S3Credentials {
    /// Access key.
    pub access_key_id: String,
    /// Secret key.
    pub secret_access_key: SecretText,
    /// Of keys that are only lent: they end, and the store must be opened again with others before they do.
    pub session_token: Option<SecretText>,
}

fn http() -> SharedHttpClient {
    let provider = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    aws_smithy_http_client::Builder::new().tls_provider(provider).build_https()
}

/// Names an endpoint of S3 alone. The SDK reads it when it makes the client, so the shared configuration does not say
/// whether it is set.
const S3_ENDPOINT: &str = "AWS_ENDPOINT_URL_S3";

/// A client with credentials, region and endpoint from the environment. An endpoint of its own means paths instead of
/// host names.
pub(super) async fn from_environment() -> Client {
    let shared = aws_config::defaults(BehaviorVersion::latest()).http_client(http()).load().await;
    let own_endpoint = shared.endpoint_url().is_some() || std::env::var_os(S3_ENDPOINT).is_some();
    let config = Builder::from(&shared)
        .force_path_style(own_endpoint)
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .build();
    Client::from_conf(config)
}

/// A client for one endpoint.
pub(super) fn with_keys(keys: &Keys) -> Client {
    let credentials = Credentials::new(&keys.access_key_id, &keys.secret_access_key, None, None, "plumbline");
    with_credentials(credentials, &keys.region, Some(&keys.endpoint))
}

/// A client that takes nothing from the environment. An endpoint of its own means paths instead of host names.
pub(super) fn opened(place: &S3Place, credentials: &S3Credentials) -> Client {
    let credentials = Credentials::new(
        &credentials.access_key_id,
        credentials.secret_access_key.expose(),
        credentials.session_token.as_ref().map(|token| token.expose().to_owned()),
        None,
        "plumbline",
    );
    with_credentials(credentials, &place.region, place.endpoint.as_deref())
}

fn with_credentials(credentials: Credentials, region: &str, endpoint: Option<&str>) -> Client {
    let mut builder = Builder::new();
    builder.set_endpoint_url(endpoint.map(str::to_owned));
    let config = builder
        .behavior_version(BehaviorVersion::latest())
        .http_client(http())
        .region(Region::new(region.to_owned()))
        .credentials_provider(credentials)
        .force_path_style(endpoint.is_some())
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .build();
    Client::from_conf(config)
}

/// How S3 writes digests.
pub(super) fn base64(bytes: &[u8]) -> String {
    aws_smithy_types::base64::encode(bytes)
}

/// A digest as S3 wrote it; `None` if it is that of an object in several parts.
pub(super) fn digest(text: &str) -> Option<Sha256Digest> {
    aws_smithy_types::base64::decode(text).ok().as_deref().and_then(Sha256Digest::from_slice)
}
