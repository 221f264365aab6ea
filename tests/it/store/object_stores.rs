//! The object stores that the conformance suite runs on, each behind real HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path as UrlPath, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use plumbline_core::adapters::{DirectoryStore, GrantError};
use plumbline_core::ports::{BlobError, BlobStore};
use plumbline_s3::{Keys, S3Store};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

use crate::moto;

const BUCKET: &str = "plumbline";

/// A store under test.
pub struct Store {
    pub name: &'static str,
    pub blobs: Arc<dyn BlobStore>,
    /// The same place by the name of a bucket or directory that is not there.
    pub missing: Arc<dyn BlobStore>,
    _directory: tempfile::TempDir,
    _server: Option<moto::Moto>,
}

/// Every store of this machine: a directory, S3's protocol over a directory, and moto where it is installed.
pub async fn all() -> Vec<Store> {
    let mut stores = vec![directory().await, s3s_fs().await];
    stores.extend(moto_s3().await);
    stores
}

/// A directory; its signed URLs are served as the port's users are told to.
pub async fn directory() -> Store {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let scratch = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/blobs", listener.local_addr().unwrap());
    let (root, nowhere) = (scratch.path().join("root"), scratch.path().join("nowhere"));
    std::fs::create_dir(&root).unwrap();
    let store = DirectoryStore::new(root, base_url.clone(), [7; 32]);
    let routes = Router::new().route("/blobs/{*key}", get(download).put(upload)).with_state(store.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Store {
        name: "directory",
        blobs: Arc::new(store),
        missing: Arc::new(DirectoryStore::new(nowhere, base_url, [7; 32])),
        _directory: scratch,
        _server: None,
    }
}

async fn upload(
    State(store): State<DirectoryStore>,
    UrlPath(key): UrlPath<String>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    match store.accept_put(&key, &query.unwrap_or_default(), body).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => refusal(&error).into_response(),
    }
}

async fn download(
    State(store): State<DirectoryStore>,
    UrlPath(key): UrlPath<String>,
    RawQuery(query): RawQuery,
) -> Response {
    match store.accept_get(&key, &query.unwrap_or_default()).await {
        Ok(bytes) => bytes.into_response(),
        Err(error) => refusal(&error).into_response(),
    }
}

fn refusal(error: &GrantError) -> StatusCode {
    match error {
        GrantError::BadSignature | GrantError::Expired => StatusCode::FORBIDDEN,
        GrantError::OtherBytes => StatusCode::BAD_REQUEST,
        GrantError::Store(BlobError::NotFound(_)) => StatusCode::NOT_FOUND,
        GrantError::Store(_) => StatusCode::CONFLICT,
    }
}

/// S3's protocol over a directory, in this process.
pub async fn s3s_fs() -> Store {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join(BUCKET)).unwrap();
    let url = serve_s3s(scratch.path().to_owned()).await;
    let (blobs, missing) = s3_pair(&url, BUCKET);
    Store { name: "s3s-fs", blobs, missing, _directory: scratch, _server: None }
}

pub async fn serve_s3s(root: PathBuf) -> String {
    let mut builder = S3ServiceBuilder::new(s3s_fs_of(&root));
    builder.set_auth(SimpleAuth::from_single("test-key", "test-secret"));
    let service = builder.build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service)
                    .await;
            });
        }
    });
    // Not the API's own host name: clients then keep the API's credentials to themselves.
    format!("http://localhost:{port}")
}

fn s3s_fs_of(root: &Path) -> ::s3s_fs::FileSystem {
    ::s3s_fs::FileSystem::new(root).expect("an object store")
}

async fn moto_s3() -> Option<Store> {
    let (server, url) = moto::start().await?;
    let made = reqwest::Client::new().put(format!("{url}/{BUCKET}")).send().await.unwrap();
    assert!(made.status().is_success(), "moto has no bucket: {}", made.status());
    let (blobs, missing) = s3_pair(&url, BUCKET);
    let scratch = tempfile::tempdir().unwrap();
    Some(Store { name: "moto", blobs, missing, _directory: scratch, _server: Some(server) })
}

fn s3_pair(url: &str, bucket: &str) -> (Arc<dyn BlobStore>, Arc<dyn BlobStore>) {
    let store = |bucket: &str| {
        Arc::new(S3Store::with_keys(&Keys {
            endpoint: url.to_owned(),
            region: "us-east-1".into(),
            bucket: bucket.to_owned(),
            access_key_id: "test-key".into(),
            secret_access_key: "test-secret".into(),
        }))
    };
    (store(bucket), store("not-there"))
}
