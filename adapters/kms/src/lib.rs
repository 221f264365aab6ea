//! Signing with asymmetric keys of AWS KMS, which never leave the service: audit checkpoints with ECDSA on the curve P-256,
//! tokens of our own issuer with RSA.
//!
//! Two calls, `GetPublicKey` and `Sign`, put together here and signed with AWS's own signer: the service's SDK would be the
//! largest crate of the workspace for them. Digests are sent, not messages, for KMS takes 4,096 bytes of those.

mod answers;
mod client;
mod key;
mod tokens;

use async_trait::async_trait;
use aws_config::BehaviorVersion;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use plumbline_core::audit::{PublicKey, SignatureAlgorithm};
use plumbline_core::ports::{CheckpointSigner, SignerError};

use client::Client;
pub use client::EndpointError;
use key::Key;
pub use tokens::KmsTokenSigner;

/// How signatures are asked for.
const ALGORITHM: &str = "ECDSA_SHA_256";

/// Why there is no signer.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The endpoint cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Nothing says in which region the key is.
    #[error("AWS_REGION is not set")]
    Region,
    /// Nothing says who we are.
    #[error("there are no credentials of AWS")]
    Credentials,
}

/// Signs checkpoints with one key of KMS.
#[derive(Clone, Debug)]
pub struct KmsSigner(Key<PublicKey>);

impl KmsSigner {
    /// A signer with a key (its id or ARN) in a region. `endpoint` is another address of the service.
    pub fn new(
        key: &str,
        region: &str,
        endpoint: Option<&str>,
        credentials: SharedCredentialsProvider,
    ) -> Result<Self, SetupError> {
        Ok(Self(Key::of(Client::new(region, endpoint, credentials)?, key)))
    }

    /// A signer with region and credentials of this process.
    pub async fn from_environment(key: &str, endpoint: Option<&str>) -> Result<Self, SetupError> {
        Ok(Self(Key::of(client_of_process(endpoint).await?, key)))
    }
}

#[async_trait]
impl CheckpointSigner for KmsSigner {
    async fn public_key(&self) -> Result<PublicKey, SignerError> {
        let read = |spki: &[u8]| {
            let key = PublicKey::from_spki(spki).ok()?;
            (key.algorithm() == SignatureAlgorithm::EcdsaP256Sha256).then_some(key)
        };
        self.0.public(read, "the key is not an ECC_NIST_P256 key for signing").await
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        self.0.sign(ALGORITHM, message).await
    }
}

/// A client with region and credentials of this process.
async fn client_of_process(endpoint: Option<&str>) -> Result<Client, SetupError> {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let shared = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
    let region = shared.region().ok_or(SetupError::Region)?;
    let credentials = shared.credentials_provider().ok_or(SetupError::Credentials)?;
    Ok(Client::new(region.as_ref(), endpoint.or(shared.endpoint_url()), credentials)?)
}
