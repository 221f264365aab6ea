//! Signing tokens of our own issuer: RSA, PKCS #1 v1.5 with SHA-256, as RS256 says.

use std::sync::Arc;

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
use plumbline_core::issuer_keys::RsaPublicKey;
use plumbline_core::ports::{SignerError, TokenSigner};
use tokio::sync::OnceCell;

use crate::client::Client;
use crate::{SetupError, ask_public_key, ask_signature, client_of_process};

/// How signatures are asked for.
const ALGORITHM: &str = "RSASSA_PKCS1_V1_5_SHA_256";

/// Signs tokens with one key of KMS.
#[derive(Clone, Debug)]
pub struct KmsTokenSigner {
    client: Arc<Client>,
    key: Arc<str>,
    /// Asked once: the public half of a key does not change.
    public_key: Arc<OnceCell<RsaPublicKey>>,
}

impl KmsTokenSigner {
    /// A signer with a key (its id or ARN) in a region. `endpoint` is another address of the service.
    pub fn new(
        key: &str,
        region: &str,
        endpoint: Option<&str>,
        credentials: SharedCredentialsProvider,
    ) -> Result<Self, SetupError> {
        Ok(Self::with(Client::new(region, endpoint, credentials)?, key))
    }

    /// A signer with region and credentials of this process.
    pub async fn from_environment(key: &str, endpoint: Option<&str>) -> Result<Self, SetupError> {
        Ok(Self::with(client_of_process(endpoint).await?, key))
    }

    fn with(client: Client, key: &str) -> Self {
        Self { client: Arc::new(client), key: key.into(), public_key: Arc::default() }
    }

    async fn ask(&self) -> Result<RsaPublicKey, SignerError> {
        let unfit =
            || SignerError::Refused("the key is not an RSA key of 2,048 bits or more for signing".into());
        let spki = ask_public_key(&self.client, &self.key).await?.ok_or_else(unfit)?;
        RsaPublicKey::from_spki(&spki).map_err(|_| unfit())
    }
}

#[async_trait]
impl TokenSigner for KmsTokenSigner {
    async fn public_key(&self) -> Result<RsaPublicKey, SignerError> {
        self.public_key.get_or_try_init(|| self.ask()).await.cloned()
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        ask_signature(&self.client, &self.key, ALGORITHM, message).await
    }
}
