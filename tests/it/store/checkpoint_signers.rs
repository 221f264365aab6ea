//! Who signs checkpoints: one suite that our own key and a KMS pass alike, and what a change of keys does.

use std::sync::Arc;

use http::StatusCode;
use plumbline_core::audit::{self, LocalSigner, PublicKey, SignatureAlgorithm, SignedCheckpoint};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{CheckpointSigner, SignerError};
use plumbline_core::secrets::{Domain, Keyring};
use plumbline_kms::KmsSigner;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::audit::{auditor, checkpoint, record, verify};
use super::fake_kms::{FakeKms, REGION, credentials, moto_key};
use super::rekeys::{NEXT_ROOT_KEY, both};
use crate::moto;
use crate::plane::{ROOT_KEY, TestPlane};
use plumbline_core::access::Scope;

/// What every signer must do; `other` has another key.
async fn conforms(signer: &dyn CheckpointSigner, again: &dyn CheckpointSigner, other: &dyn CheckpointSigner) {
    let key = signer.public_key().await.unwrap();
    assert_eq!(again.public_key().await.unwrap(), key, "a key stays what it is");
    assert_ne!(other.public_key().await.unwrap().key_id(), key.key_id());
    assert_eq!(PublicKey::parse(&key.to_base64()), Ok(key.clone()), "it can be kept as text");
    let long = vec![b'x'; 100_000];
    for message in [&b""[..], b"a checkpoint", &long] {
        let signature = signer.sign(message).await.unwrap();
        assert!(key.verifies(message, &signature), "{} bytes", message.len());
        assert!(!key.verifies(&[message, b"."].concat(), &signature), "another message");
        assert!(!other.public_key().await.unwrap().verifies(message, &signature), "another key");
        let mut broken = signature.clone();
        *broken.last_mut().unwrap() ^= 1;
        assert!(!key.verifies(message, &broken), "another signature");
        assert!(!key.verifies(message, &[]) && !key.verifies(message, &signature[1..]));
    }
    let at_once = futures::future::join_all((0..20_u8).map(async |n| {
        let signature = signer.sign(&[n]).await.unwrap();
        key.verifies(&[n], &signature)
    }));
    assert!(at_once.await.into_iter().all(|holds| holds));
}

#[tokio::test]
async fn our_own_key_conforms() {
    let (one, other) = (LocalSigner::new(&[1; 32]), LocalSigner::new(&[2; 32]));
    conforms(&one, &LocalSigner::new(&[1; 32]), &other).await;
    assert_eq!(one.public_key().await.unwrap().algorithm(), SignatureAlgorithm::Ed25519);
}

#[tokio::test]
async fn a_key_of_a_kms_conforms() {
    let (kms, other) = (FakeKms::start(1).await, FakeKms::start(2).await);
    conforms(&kms.signer(), &kms.signer(), &other.signer()).await;
    let key = kms.signer().public_key().await.unwrap();
    assert_eq!(key.algorithm(), SignatureAlgorithm::EcdsaP256Sha256);
    let signer = kms.signer();
    let before = kms.asked().len();
    for _ in 0..3 {
        signer.public_key().await.unwrap();
    }
    assert_eq!(kms.asked().len(), before + 1, "the public key is asked for once");
}

#[tokio::test]
async fn moto_takes_the_same_calls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some((_moto, url)) = moto::start().await else { return };
    let spec = "ECC_NIST_P256";
    let (one, other) = (moto_key(&url, spec).await, moto_key(&url, spec).await);
    let signer = |key: &str| KmsSigner::new(key, REGION, Some(&url), credentials()).unwrap();
    let (one, other) = (signer(&one), signer(&other));
    let (key, foreign) = (one.public_key().await.unwrap(), other.public_key().await.unwrap());
    assert_eq!(key.algorithm(), SignatureAlgorithm::EcdsaP256Sha256);
    // It takes a digest for a message, and makes a digest of it.
    let signature = one.sign(b"a checkpoint").await.unwrap();
    let digest = Sha256Digest::of(b"a checkpoint").0;
    assert!(key.verifies(&digest, &signature) && !foreign.verifies(&digest, &signature));
}

