//! A small Google Cloud Storage: one bucket, in memory, with conditions, resumable uploads, tokens and signatures checked.
//! The emulators that registries have check none of these.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Bytes, BytesMut};
use chrono::{NaiveDateTime, TimeDelta, Utc};
use getrandom::SysRng;
use http::{HeaderMap, Method, StatusCode, Uri};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::secrets::SecretText;
use rsa::pkcs8::{EncodePrivateKey as _, LineEnding};
use rsa::{Pkcs1v15Sign, PrivateKey};
use serde_json::{Value, json};

use super::BUCKET;
use super::shelf::{Shelf, asked, served};

/// Whom it stands in for: the host that signatures name.
const HOST: &str = "storage.googleapis.com";
const EMAIL: &str = "states@project.iam.gserviceaccount.com";
/// What stands before a digest of SHA-256 in a signature (RFC 8017).
const SHA256: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
    0x04, 0x20,
];
/// Finding primes takes a while: one key for a process.
static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::new(&mut SysRng, 2048).unwrap());
static STRANGER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::new(&mut SysRng, 2048).unwrap());

/// The service.
#[derive(Clone)]
pub struct FakeGcs {
    pub url: String,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    shelf: Shelf,
    uploads: Mutex<BTreeMap<String, Upload>>,
    /// Of each piece it keeps at most this.
    kept_bytes_max: Mutex<Option<usize>>,
}

#[derive(Clone, Default)]
struct Upload {
    name: String,
    content_type: String,
    bytes: BytesMut,
    is_done: bool,
}

impl FakeGcs {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner::default());
        let router = Router::new()
            .fallback(answer)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, inner }
    }

    /// From now on it keeps only the beginning of each piece of an upload, as the service may.
    pub fn keep_at_most(&self, bytes: usize) {
        *self.inner.kept_bytes_max.lock().unwrap() = Some(bytes);
    }

    /// How many uploads are neither done nor given up.
    pub fn open_uploads(&self) -> usize {
        self.inner.uploads.lock().unwrap().values().filter(|upload| !upload.is_done).count()
    }
}

/// The key file of the service account that may use the bucket, or of one that is not who it says.
pub fn key_file(is_right: bool) -> SecretText {
    let key = if is_right { &*KEY } else { &*STRANGER };
    let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
    let file = json!({ "type": "service_account", "project_id": "project", "private_key_id": "1",
                       "private_key": pem.as_str(), "client_email": EMAIL });
    SecretText::new(file.to_string())
}

fn signed_by_the_key(text: &[u8], signature: &[u8]) -> bool {
    let scheme = Pkcs1v15Sign { hash_len: Some(32), prefix: SHA256.into() };
    KEY.as_public_key().verify(scheme, &Sha256Digest::of(text).0, signature).is_ok()
}

/// A token is one that the account signed itself.
fn is_known(headers: &HeaderMap) -> Option<bool> {
    let token = headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")?;
    let (signed, signature) = token.rsplit_once('.')?;
    let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let is_fresh = claims["exp"].as_i64()? > Utc::now().timestamp();
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    Some(is_fresh && claims["iss"] == EMAIL && signed_by_the_key(signed.as_bytes(), &signature))
}

/// The same of an address (the fourth version of Google's signatures), and whether it still holds.
fn is_signed(method: &Method, uri: &Uri) -> Option<Result<(), &'static str>> {
    let query = uri.query()?;
    let value = |name: &str| asked(query, name);
    let signature = hex::decode(value("X-Goog-Signature")?).ok()?;
    let unsigned: Vec<&str> =
        query.split('&').filter(|pair| !pair.starts_with("X-Goog-Signature=")).collect();
    let canonical =
        format!("{method}\n{}\n{}\nhost:{HOST}\n\nhost\nUNSIGNED-PAYLOAD", uri.path(), unsigned.join("&"));
    let (time, scope) = (value("X-Goog-Date")?, value("X-Goog-Credential")?);
    let scope = scope.strip_prefix(&format!("{EMAIL}/"))?;
    let digest = Sha256Digest::of(canonical.as_bytes());
    if !signed_by_the_key(format!("GOOG4-RSA-SHA256\n{time}\n{scope}\n{digest}").as_bytes(), &signature) {
        return Some(Err("SignatureDoesNotMatch"));
    }
    let from = NaiveDateTime::parse_from_str(&time, "%Y%m%dT%H%M%SZ").ok()?.and_utc();
    let age = TimeDelta::seconds(value("X-Goog-Expires")?.parse().ok()?);
    Some(if from + age > Utc::now() { Ok(()) } else { Err("ExpiredToken") })
}

fn json_fault(status: StatusCode, reason: &str) -> Response {
    let error = json!({ "code": status.as_u16(), "message": reason, "errors": [{ "reason": reason }] });
    (status, json!({ "error": error }).to_string()).into_response()
}

fn xml_fault(status: StatusCode, code: &str) -> Response {
    (status, format!("<?xml version='1.0'?><Error><Code>{code}</Code></Error>")).into_response()
}

