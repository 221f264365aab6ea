//! Who signs tokens of our own issuer: one suite that a key of ours and keys of a KMS pass alike. Signatures are checked by
//! a library that is not ours.

use getrandom::SysRng;
use http::StatusCode;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use plumbline_core::issuer_keys::{LocalTokenSigner, RsaPublicKey};
use plumbline_core::ports::{SignerError, TokenSigner};
use plumbline_kms::KmsTokenSigner;
use rsa::PrivateKey;
use rsa::pkcs8::EncodePrivateKey as _;
use serde_json::{Value, json};

use super::fake_kms::{FakeKms, REGION, credentials, moto_key};
use crate::moto;

/// An RSA key of 1,024 bits.
const SHORT: &str = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDjvNaaYgWv8JrMDG+Bl56YWNwem1l0/JPmMpof/TPDeJZVnR8Gmb+e3zigMD3l\
    E+QmoA4KtzW8cWWnguR3fH+H8naZ94EHWMxIBt7DAj7JQwfvGfwtj3cIiKsvreG4KfdgFwySQ3YVhwkAfA6yqJdUiJQ6A0gZMsWp\
    gzwU+oEdhwIDAQAB";

/// Header and claims of a token, as they are signed.
fn message(claims: &Value) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let header = json!({ "alg": "RS256", "typ": "JWT" });
    [&header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".")
}

fn verifies(key: &RsaPublicKey, message: &str, signature: &[u8]) -> bool {
    use base64::Engine as _;
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature);
    let key = DecodingKey::from_rsa_components(&key.modulus, &key.exponent).unwrap();
    let mut validation = Validation::new(Algorithm::RS256);
    validation.validate_exp = false;
    validation.required_spec_claims.clear();
    jsonwebtoken::decode::<Value>(&format!("{message}.{signature}"), &key, &validation).is_ok()
}

/// What every signer must do; `other` has another key.
async fn conforms(signer: &dyn TokenSigner, again: &dyn TokenSigner, other: &dyn TokenSigner) {
    let key = signer.public_key().await.unwrap();
    assert_eq!(again.public_key().await.unwrap(), key, "a key stays what it is");
    let foreign = other.public_key().await.unwrap();
    assert_ne!(foreign, key);
    assert!(key.modulus.len() >= 342 && key.exponent == "AQAB", "{key:?}");
    for claims in [json!({}), json!({ "sub": "x" }), json!({ "long": "x".repeat(100_000) })] {
        let message = message(&claims);
        let signature = signer.sign(message.as_bytes()).await.unwrap();
        assert!(verifies(&key, &message, &signature), "{} bytes", message.len());
        assert!(!verifies(&foreign, &message, &signature), "another key");
        assert!(!verifies(&key, &self::message(&json!({ "sub": "y" })), &signature), "another message");
        let mut broken = signature.clone();
        *broken.last_mut().unwrap() ^= 1;
        assert!(!verifies(&key, &message, &broken), "another signature");
        assert_eq!(again.sign(message.as_bytes()).await.unwrap(), signature, "nothing is left to chance");
    }
    let at_once = futures::future::join_all((0..10_u8).map(async |n| {
        let message = message(&json!({ "sub": n.to_string() }));
        let signature = signer.sign(message.as_bytes()).await.unwrap();
        verifies(&key, &message, &signature)
    }));
    assert!(at_once.await.into_iter().all(|holds| holds));
}

#[tokio::test]
async fn a_key_of_our_own_conforms() {
    let made = || PrivateKey::new(&mut SysRng, 2048).unwrap().to_pkcs8_der().unwrap();
    let (one, other) = (made(), made());
    let signer = |der: &[u8]| LocalTokenSigner::from_pkcs8(der).unwrap();
    let signers = (signer(one.as_bytes()), signer(one.as_bytes()), signer(other.as_bytes()));
    conforms(&signers.0, &signers.1, &signers.2).await;
    assert!(LocalTokenSigner::from_pkcs8(b"no key").is_none());
    assert!(!format!("{:?}", signers.0).contains("prime"), "{:?}", signers.0);
}

#[tokio::test]
async fn a_key_of_a_kms_conforms_and_its_public_half_is_asked_for_once() {
    let kms = FakeKms::start_rsa(2).await;
    conforms(&kms.token_signer(0), &kms.token_signer(0), &kms.token_signer(1)).await;
    let signer = kms.token_signer(0);
    let before = kms.asked().len();
    for _ in 0..3 {
        signer.public_key().await.unwrap();
    }
    assert_eq!(kms.asked().len(), before + 1);
}

#[tokio::test]
async fn moto_takes_the_same_calls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some((_moto, url)) = moto::start().await else { return };
    let signer =
        KmsTokenSigner::new(&moto_key(&url, "RSA_2048").await, REGION, Some(&url), credentials()).unwrap();
    let public = signer.public_key().await.unwrap();
    let signature = signer.sign(b"a token").await.unwrap();
    // It takes a digest for a message, and makes a digest of it.
    use base64::Engine as _;
    let digest = plumbline_core::digest::Sha256Digest::of(b"a token").0;
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature);
    let key = DecodingKey::from_rsa_components(&public.modulus, &public.exponent).unwrap();
    assert!(jsonwebtoken::crypto::verify(&signature, &digest, &key, Algorithm::RS256).unwrap());
}

#[tokio::test]
async fn a_kms_whose_key_is_unfit_or_that_is_away_signs_no_token() {
    let kms = FakeKms::start_rsa(1).await;
    let signer = kms.token_signer(0);
    let error = |code: &str| json!({ "__type": code });
    for (status, body, is_refused) in [
        (StatusCode::BAD_REQUEST, error("DisabledException"), true),
        (StatusCode::BAD_REQUEST, error("ThrottlingException"), false),
        (StatusCode::INTERNAL_SERVER_ERROR, json!({}), false),
        (StatusCode::OK, json!("garbage"), false),
        (StatusCode::OK, json!({ "PublicKey": SHORT, "KeyUsage": "SIGN_VERIFY" }), true),
        (StatusCode::OK, json!({ "PublicKey": "AAAA", "KeyUsage": "SIGN_VERIFY" }), true),
        (StatusCode::OK, json!({ "PublicKey": "AAAA", "KeyUsage": "ENCRYPT_DECRYPT" }), true),
    ] {
        kms.answer(Some((status, body.clone())));
        let answer = signer.public_key().await;
        assert_eq!(matches!(answer, Err(SignerError::Refused(_))), is_refused, "{status} {body}: {answer:?}");
        assert!(answer.is_err());
    }
    kms.answer(None);
    assert!(signer.public_key().await.is_ok(), "a failure is not kept");
    // The key of the checkpoints is none for tokens.
    let other = KmsTokenSigner::new(super::fake_kms::KEY, REGION, Some(&kms.url), credentials()).unwrap();
    assert!(matches!(other.public_key().await, Err(SignerError::Refused(_))));
}
