//! The SDK's client over the one TLS stack of this workspace.

use aws_config::{BehaviorVersion, Region};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{Builder, Credentials, RequestChecksumCalculation, SharedHttpClient};
use aws_smithy_http_client::tls;
use plumbline_core::digest::Sha256Digest;

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
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .http_client(http())
        .endpoint_url(&keys.endpoint)
        .region(Region::new(keys.region.clone()))
        .credentials_provider(credentials)
        .force_path_style(true)
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

/// Whether an ETag is that of an object which came in parts: it ends with how many.
pub(super) fn is_of_parts(e_tag: &str) -> bool {
    let parts = e_tag.trim_matches('"').rsplit_once('-').map(|(_, parts)| parts);
    parts.is_some_and(|parts| !parts.is_empty() && parts.bytes().all(|digit| digit.is_ascii_digit()))
}
