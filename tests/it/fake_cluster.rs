//! An API server of Kubernetes, as far as a test of a kubeconfig asks it: TLS of its own authority, users by token, password
//! or certificate.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

/// What is in its certificate; it is reached by its address.
pub const NAME: &str = "kubernetes.example.com";

/// The server.
pub struct FakeCluster {
    pub url: String,
    /// The `Authorization` that it knows; a certificate of its authority is known, too.
    pub known: Arc<Mutex<String>>,
    /// What it was shown.
    pub shown: Arc<Mutex<Vec<String>>>,
    directory: tempfile::TempDir,
}

fn openssl(directory: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").current_dir(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A key and a certificate signed by `ca`.
fn certificate(directory: &Path, name: &str, extensions: &str) {
    std::fs::write(directory.join("extensions"), extensions).unwrap();
    let (key, csr, pem) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
    let subject = format!("/CN={name}");
    openssl(
        directory,
        &["req", "-newkey", "rsa:2048", "-nodes", "-subj", &subject, "-keyout", &key, "-out", &csr],
    );
    let signed = ["x509", "-req", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"];
    openssl(directory, &[&signed[..], &["-in", &csr, "-extfile", "extensions", "-out", &pem]].concat());
}

fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap).collect()
}

impl FakeCluster {
    /// `None`, with the reason printed, where there is no `openssl`.
    pub async fn start() -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("SKIP: openssl is not on the PATH");
            return None;
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        for authority in ["ca", "other"] {
            let (key, pem) = (format!("{authority}.key"), format!("{authority}.pem"));
            let subject = format!("/CN={authority}");
            openssl(
                at,
                &[
                    "req", "-x509", "-days", "2", "-newkey", "rsa:2048", "-nodes", "-subj", &subject,
                    "-keyout", &key, "-out", &pem,
                ],
            );
        }
        certificate(at, "server", &format!("subjectAltName=DNS:{NAME}"));
        certificate(at, "client", "extendedKeyUsage=clientAuth");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificates(&at.join("ca.pem")).remove(0)).unwrap();
        let clients = rustls::server::WebPkiClientVerifier::builder(roots.into());
        let config = rustls::ServerConfig::builder()
            .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
            .with_single_cert(
                certificates(&at.join("server.pem")),
                PrivateKeyDer::from_pem_file(at.join("server.key")).unwrap(),
            )
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (known, shown) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(Vec::new())));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let of_server = (Arc::clone(&known), Arc::clone(&shown));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, (known, shown)) = (acceptor.clone(), of_server.clone());
                tokio::spawn(async move {
                    // Whoever does not believe our certificate hangs up here.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let has_certificate = stream.get_ref().1.peer_certificates().is_some();
                    let service = service_fn(|request| answer(request, has_certificate, &known, &shown));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Some(Self { url, known, shown, directory })
    }

    /// Base64 of a file: `ca.pem`, `other.pem`, `client.pem`, `client.key`.
    pub fn data(&self, name: &str) -> String {
        STANDARD.encode(std::fs::read(self.directory.path().join(name)).unwrap())
    }

    /// A kubeconfig whose only user gets in like this, and which believes this authority.
    pub fn kubeconfig(&self, authority: &str, user: Value) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "prod-admin",
            "clusters": [{ "name": "k", "cluster": {
                "server": self.url, "certificate-authority-data": self.data(authority), "tls-server-name": NAME } }],
            "users": [{ "name": "u", "user": user }],
            "contexts": [{ "name": "prod-admin", "context": { "cluster": "k", "user": "u" } }],
        })
        .to_string()
    }
}

async fn answer(
    request: Request<Incoming>,
    has_certificate: bool,
    known: &Mutex<String>,
    shown: &Mutex<Vec<String>>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let header = request.headers().get("authorization");
    let header = header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    shown.lock().unwrap().push(header.clone());
    let known = known.lock().unwrap().clone();
    let is_known = has_certificate || (!known.is_empty() && header == known);
    let (status, body) = match (request.uri().path(), is_known) {
        // Everybody may ask for it, as in most clusters.
        ("/version", _) => (StatusCode::OK, json!({ "gitVersion": "v1.33.1+k3s1" })),
        ("/api", true) => (StatusCode::OK, json!({ "kind": "APIVersions", "versions": ["v1"] })),
        ("/api", false) => (StatusCode::UNAUTHORIZED, json!({ "message": "Unauthorized hunter2" })),
        _ => (StatusCode::NOT_FOUND, json!({})),
    };
    let body = Full::new(Bytes::from(body.to_string()));
    Ok(Response::builder().status(status).header("content-type", "application/json").body(body).unwrap())
}
