//! A small KMS: one key on the curve P-256, some RSA keys, two calls. It looks at signatures only as far as that there is one; with
//! `PLUMBLINE_TEST_MOTO` the same calls are also shown to moto.

use std::sync::{Arc, Mutex};

use aws_sdk_ecs::config::{Credentials, SharedCredentialsProvider};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use getrandom::SysRng;
use http::{HeaderMap, StatusCode};
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::ecdsa::{Signature, SigningKey};
use plumbline_core::ports::NamedSigner;
use plumbline_kms::{KmsSigner, KmsTokenSigner};
use rsa::pkcs8::EncodePublicKey as _;
use rsa::{Pkcs1v15Sign, PrivateKey};
use serde_json::{Value, json};

pub const REGION: &str = "eu-central-1";
pub const KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/0123";
/// SubjectPublicKeyInfo of the curve up to the point.
const SPKI: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
/// What stands before a digest of SHA-256 in a signature (RFC 8017).
const SHA256: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
    0x04, 0x20,
];

/// The service.
#[derive(Clone)]
pub struct FakeKms {
    pub url: String,
    inner: Arc<Inner>,
}

struct Inner {
    key: SigningKey,
    rsa: Vec<PrivateKey>,
    /// What it answers instead, and how often it was asked.
    canned: Mutex<Option<(StatusCode, Value)>>,
    asked: Mutex<Vec<String>>,
}

/// Credentials that nobody checks.
pub fn credentials() -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(Credentials::new("AKIDEXAMPLE", "not-a-secret", None, None, "tests"))
}

impl FakeKms {
    /// Starts it with the key of this number.
    pub async fn start(number: u8) -> Self {
        Self::start_with(number, 0).await
    }

    /// Starts it with so many RSA keys.
    pub async fn start_rsa(count: usize) -> Self {
        Self::start_with(1, count).await
    }

