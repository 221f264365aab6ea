//! Files on their way to and from signed URLs of the object store, piece by piece.

use std::path::Path;
use std::time::Duration;

use plumbline_core::protocol::Presigned;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

/// One transfer of a large body.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(900);
const PIECE_BYTES: usize = 64 << 10;

/// Sends a file to a signed URL.
pub async fn put(http: &Client, to: &Presigned, path: &Path, size_bytes: u64) -> Result<(), String> {
    let file = tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
    let pieces = ReaderStream::with_capacity(file, PIECE_BYTES);
    let mut request = signed(http, to)?.body(reqwest::Body::wrap_stream(pieces));
    if !to.headers.keys().any(|name| name.eq_ignore_ascii_case("content-length")) {
        request = request.header("content-length", size_bytes);
    }
    let response = request.send().await.map_err(|error| error.without_url().to_string())?;
    if response.status().is_success() {
        Ok(())
    } else {
        Err(format!("the object store answered {}", response.status()))
    }
}

/// Reads a signed URL into a file.
pub async fn get(http: &Client, from: &Presigned, to: &Path) -> Result<(), String> {
    let response = signed(http, from)?.send().await.map_err(|error| error.without_url().to_string())?;
    if response.status() != StatusCode::OK {
        return Err(format!("the object store answered {}", response.status()));
    }
    save(response, to).await
}

/// Writes a body to a file that only its owner can read.
pub async fn save(mut response: reqwest::Response, to: &Path) -> Result<(), String> {
    let mut file = create_private(to).await.map_err(|error| error.to_string())?;
    while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
        file.write_all(&chunk).await.map_err(|error| error.to_string())?;
    }
    file.flush().await.map_err(|error| error.to_string())
}

/// States hold secrets.
pub(crate) async fn create_private(path: &Path) -> std::io::Result<tokio::fs::File> {
    tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).await
}

fn signed(http: &Client, request: &Presigned) -> Result<RequestBuilder, String> {
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| "the signed method is not valid".to_owned())?;
    let mut builder = http.request(method, &request.url).timeout(TRANSFER_TIMEOUT);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    Ok(builder)
}
