//! Signing with asymmetric keys of AWS KMS, which never leave the service: audit checkpoints with ECDSA on the curve P-256,
//! tokens of our own issuer with RSA.
//!
//! Two calls, `GetPublicKey` and `Sign`, put together here and signed with AWS's own signer: the service's SDK would be the
//! largest crate of the workspace for them. Digests are sent, not messages, for KMS takes 4,096 bytes of those.

mod answers;
mod client;
mod tokens;

use std::sync::Arc;

use async_trait::async_trait;
use aws_config::BehaviorVersion;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumbline_core::audit::{PublicKey, SignatureAlgorithm};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{CheckpointSigner, SignerError};
use serde_json::json;
use tokio::sync::OnceCell;

use answers::{KeyAnswer, SignAnswer};
use client::Client;
pub use client::EndpointError;
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
pub struct KmsSigner {
    client: Arc<Client>,
    key: Arc<str>,
    /// Asked once: the public half of a key does not change.
    public_key: Arc<OnceCell<PublicKey>>,
}

impl KmsSigner {
    /// A signer with a key (its id or ARN) in a region. `endpoint` is another address of the service.
    pub fn new(
        key: &str,
        region: &str,
        endpoint: Option<&str>,
        credentials: SharedCredentialsProvider,
    ) -> Result<Self, SetupError> {
        let client = Arc::new(Client::new(region, endpoint, credentials)?);
        Ok(Self { client, key: key.into(), public_key: Arc::default() })
    }

    /// A signer with region and credentials of this process.
    pub async fn from_environment(key: &str, endpoint: Option<&str>) -> Result<Self, SetupError> {
        let client = Arc::new(client_of_process(endpoint).await?);
        Ok(Self { client, key: key.into(), public_key: Arc::default() })
    }

    async fn ask_public_key(&self) -> Result<PublicKey, SignerError> {
        let unfit = || SignerError::Refused("the key is not an ECC_NIST_P256 key for signing".into());
        let spki = ask_public_key(&self.client, &self.key).await?.ok_or_else(unfit)?;
        let key = PublicKey::from_spki(&spki).map_err(|_| unfit())?;
        if key.algorithm() == SignatureAlgorithm::EcdsaP256Sha256 { Ok(key) } else { Err(unfit()) }
    }
}

#[async_trait]
impl CheckpointSigner for KmsSigner {
    async fn public_key(&self) -> Result<PublicKey, SignerError> {
        self.public_key.get_or_try_init(|| self.ask_public_key()).await.cloned()
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        ask_signature(&self.client, &self.key, ALGORITHM, message).await
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

/// The SubjectPublicKeyInfo of a key; `None` if it is not for signing.
async fn ask_public_key(client: &Client, key: &str) -> Result<Option<Vec<u8>>, SignerError> {
    let answer: KeyAnswer = client.call("GetPublicKey", &json!({ "KeyId": key })).await?;
    if answer.key_usage.as_deref() != Some("SIGN_VERIFY") {
        return Ok(None);
    }
    Ok(STANDARD.decode(answer.public_key).ok())
}

async fn ask_signature(
    client: &Client,
    key: &str,
    algorithm: &str,
    message: &[u8],
) -> Result<Vec<u8>, SignerError> {
    let digest = STANDARD.encode(Sha256Digest::of(message).0);
    let request =
        json!({ "KeyId": key, "Message": digest, "MessageType": "DIGEST", "SigningAlgorithm": algorithm });
    let answer: SignAnswer = client.call("Sign", &request).await?;
    STANDARD
        .decode(answer.signature)
        .map_err(|_| SignerError::Unavailable("the answer of KMS cannot be read".into()))
}