    async fn start_with(number: u8, count: usize) -> Self {
        // An error here means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let key = SigningKey::from_slice(&[number; 32]).unwrap();
        let rsa = (0..count).map(|_| PrivateKey::new(&mut SysRng, 2048).unwrap()).collect();
        let inner = Arc::new(Inner { key, rsa, canned: Mutex::default(), asked: Mutex::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, inner }
    }

    pub fn signer(&self) -> KmsSigner {
        KmsSigner::new(KEY, REGION, Some(&self.url), credentials()).unwrap()
    }

    /// Signs with the RSA key of this number, from 0.
    pub fn token_signer(&self, number: usize) -> KmsTokenSigner {
        KmsTokenSigner::new(&rsa_name(number), REGION, Some(&self.url), credentials()).unwrap()
    }

    /// All RSA keys in their order.
    pub fn named_signers(&self) -> Arc<[NamedSigner]> {
        let named =
            |number| NamedSigner { name: rsa_name(number), signer: Arc::new(self.token_signer(number)) };
        (0..self.inner.rsa.len()).map(named).collect()
    }

    /// From now on it answers this, or the truth again.
    pub fn answer(&self, canned: Option<(StatusCode, Value)>) {
        *self.inner.canned.lock().unwrap() = canned;
    }

    /// Which calls were made.
    pub fn asked(&self) -> Vec<String> {
        self.inner.asked.lock().unwrap().clone()
    }
}

/// What an RSA key is called.
pub fn rsa_name(number: usize) -> String {
    format!("arn:aws:kms:eu-central-1:123456789012:key/rsa-{number}")
}

/// What the key says, if it is asked as it must be.
fn of_rsa(key: &PrivateKey, target: &str, request: &Value) -> Option<Value> {
    match target {
        "TrentService.GetPublicKey" => {
            let spki = key.as_public_key().to_public_key_der().unwrap();
            Some(
                json!({ "KeySpec": "RSA_2048", "KeyUsage": "SIGN_VERIFY", "PublicKey": STANDARD.encode(spki.as_bytes()) }),
            )
        }
        "TrentService.Sign" => {
            let fits = request["SigningAlgorithm"] == "RSASSA_PKCS1_V1_5_SHA_256"
                && request["MessageType"] == "DIGEST";
            let digest = STANDARD.decode(request["Message"].as_str()?).ok()?;
            let scheme = Pkcs1v15Sign { hash_len: Some(32), prefix: SHA256.into() };
            fits.then(|| json!({ "Signature": STANDARD.encode(key.sign(scheme, &digest).unwrap()) }))
        }
        _ => None,
    }
}

async fn answer(State(kms): State<Arc<Inner>>, headers: HeaderMap, body: String) -> Response {
    let header =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let target = header("x-amz-target");
    kms.asked.lock().unwrap().push(target.clone());
    let scope = format!("/{REGION}/kms/aws4_request");
    let authorization = header("authorization");
    if !authorization.contains(&scope) || !authorization.contains("x-amz-target") {
        return refuse("IncompleteSignatureException");
    }
    if let Some((status, canned)) = kms.canned.lock().unwrap().clone() {
        return (status, canned.to_string()).into_response();
    }
    let request: Value = serde_json::from_str(&body).unwrap();
    let rsa = kms.rsa.iter().enumerate().find(|(number, _)| request["KeyId"] == rsa_name(*number).as_str());
    if let Some((_, key)) = rsa {
        return match of_rsa(key, &target, &request) {
            Some(said) => said.to_string().into_response(),
            None => refuse("ValidationException"),
        };
    }
    if request["KeyId"] != KEY {
        return refuse("NotFoundException");
    }
    let said = match target.as_str() {
        "TrentService.GetPublicKey" => {
            let point = kms.key.verifying_key().to_sec1_point(false);
            let spki = [hex::decode(SPKI).unwrap(), point.as_bytes().to_vec()].concat();
            json!({ "KeyId": KEY, "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "PublicKey": STANDARD.encode(spki) })
        }
        "TrentService.Sign" => {
            let fits = request["SigningAlgorithm"] == "ECDSA_SHA_256" && request["MessageType"] == "DIGEST";
            let digest = STANDARD.decode(request["Message"].as_str().unwrap()).unwrap();
            if !fits || digest.len() != 32 {
                return refuse("ValidationException");
            }
            let signature: Signature = kms.key.sign_prehash(&digest).unwrap();
            json!({ "KeyId": KEY, "SigningAlgorithm": "ECDSA_SHA_256", "Signature": STANDARD.encode(der(&signature)) })
        }
        _ => return refuse("UnknownOperationException"),
    };
    said.to_string().into_response()
}

fn refuse(code: &str) -> Response {
    (StatusCode::BAD_REQUEST, json!({ "__type": code, "message": "no" }).to_string()).into_response()
}

/// A sequence of two integers.
fn der(signature: &Signature) -> Vec<u8> {
    let bytes = signature.to_bytes();
    let (r, s) = bytes.split_at(32);
    let inside = [integer(r), integer(s)].concat();
    [&[0x30, u8::try_from(inside.len()).unwrap()], &inside[..]].concat()
}

fn integer(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let mut value = bytes[start..].to_vec();
    if value[0] >= 0x80 {
        value.insert(0, 0);
    }
    [&[0x02, u8::try_from(value.len()).unwrap()], &value[..]].concat()
}

/// A new key for signing at moto, which stands for the same service: its id.
pub async fn moto_key(url: &str, spec: &str) -> String {
    let scope = format!(
        "AWS4-HMAC-SHA256 Credential=x/20260101/{REGION}/kms/aws4_request, SignedHeaders=host, Signature=0"
    );
    let body = json!({ "KeySpec": spec, "KeyUsage": "SIGN_VERIFY" });
    let made = reqwest::Client::builder().no_proxy().build().unwrap().post(url);
    let made = made
        .header("x-amz-target", "TrentService.CreateKey")
        .header("content-type", "application/x-amz-json-1.1")
        .header("authorization", scope)
        .body(body.to_string());
    let made: Value = serde_json::from_str(&made.send().await.unwrap().text().await.unwrap()).unwrap();
    made["KeyMetadata"]["KeyId"].as_str().unwrap().to_owned()
}
