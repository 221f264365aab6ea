//! Signing tokens of our own issuer: RSA, PKCS #1 v1.5 with SHA-256, as RS256 says.

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
use plumbline_core::issuer_keys::RsaPublicKey;
use plumbline_core::ports::{SignerError, TokenSigner};

use crate::client::Client;
use crate::key::Key;
use crate::{SetupError, client_of_process};

/// How signatures are asked for.
const ALGORITHM: &str = "RSASSA_PKCS1_V1_5_SHA_256";

/// Signs tokens with one key of KMS.
#[derive(Clone, Debug)]
pub struct KmsTokenSigner(Key<RsaPublicKey>);

impl KmsTokenSigner {
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
impl TokenSigner for KmsTokenSigner {
    async fn public_key(&self) -> Result<RsaPublicKey, SignerError> {
        let read = |spki: &[u8]| RsaPublicKey::from_spki(spki).ok();
        self.0.public(read, "the key is not an RSA key of 2,048 bits or more for signing").await
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        self.0.sign(ALGORITHM, message).await
    }
}
