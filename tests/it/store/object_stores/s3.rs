//! S3: the protocol over a directory, and moto where it is installed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use plumbline_core::ports::BlobStore;
use plumbline_s3::{Keys, S3Credentials, S3Place, S3Store};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

use super::{BUCKET, Store};

const KEY: &str = "test-key";
const SECRET: &str = "test-secret";

/// S3's protocol over a directory, in this process.
pub async fn s3s_fs() -> Store {
    start_s3s_fs("s3s-fs", None, with_keys).await
}

/// The same, opened with the credentials given, below a prefix.
pub async fn s3s_fs_prefix() -> Store {
    start_s3s_fs("s3s-fs below a prefix", Some("states/of/a-unit/"), opened).await
}

async fn start_s3s_fs(name: &'static str, prefix: Option<&str>, open: super::Open) -> Store {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join(BUCKET)).unwrap();
    let url = serve_s3s(scratch.path().to_owned()).await;
    Store::remote(name, &url, prefix, open).await.at(scratch.path().join(BUCKET)).keeping(scratch)
}

pub async fn serve_s3s(root: PathBuf) -> String {
    serve_s3s_to(root, KEY, SECRET).await
}

/// The same for other keys.
pub async fn serve_s3s_to(root: PathBuf, key: &str, secret: &str) -> String {
    let mut builder = S3ServiceBuilder::new(s3s_fs_of(&root));
    builder.set_auth(SimpleAuth::from_single(key, secret));
    let service = Honest { root, service: builder.build() };
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

/// As S3 itself, unlike s3s-fs, it takes no object into a bucket that is not there.
#[derive(Clone)]
struct Honest {
    root: PathBuf,
    service: s3s::service::S3Service,
}

impl hyper::service::Service<http::Request<hyper::body::Incoming>> for Honest {
    type Response = s3s::HttpResponse;
    type Error = s3s::HttpError;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn call(&self, request: http::Request<hyper::body::Incoming>) -> Self::Future {
        const MISSING: &str = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>";
        let path = request.uri().path().trim_start_matches('/');
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        if key.is_empty() || self.root.join(bucket).is_dir() {
            return Box::pin(hyper::service::Service::call(&self.service, request));
        }
        let answer = http::Response::builder().status(404).body(s3s::Body::from(MISSING.to_owned()));
        Box::pin(async { Ok(answer.expect("a response")) })
    }
}

fn s3s_fs_of(root: &Path) -> ::s3s_fs::FileSystem {
    ::s3s_fs::FileSystem::new(root).expect("an object store")
}

pub async fn moto() -> Option<Store> {
    let (server, url) = crate::moto::start().await?;
    let made = reqwest::Client::new().put(format!("{url}/{BUCKET}")).send().await.unwrap();
    assert!(made.status().is_success(), "moto has no bucket: {}", made.status());
    let store = Store::remote("moto below a prefix", &url, Some("states"), opened).await;
    Some(store.taking_any_credentials().keeping(server))
}

fn with_keys(url: &str, bucket: &str, prefix: Option<&str>, is_right: bool) -> Arc<dyn BlobStore> {
    // Only a place that is opened has a prefix.
    if prefix.is_some() {
        return opened(url, bucket, prefix, is_right);
    }
    Arc::new(S3Store::with_keys(&Keys {
        endpoint: url.to_owned(),
        region: "us-east-1".into(),
        bucket: bucket.to_owned(),
        access_key_id: KEY.into(),
        secret_access_key: if is_right { SECRET.into() } else { "another".into() },
    }))
}

fn opened(url: &str, bucket: &str, prefix: Option<&str>, is_right: bool) -> Arc<dyn BlobStore> {
    let place = S3Place {
        bucket: bucket.to_owned(),
        region: "us-east-1".into(),
        prefix: prefix.map(str::to_owned),
        endpoint: Some(url.to_owned()),
    };
    let credentials = S3Credentials {
        access_key_id: KEY.into(),
        secret_access_key: if is_right { SECRET } else { "another" }.to_owned().into(),
        session_token: None,
    };
    Arc::new(S3Store::open(&place, &credentials).unwrap())
}
