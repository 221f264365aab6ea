//! A small Azure: its directory, and Blob Storage with one container, in memory. It knows what azurite cannot show without
//! TLS: a service principal, and SAS that is signed with a user delegation key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::json;

use super::BUCKET;
use super::shelf::{Shelf, asked, served};

pub const ACCOUNT: &str = "plumblinestates";
pub const TENANT: &str = "11111111-2222-3333-4444-555555555555";
pub const SECRET: &str = "hunter2-the-application";
const TOKEN: &str = "a-token-of-the-directory";
const DELEGATION_KEY: &[u8] = b"what the service signs for a while";
/// The delegation key's own fields, as it says them.
const DELEGATED: [(&str, &str); 6] = [
    ("SignedOid", "oid"),
    ("SignedTid", TENANT),
    ("SignedStart", "2026-01-01T00:00:00Z"),
    ("SignedExpiry", "2126-01-01T00:00:00Z"),
    ("SignedService", "b"),
    ("SignedVersion", "2023-11-03"),
];

/// Directory and storage, under one address.
#[derive(Clone)]
pub struct FakeAzure {
    pub url: String,
}

#[derive(Default)]
struct Inner {
    shelf: Shelf,
    /// Blocks that are in no list yet: of each blob, by their ids.
    blocks: Mutex<BTreeMap<String, BTreeMap<String, Bytes>>>,
}

impl FakeAzure {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .fallback(answer)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::new(Inner::default()));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url }
    }
}

fn fault(status: StatusCode, code: &'static str) -> Response {
    (status, [("x-ms-error-code", code)], format!("<Error><Code>{code}</Code></Error>")).into_response()
}

fn token(body: &[u8]) -> Response {
    let value = |name: &str| asked(std::str::from_utf8(body).unwrap(), name);
    assert_eq!(value("scope").as_deref(), Some("https://storage.azure.com/.default"));
    if value("client_secret").as_deref() != Some(SECRET) {
        let refusal = json!({ "error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret." });
        return (StatusCode::UNAUTHORIZED, refusal.to_string()).into_response();
    }
    json!({ "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3599 }).to_string().into_response()
}

fn delegation_key() -> Response {
    let fields = DELEGATED.map(|(name, value)| format!("<{name}>{value}</{name}>")).concat();
    let value = STANDARD.encode(DELEGATION_KEY);
    format!("<UserDelegationKey>{fields}<Value>{value}</Value></UserDelegationKey>").into_response()
}

/// Whether a SAS of the delegation key lets one read, and still does. `None` if there is none.
fn is_signed(uri: &Uri) -> Option<bool> {
    let query = uri.query()?;
    let value = |name: &str| asked(query, name).unwrap_or_default();
    let signature = STANDARD.decode(asked(query, "sig")?).ok()?;
    let mut fields = vec![value("sp"), value("st"), value("se"), format!("/blob{}", uri.path())];
    fields.extend(["skoid", "sktid", "skt", "ske", "sks", "skv"].map(value));
    // Nobody's object ids, no correlation, no addresses, any protocol.
    fields.extend([const { String::new() }; 5]);
    fields.extend([value("sv"), value("sr")]);
    // No snapshot, no encryption scope, no headers.
    fields.extend([const { String::new() }; 7]);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, DELEGATION_KEY);
    let is_ours = ring::hmac::verify(&key, fields.join("\n").as_bytes(), &signature).is_ok();
    let time = |name: &str| DateTime::parse_from_rfc3339(&value(name)).ok();
    let (from, to) = (time("st")?, time("se")?);
    Some(is_ours && value("sp") == "r" && from <= Utc::now() && Utc::now() < to)
}

async fn answer(
    State(azure): State<Arc<Inner>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let mut segments = uri.path().trim_start_matches('/').splitn(3, '/');
    let (first, container) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
    let name = segments.next().unwrap_or_default();
    if first == TENANT {
        return token(&body);
    }
    let is_known = headers
        .get("authorization")
        .is_some_and(|said| said.as_bytes() == format!("Bearer {TOKEN}").as_bytes());
    if first != ACCOUNT || !is_signed(&uri).unwrap_or(is_known) {
        return fault(StatusCode::FORBIDDEN, "AuthenticationFailed");
    }
    if asked(query, "comp").as_deref() == Some("userdelegationkey") {
        return delegation_key();
    }
    if container != BUCKET {
        return fault(StatusCode::NOT_FOUND, "ContainerNotFound");
    }
    match (method.as_str(), asked(query, "comp").as_deref()) {
        ("GET", Some("list")) => {
            "<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>".into_response()
        }
        ("PUT", Some("block")) => {
            let mut blocks = azure.blocks.lock().unwrap();
            blocks.entry(name.to_owned()).or_default().insert(asked(query, "blockid").unwrap(), body);
            StatusCode::CREATED.into_response()
        }
        ("PUT", comp) => azure.create(name, comp == Some("blocklist"), &headers, body),
        ("DELETE", None) => match azure.shelf.open().remove(name) {
            Some(_) => StatusCode::ACCEPTED.into_response(),
            None => fault(StatusCode::NOT_FOUND, "BlobNotFound"),
        },
        ("GET" | "HEAD", None) => match azure.shelf.open().get(name) {
            Some(kept) => ([("x-ms-blob-type", "BlockBlob")], served(kept, &headers)).into_response(),
            None => fault(StatusCode::NOT_FOUND, "BlobNotFound"),
        },
        _ => fault(StatusCode::BAD_REQUEST, "UnsupportedHttpVerb"),
    }
}

impl Inner {
    fn create(&self, name: &str, is_list: bool, headers: &HeaderMap, body: Bytes) -> Response {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert_eq!(header("if-none-match"), "*", "a write without a condition");
        if self.shelf.open().contains_key(name) {
            return fault(StatusCode::CONFLICT, "BlobAlreadyExists");
        }
        let mut blocks = self.blocks.lock().unwrap();
        let bytes = if is_list {
            let list = String::from_utf8(body.to_vec()).unwrap();
            let ids = list.split("<Uncommitted>").skip(1).map(|rest| rest.split('<').next().unwrap());
            let sent = blocks.get(name).cloned().unwrap_or_default();
            let Some(parts) = ids.map(|id| sent.get(id)).collect::<Option<Vec<_>>>() else {
                return fault(StatusCode::BAD_REQUEST, "InvalidBlockList");
            };
            let mut whole = BytesMut::new();
            parts.into_iter().for_each(|part| whole.extend_from_slice(part));
            whole.freeze()
        } else {
            body
        };
        if !self.shelf.create(name, bytes, header("x-ms-blob-content-type")) {
            return fault(StatusCode::CONFLICT, "BlobAlreadyExists");
        }
        // Whatever was not in the list is gone.
        blocks.remove(name);
        (StatusCode::CREATED, [("etag", "\"1\"")]).into_response()
    }
}