#[tokio::test]
async fn a_kms_that_is_away_refuses_or_babbles_signs_nothing() {
    let kms = FakeKms::start(1).await;
    let signer = kms.signer();
    let error = |code: &str| json!({ "__type": code });
    for (status, body, is_refused) in [
        (StatusCode::BAD_REQUEST, error("DisabledException"), true),
        (StatusCode::BAD_REQUEST, error("ThrottlingException"), false),
        (StatusCode::INTERNAL_SERVER_ERROR, error("KMSInternalException"), false),
        (StatusCode::FOUND, json!({}), false),
        (StatusCode::OK, json!({ "Signature": 1 }), false),
        (StatusCode::OK, json!("x".repeat(1 << 20)), false),
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
    let nobody = KmsSigner::new("k", REGION, Some("http://127.0.0.1:9/"), credentials()).unwrap();
    assert!(matches!(nobody.sign(b"x").await, Err(SignerError::Unavailable(_))));
}

/// The newest checkpoint, as an export has it.
async fn newest(plane: &TestPlane) -> SignedCheckpoint {
    let function = plane.as_function(Function::Api);
    audit::service::chains(&function, &auditor(Scope::All), None, None).await.unwrap().checkpoint.unwrap()
}

fn algorithm(checkpoint: &SignedCheckpoint) -> String {
    let body: Value = serde_json::from_str(&checkpoint.body).unwrap();
    body["algorithm"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn checkpoints_of_a_kms_are_verified_and_one_of_another_key_is_not() {
    let kms = FakeKms::start(1).await;
    let mut plane = TestPlane::start().await;
    plane.deps.audit_signer = Some(Arc::new(kms.signer()));
    record(&plane, None, 1).await;
    assert!(checkpoint(&plane).await);
    assert!(!checkpoint(&plane).await, "nothing new");
    assert_eq!(algorithm(&newest(&plane).await), "ecdsa_p256_sha256");
    let found = verify(&plane).await;
    assert!(found.ok, "{found:?}");

    plane.deps.audit_signer = Some(Arc::new(FakeKms::start(2).await.signer()));
    let found = verify(&plane).await;
    let faults = found.checkpoint.unwrap().faults;
    assert!(!found.ok && faults.len() == 1 && faults[0].reason.contains("not trusted"), "{faults:?}");
}

#[tokio::test]
async fn the_signing_key_can_be_replaced_and_what_earlier_keys_signed_stays_vouched_for() {
    let mut plane = TestPlane::start().await;
    record(&plane, None, 1).await;
    assert!(checkpoint(&plane).await);
    let first = newest(&plane).await;

    // Another root key: the first checkpoint under it is made although nothing happened.
    plane.deps.keys = both();
    assert!(verify(&plane).await.ok, "the old key is still known");
    assert!(checkpoint(&plane).await && !checkpoint(&plane).await);
    assert_ne!(newest(&plane).await.key_id, first.key_id);
    plane.deps.keys = Arc::new(Keyring::from_root(NEXT_ROOT_KEY).unwrap());
    assert!(verify(&plane).await.ok, "the new key vouches for what the old one has signed");

    // Then a KMS.
    let kms = FakeKms::start(1).await;
    plane.deps.audit_signer = Some(Arc::new(kms.signer()));
    assert!(checkpoint(&plane).await);
    assert_eq!(algorithm(&newest(&plane).await), "ecdsa_p256_sha256");
    plane.deps.keys = Arc::new(Keyring::from_root("yet another root key, of 32 characters or more").unwrap());
    let found = verify(&plane).await;
    assert!(found.ok, "{found:?}");
    assert_eq!(found.checkpoint.unwrap().sequence, 3);
}

#[tokio::test]
async fn a_checkpoint_names_its_algorithm_and_is_not_taken_for_one_of_another() {
    let plane = TestPlane::start().await;
    record(&plane, None, 1).await;
    assert!(checkpoint(&plane).await);
    let checkpoint = newest(&plane).await;
    assert_eq!(algorithm(&checkpoint), "ed25519");
    let seed = *Keyring::from_root(ROOT_KEY).unwrap().key(Domain::Audit).unwrap();
    let ours = LocalSigner::new(&seed);
    let key = ours.public_key().await.unwrap();
    assert_eq!(checkpoint.signed(std::slice::from_ref(&key)), audit::Signed::ByTrusted);
    // The right key over a body that says another algorithm.
    let body = checkpoint.body.replace("\"ed25519\"", "\"ecdsa_p256_sha256\"");
    use base64::Engine as _;
    let signature =
        base64::engine::general_purpose::STANDARD.encode(ours.sign(body.as_bytes()).await.unwrap());
    let hash = plumbline_core::digest::Sha256Digest::of(body.as_bytes());
    let relabelled = SignedCheckpoint { body, signature, hash, ..checkpoint };
    assert_eq!(relabelled.signed(&[key]), audit::Signed::Falsely);
}