async fn answer(
    State(gcs): State<Arc<Inner>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = uri.query().unwrap_or_default();
    // The address of an upload is all that it takes.
    if let Some(id) = asked(query, "upload_id") {
        return gcs.go_on(&method, &id, &headers, &body);
    }
    match is_signed(&method, &uri) {
        Some(Ok(())) => {}
        Some(Err("ExpiredToken")) => return xml_fault(StatusCode::BAD_REQUEST, "ExpiredToken"),
        Some(Err(code)) => return xml_fault(StatusCode::FORBIDDEN, code),
        None if is_known(&headers) == Some(true) => {}
        None => return json_fault(StatusCode::UNAUTHORIZED, "authError"),
    }
    let segments: Vec<String> = uri.path().split('/').skip(1).map(decoded).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match (method.as_str(), &segments[..]) {
        ("POST", ["upload", "storage", "v1", "b", BUCKET, "o"]) => gcs.upload(query, &headers, body),
        ("GET", ["storage", "v1", "b", BUCKET, "o"]) => {
            json!({ "kind": "storage#objects" }).to_string().into_response()
        }
        ("DELETE", ["storage", "v1", "b", BUCKET, "o", name]) => match gcs.shelf.open().remove(*name) {
            Some(_) => StatusCode::NO_CONTENT.into_response(),
            None => json_fault(StatusCode::NOT_FOUND, "notFound"),
        },
        ("GET" | "HEAD", [BUCKET, name @ ..]) => match gcs.shelf.open().get(&name.join("/")) {
            Some(kept) => ([("x-goog-generation", "1")], served(kept, &headers)).into_response(),
            None => xml_fault(StatusCode::NOT_FOUND, "NoSuchKey"),
        },
        (_, ["storage" | "upload", ..]) => json_fault(StatusCode::NOT_FOUND, "notFound"),
        _ => xml_fault(StatusCode::NOT_FOUND, "NoSuchBucket"),
    }
}

fn decoded(segment: &str) -> String {
    // A form's decoding, in which a plus would be a space: names here have none.
    url::form_urlencoded::parse(segment.as_bytes())
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

impl Inner {
    fn upload(&self, query: &str, headers: &HeaderMap, body: Bytes) -> Response {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert_eq!(asked(query, "ifGenerationMatch").as_deref(), Some("0"), "a write without a condition");
        let name = asked(query, "name").unwrap();
        if self.shelf.open().contains_key(&name) {
            return json_fault(StatusCode::PRECONDITION_FAILED, "conditionNotMet");
        }
        if asked(query, "uploadType").as_deref() == Some("media") {
            return self.make(&name, body, header("content-type"));
        }
        let mut uploads = self.uploads.lock().unwrap();
        let id = format!("upload-{}", uploads.len());
        let content_type = header("x-upload-content-type").to_owned();
        uploads.insert(id.clone(), Upload { name, content_type, ..Upload::default() });
        let place = format!("http://{}/upload/storage/v1/b/{BUCKET}/o?upload_id={id}", header("host"));
        (StatusCode::OK, [("location", place)]).into_response()
    }

    fn make(&self, name: &str, bytes: Bytes, content_type: &str) -> Response {
        if self.shelf.create(name, bytes, content_type) {
            return json!({ "name": name, "generation": "1" }).to_string().into_response();
        }
        json_fault(StatusCode::PRECONDITION_FAILED, "conditionNotMet")
    }

    /// A piece of an upload, a question about it, or its end.
    fn go_on(&self, method: &Method, id: &str, headers: &HeaderMap, body: &Bytes) -> Response {
        assert!(!headers.contains_key("authorization"), "the address of an upload is told a token");
        let mut uploads = self.uploads.lock().unwrap();
        if method == Method::DELETE {
            let there = uploads.remove(id).is_some();
            let status = if there { 499 } else { 404 };
            return StatusCode::from_u16(status).unwrap().into_response();
        }
        let Some(upload) = uploads.get_mut(id) else { return StatusCode::NOT_FOUND.into_response() };
        if upload.is_done {
            return json!({ "name": upload.name }).to_string().into_response();
        }
        let range = headers["content-range"].to_str().unwrap().strip_prefix("bytes ").unwrap();
        let (part, total) = range.split_once('/').unwrap();
        if let Some((from, _)) = part.split_once('-') {
            assert_eq!(from.parse::<usize>().unwrap(), upload.bytes.len(), "a piece of somewhere else");
            assert!(total != "*" || body.len().is_multiple_of(256 << 10), "a piece of an odd length");
            let kept_max = self.kept_bytes_max.lock().unwrap().unwrap_or(usize::MAX);
            upload.bytes.extend_from_slice(&body[..body.len().min(kept_max)]);
        }
        if total.parse() != Ok(upload.bytes.len()) {
            let mut answer = StatusCode::PERMANENT_REDIRECT.into_response();
            if let Some(last) = upload.bytes.len().checked_sub(1) {
                answer.headers_mut().insert("range", format!("bytes=0-{last}").parse().unwrap());
            }
            return answer;
        }
        upload.is_done = true;
        let upload = upload.clone();
        self.make(&upload.name, upload.bytes.freeze(), &upload.content_type)
    }
}
