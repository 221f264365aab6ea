//! Stands between a store and its client: it loses answers of what was done, or answers itself.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Which calls of a client are meant.
pub type Which = fn(&Method, &Uri, &HeaderMap) -> bool;

/// What happens to the next calls that are meant, and to how many.
#[derive(Clone, Copy)]
enum Trouble {
    Loses(Which, usize),
    Answers(StatusCode, usize),
}

/// The proxy.
#[derive(Clone)]
pub struct LossyProxy {
    pub url: String,
    target: Arc<str>,
    trouble: Arc<Mutex<Option<Trouble>>>,
}

impl LossyProxy {
    /// Stands before a server, and lets everything through.
    pub async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let proxy = Self { url, target: target.into(), trouble: Arc::default() };
        let (served, client) = (proxy.clone(), reqwest::Client::new());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (proxy, client) = (served.clone(), client.clone());
                let service = service_fn(move |request| pass(proxy.clone(), client.clone(), request));
                tokio::spawn(async move {
                    // An error here is an answer that was lost.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        });
        proxy
    }

    /// So many of these calls are done, and their clients hear nothing of it.
    pub fn lose(&self, which: Which, times: usize) {
        *self.trouble.lock().unwrap() = Some(Trouble::Loses(which, times));
    }

    /// So many calls are answered so, and nothing is done.
    pub fn answer(&self, status: StatusCode, times: usize) {
        *self.trouble.lock().unwrap() = Some(Trouble::Answers(status, times));
    }

    /// Ends all trouble; how often it could still have struck.
    pub fn rest(&self) -> usize {
        match self.trouble.lock().unwrap().take() {
            Some(Trouble::Loses(_, times) | Trouble::Answers(_, times)) => times,
            None => 0,
        }
    }

    fn strikes(&self, parts: &http::request::Parts) -> Option<Trouble> {
        let mut trouble = self.trouble.lock().unwrap();
        match trouble.as_mut()? {
            Trouble::Loses(which, _) if !which(&parts.method, &parts.uri, &parts.headers) => None,
            Trouble::Loses(_, 0) | Trouble::Answers(_, 0) => None,
            struck @ (Trouble::Loses(..) | Trouble::Answers(..)) => {
                let (Trouble::Loses(_, times) | Trouble::Answers(_, times)) = struck;
                *times -= 1;
                Some(*struck)
            }
        }
    }
}

async fn pass(
    proxy: LossyProxy,
    client: reqwest::Client,
    request: Request<Incoming>,
) -> io::Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let trouble = proxy.strikes(&parts);
    if let Some(Trouble::Answers(status, _)) = trouble {
        let text = "<Error><Code>Planted</Code><Message>by the test</Message></Error>";
        let mut answer = Response::new(Full::from(if parts.method == Method::HEAD { "" } else { text }));
        *answer.status_mut() = status;
        return Ok(answer);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut headers = parts.headers;
    for name in ["connection", "content-length", "transfer-encoding"] {
        headers.remove(name);
    }
    let url = format!("{}{path}", proxy.target);
    let sent = client.request(parts.method.clone(), url).headers(headers).body(body).send().await;
    let answer = sent.map_err(io::Error::other)?;
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    let bytes = answer.bytes().await.map_err(io::Error::other)?;
    if matches!(trouble, Some(Trouble::Loses(..))) {
        return Err(io::Error::other("lost"));
    }
    headers.remove("connection");
    headers.remove("transfer-encoding");
    // The length of a HEAD's answer is that of what it does not send.
    if parts.method != Method::HEAD {
        headers.remove("content-length");
    }
    let mut response = Response::new(Full::from(bytes));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}
