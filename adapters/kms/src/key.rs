//! One key of KMS: its public half, and signatures by it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::SignerError;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::answers::{KeyAnswer, SignAnswer};
use crate::client::Client;

/// A key whose public half is a `P`.
#[derive(Clone, Debug)]
pub(crate) struct Key<P> {
    client: Arc<Client>,
    id: Arc<str>,
    /// Asked once: the public half of a key does not change.
    public: Arc<OnceCell<P>>,
}

impl<P: Clone> Key<P> {
    pub(crate) fn of(client: Client, id: &str) -> Self {
        Self { client: Arc::new(client), id: id.into(), public: Arc::default() }
    }

    /// The public half, as `read` finds it in a SubjectPublicKeyInfo; `unfit` is said of a key that is none of the kind.
    pub(crate) async fn public(
        &self,
        read: impl Fn(&[u8]) -> Option<P>,
        unfit: &str,
    ) -> Result<P, SignerError> {
        let ask = async || {
            let answer: KeyAnswer = self.client.call("GetPublicKey", &json!({ "KeyId": &*self.id })).await?;
            let is_for_signing = answer.key_usage.as_deref() == Some("SIGN_VERIFY");
            let spki = STANDARD.decode(answer.public_key).ok().filter(|_| is_for_signing);
            spki.and_then(|spki| read(&spki)).ok_or_else(|| SignerError::Refused(unfit.into()))
        };
        self.public.get_or_try_init(ask).await.cloned()
    }

    pub(crate) async fn sign(&self, algorithm: &str, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        let digest = STANDARD.encode(Sha256Digest::of(message).0);
        let request = json!({
            "KeyId": &*self.id, "Message": digest, "MessageType": "DIGEST", "SigningAlgorithm": algorithm,
        });
        let answer: SignAnswer = self.client.call("Sign", &request).await?;
        STANDARD
            .decode(answer.signature)
            .map_err(|_| SignerError::Unavailable("the answer of KMS cannot be read".into()))
    }
}
