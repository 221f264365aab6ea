//! Making keys and signing with them. Only in the function that was given the key of the domain `issuer`.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use getrandom::SysRng;
use ring::rsa::PublicKeyComponents;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rsa::PrivateKey;
use rsa::pkcs8::EncodePrivateKey as _;
use serde::Serialize;
use serde_json::json;
use zeroize::Zeroizing;

use super::service::record;
use super::store::{self, NewKey, StoredKey};
use super::{IssuerError, RsaPublicKey};
use crate::Deps;
use crate::access::Actor;
use crate::audit::Action;
use crate::ids::IssuerKeyId;
use crate::ports::{SignerError, TokenSigner};
use crate::secrets::{Domain, Place, SecretText};

const KEY_BITS: usize = 2048;

/// The key that signs. Makes what is missing: the first key, and the next one, which is to be published long before it
/// signs.
pub(super) async fn signing_key(deps: &Deps) -> Result<StoredKey, IssuerError> {
    let (signing, has_next) = {
        let conn = deps.db.conn().await?;
        (store::find_signing(&conn).await?, store::has_next(&conn).await?)
    };
    if !has_next || signing.is_none() {
        make_missing(deps, signing.is_none()).await?;
    }
    match signing {
        Some(key) => Ok(key),
        None => {
            let found = store::find_signing(&deps.db.conn().await?).await?;
            found.ok_or(IssuerError::Unusable(
                "every key of PLUMBLINE_ISSUER_KMS_KEYS has signed already: name another one",
            ))
        }
    }
}

async fn make_missing(deps: &Deps, signing_too: bool) -> Result<(), IssuerError> {
    let mut keys = if deps.issuer_signers.is_empty() {
        let mut keys = vec![fresh(deps).await?];
        if signing_too {
            keys.push(fresh(deps).await?);
        }
        keys
    } else {
        unused(deps, if signing_too { 2 } else { 1 }).await?
    };
    // The first in its order signs first.
    keys.reverse();
    deps.db
        .transaction(async |tx| {
            // Of several at once one makes them, the others wait for it here and find them.
            for signs in [signing_too.then_some(true), Some(false)].into_iter().flatten() {
                let Some(key) = keys.pop() else { continue };
                if store::insert(tx, &key, signs).await? {
                    let details = json!({ "signs": signs, "kms_key": key.kms_key });
                    record(tx, Actor::System, Action::IssuerKeyCreate, key.id, details).await?;
                }
            }
            Ok(())
        })
        .await
}

async fn fresh(deps: &Deps) -> Result<NewKey, IssuerError> {
    let made = tokio::task::spawn_blocking(|| -> Option<_> {
        let key = PrivateKey::new(&mut SysRng, KEY_BITS).ok()?;
        let der = key.to_pkcs8_der().ok()?;
        Some((SecretText::new(STANDARD.encode(der.as_bytes())), RsaPublicKey::of(&key)))
    })
    .await;
    let (private, public) =
        made.ok().flatten().ok_or(IssuerError::Unusable("this machine gives no randomness"))?;
    let id: IssuerKeyId = deps.ids.mint();
    let private_sealed = Some(deps.keys.seal(Domain::Issuer, place(id), &private)?);
    Ok(NewKey { id, public, private_sealed, kms_key: None })
}

/// The next keys of the KMS that have never been published here, in their order.
async fn unused(deps: &Deps, count: usize) -> Result<Vec<NewKey>, IssuerError> {
    let used = store::kms_keys(&deps.db.conn().await?).await?;
    let mut keys = Vec::new();
    for named in deps.issuer_signers.iter().filter(|named| !used.contains(&named.name)).take(count) {
        let public = named.signer.public_key().await?;
        let kms_key = Some(named.name.clone());
        keys.push(NewKey { id: deps.ids.mint(), public, private_sealed: None, kms_key });
    }
    Ok(keys)
}

fn place(id: IssuerKeyId) -> Place {
    Place { table: "issuer_keys", column: "private_sealed", row: id.into() }
}

#[derive(Serialize)]
struct Header {
    alg: &'static str,
    typ: &'static str,
    kid: IssuerKeyId,
}

/// A signed token with these claims.
pub(super) async fn sign(
    deps: &Deps,
    key: &StoredKey,
    claims: &impl Serialize,
) -> Result<String, IssuerError> {
    let header = Header { alg: "RS256", typ: "JWT", kid: key.id };
    let part = |json: Result<Vec<u8>, serde_json::Error>| {
        json.map(|json| URL_SAFE_NO_PAD.encode(json))
            .map_err(|_| IssuerError::Unusable("a token cannot be written"))
    };
    let message = [part(serde_json::to_vec(&header))?, part(serde_json::to_vec(claims))?].join(".");
    let signature = signer(deps, key)?.sign(message.as_bytes()).await?;
    Ok([message, URL_SAFE_NO_PAD.encode(signature)].join("."))
}

/// Who signs with the key.
fn signer(deps: &Deps, key: &StoredKey) -> Result<Arc<dyn TokenSigner>, IssuerError> {
    if let Some(name) = &key.kms_key {
        let named = deps.issuer_signers.iter().find(|named| named.name == *name);
        let gone = IssuerError::Unusable("it is one of a KMS that PLUMBLINE_ISSUER_KMS_KEYS does not name");
        return named.map(|named| Arc::clone(&named.signer)).ok_or(gone);
    }
    // It was replaced a moment ago: asked again, another one signs.
    let sealed = key.private_sealed.as_deref().ok_or(IssuerError::Unusable("it has just been retired"))?;
    let text = deps.keys.open(Domain::Issuer, place(key.id), sealed)?;
    let opened = STANDARD.decode(text.as_bytes()).map(Zeroizing::new).ok();
    let signer = opened.and_then(|der| LocalTokenSigner::from_pkcs8(&der));
    Ok(Arc::new(signer.ok_or(IssuerError::Unusable("what is sealed of it is no RSA key"))?))
}

/// Signs with a key of this process.
pub struct LocalTokenSigner {
    pair: RsaKeyPair,
}

impl std::fmt::Debug for LocalTokenSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalTokenSigner").field("public_key", &self.public()).finish_non_exhaustive()
    }
}

impl LocalTokenSigner {
    /// From a private key in DER (PKCS #8); `None` if it is none.
    pub fn from_pkcs8(der: &[u8]) -> Option<Self> {
        RsaKeyPair::from_pkcs8(der).ok().map(|pair| Self { pair })
    }

    fn public(&self) -> RsaPublicKey {
        let parts: PublicKeyComponents<Vec<u8>> = self.pair.public().into();
        RsaPublicKey { modulus: URL_SAFE_NO_PAD.encode(parts.n), exponent: URL_SAFE_NO_PAD.encode(parts.e) }
    }
}

#[async_trait]
impl TokenSigner for LocalTokenSigner {
    async fn public_key(&self) -> Result<RsaPublicKey, SignerError> {
        Ok(self.public())
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        let mut signature = vec![0; self.pair.public().modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &ring::rand::SystemRandom::new(), message, &mut signature)
            .map_err(|_| SignerError::Refused("the key does not sign".into()))?;
        Ok(signature)
    }
}
