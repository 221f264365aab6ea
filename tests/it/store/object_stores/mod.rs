//! The object stores that the conformance suite runs on, each behind real HTTP.

mod azure;
mod fake_azure;
mod fake_gcs;
pub mod gcs;
pub mod lossy_proxy;
mod s3;
mod shelf;

use std::any::Any;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path as UrlPath, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use plumbline_core::adapters::{DirectoryStore, GrantError};
use plumbline_core::ports::{BlobError, BlobStore};
use tokio::net::TcpListener;

use lossy_proxy::LossyProxy;
pub use s3::{s3s_fs, serve_s3s, serve_s3s_to};

pub const BUCKET: &str = "plumbline";

/// A store under test.
pub struct Store {
    pub name: &'static str,
    pub blobs: Arc<dyn BlobStore>,
    /// The same place by the name of a bucket or directory that is not there.
    pub missing: Arc<dyn BlobStore>,
    /// The rest of what a service can show; a directory has none of it.
    pub remote: Option<Remote>,
    /// Whether a URL can be signed that takes exactly the announced bytes.
    pub signs_uploads: bool,
    root: Option<PathBuf>,
    _kept: Vec<Box<dyn Any + Send + Sync>>,
}

/// The same bucket in other ways.
pub struct Remote {
    /// Below another prefix.
    pub elsewhere: Arc<dyn BlobStore>,
    /// With credentials that are wrong; `None` where the stand-in takes any.
    pub refused: Option<Arc<dyn BlobStore>>,
    /// The store itself, behind a proxy that loses answers.
    pub lossy: Arc<dyn BlobStore>,
    pub proxy: LossyProxy,
}

/// Opens a store: at this address, this bucket, below this prefix, with the right credentials or not.
type Open = fn(&str, &str, Option<&str>, bool) -> Arc<dyn BlobStore>;

impl Store {
    async fn remote(name: &'static str, url: &str, prefix: Option<&str>, open: Open) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxy = LossyProxy::start(url).await;
        let remote = Remote {
            elsewhere: open(url, BUCKET, Some("elsewhere"), true),
            refused: Some(open(url, BUCKET, prefix, false)),
            lossy: open(&proxy.url, BUCKET, prefix, true),
            proxy,
        };
        Self {
            name,
            blobs: open(url, BUCKET, prefix, true),
            missing: open(url, "not-there", prefix, true),
            remote: Some(remote),
            signs_uploads: true,
            root: None,
            _kept: Vec::new(),
        }
    }

    /// Keeps its objects in this directory.
    fn at(mut self, root: PathBuf) -> Self {
        self.root = Some(root);
        self
    }

    /// Where s3s-fs keeps the bucket's objects.
    pub fn root(&self) -> &Path {
        self.root.as_deref().expect("a store over a directory")
    }

    /// Lives as long as the store.
    fn keeping(mut self, kept: impl Any + Send + Sync) -> Self {
        self._kept.push(Box::new(kept));
        self
    }

    fn taking_any_credentials(mut self) -> Self {
        self.remote.as_mut().unwrap().refused = None;
        self
    }

    fn signing_no_uploads(mut self) -> Self {
        self.signs_uploads = false;
        self
    }

    pub fn is(&self, server: &str) -> bool {
        self.name.starts_with(server)
    }
}

/// Every store of this machine: a directory, stand-ins of our own for S3, Azure and Google, and those of others that are
/// installed.
pub async fn all() -> Vec<Store> {
    let mut stores = vec![directory().await, s3s_fs().await, s3::s3s_fs_prefix().await];
    stores.extend(s3::moto().await);
    stores.push(azure::fake().await);
    stores.extend(azure::azurite().await);
    stores.push(gcs::fake().await.0);
    stores
}

/// A server of somebody else's, ended with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// Starts what a variable names, on a free port; `None`, with the reason printed, where it names nothing.
    async fn start(variable: &str, arguments: impl Fn(u16) -> Vec<String>) -> Option<(Self, String)> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Ok(program) = std::env::var(variable) else {
            eprintln!("SKIP: {variable} does not name a program");
            return None;
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child =
            Command::new(&program).args(arguments(port)).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut started = Self(child.unwrap_or_else(|error| panic!("{program}: {error}")));
        for _ in 0..1200 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Some((started, format!("http://127.0.0.1:{port}")));
            }
            let ended = started.0.try_wait().unwrap();
            assert!(ended.is_none(), "{program} has ended: {ended:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{program} did not start");
    }
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
        remote: None,
        signs_uploads: true,
        root: None,
        _kept: vec![Box::new(scratch)],
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
