//! The recording proxy between one client and the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, LOCATION, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::checks;
use super::faults::{Act, Fault};
use super::recorded::Recorded;
use super::target::Methods;

type Answer = http::Response<Full<Bytes>>;

/// The connection is to end without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection ends here")]
struct NoAnswer;

/// Speaks for the case beside its client.
#[async_trait::async_trait]
pub(super) trait Bystander: Send + Sync {
    /// Sends somebody else's request around the proxy.
    async fn ask(&self, request: &super::case::Request) -> anyhow::Result<u16>;
}

/// How the client's requests are read.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Path of the state as the client's settings have it.
    pub path: String,
    /// What the client was told.
    pub methods: Methods,
    /// Whether the trace has the usual words for the methods, or the methods themselves.
    pub usual_words: bool,
}

/// One for each client of a case. Ends when dropped.
pub(super) struct Proxy {
    /// Where the client is sent: scheme, host and port.
    pub origin: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    /// Of the server.
    upstream: String,
    own: String,
    shape: Shape,
    http: reqwest::Client,
    bystander: Arc<dyn Bystander>,
    state: Mutex<State>,
    gate: watch::Sender<Gate>,
}

#[derive(Default)]
struct State {
    log: Vec<Recorded>,
    faults: Vec<Fault>,
    counts: HashMap<String, usize>,
    lock_id: Option<String>,
    child: Option<i32>,
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Closed,
    Waiting,
    Open,
}

impl Proxy {
    pub(super) async fn before(
        upstream: &str,
        shape: Shape,
        bystander: Arc<dyn Bystander>,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            own: origin.clone(),
            shape,
            http: super::target::client_without_redirects()?,
            bystander,
            state: Mutex::default(),
            gate: watch::Sender::new(Gate::Closed),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { origin, shared, accepting })
    }

    /// Forgets what was recorded, and does this from now on.
    pub(super) fn begin(&self, faults: &[Fault]) {
        let mut state = self.shared.state();
        *state = State { faults: faults.to_owned(), ..State::default() };
        self.shared.gate.send_replace(Gate::Closed);
    }

    /// Whom [`Act::Kill`] kills.
    pub(super) fn watch_over(&self, child: i32) {
        self.shared.state().child = Some(child);
    }

    /// Returns once a request is held.
    pub(super) async fn until_held(&self) {
        let mut gate = self.shared.gate.subscribe();
        // The sender lives as long as this proxy.
        let _ = gate.wait_for(|gate| *gate == Gate::Waiting).await;
    }

    /// Lets the held request go.
    pub(super) fn let_go(&self) {
        self.shared.gate.send_replace(Gate::Open);
    }

    /// What was recorded since [`Self::begin`]; or what went wrong in the proxy itself.
    pub(super) fn recorded(&self) -> anyhow::Result<Vec<Recorded>> {
        let state = self.shared.state();
        match &state.failure {
            Some(failure) => Err(anyhow::anyhow!("the proxy itself: {failure}")),
            None => Ok(state.log.clone()),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        // A packet that waits for an acknowledgement costs each request 40 ms.
        let _ = socket.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { shared.pass(request).await }
            });
            // Ends with an error whenever an answer is withheld.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

struct Passing {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass(&self, request: http::Request<Incoming>) -> Result<Answer, NoAnswer> {
        let (parts, body) = request.into_parts();
        // A client that is killed does not end its body.
        let body = body.collect().await.map_err(|_| NoAnswer)?.to_bytes();
        let passing = Passing { method: parts.method, uri: parts.uri, headers: parts.headers, body };
        match self.act(passing).await {
            Ok(answer) => answer,
            Err(error) => {
                self.state().failure = Some(format!("{error:#}"));
                Err(NoAnswer)
            }
        }
    }

    /// The outer result is the proxy's own; the inner one is what the client gets.
    async fn act(&self, mut passing: Passing) -> anyhow::Result<Result<Answer, NoAnswer>> {
        let (operation, fault) = self.admit(&passing);
        let mut entry = Recorded::new(&operation, None, "");
        entry.wrongs = checks::of_request(&passing.headers, &passing.body);
        let mut mark = "";
        match &fault {
            Some(Act::Refuse) => return Ok(self.withhold(entry, "refused")),
            Some(Act::Answer { status, retry_after }) => {
                (entry.status, entry.mark) = (Some(*status), "answered");
                self.state().log.push(entry);
                return answered(*status, *retry_after).map(Ok);
            }
            Some(Act::Kill) => {
                let child = self.state().child.context("nobody to kill")?;
                kill(Pid::from_raw(child), Signal::SIGKILL)?;
                return Ok(self.withhold(entry, "killed"));
            }
            Some(Act::Cut) => {
                self.send_half(&passing).await?;
                return Ok(self.withhold(entry, "cut"));
            }
            Some(Act::Damage) => {
                passing.body = damaged(&passing.body);
                mark = "damaged";
            }
            Some(Act::Hold) => self.hold().await,
            Some(Act::Before(request)) => drop(self.bystander.ask(request).await?),
            Some(Act::LoseAnswer | Act::After(_)) | None => {}
        }
        let (status, mut headers, body) = self.forward(&passing).await?;
        entry.status = Some(status.as_u16());
        entry.coding =
            headers.get("content-encoding").map(|coding| String::from_utf8_lossy(coding.as_bytes()).into());
        entry.wrongs.extend(checks::of_answer(&operation, status, &headers, &body));
        if let Some(Act::After(request)) = &fault {
            self.bystander.ask(request).await?;
        }
        if matches!(fault, Some(Act::LoseAnswer)) {
            return Ok(self.withhold(entry, "lost"));
        }
        entry.mark = mark;
        self.state().log.push(entry);
        self.keep_client_here(&mut headers);
        let mut answer = Answer::new(Full::new(body));
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Ok(Ok(answer))
    }

    /// Names and counts a request, and finds what is to be done to it.
    fn admit(&self, passing: &Passing) -> (String, Option<Act>) {
        let mut operation = self.operation(&passing.method, passing.uri.path());
        let mut state = self.state();
        let kind = operation.clone();
        if kind.starts_with("LOCK") || kind.starts_with("POST/lock") {
            state.lock_id = checks::lock_id(&passing.body);
        }
        if let Some(query) = passing.uri.query() {
            operation += match checks::queried_id(query) {
                Some(id) if Some(&id) == state.lock_id.as_ref() => "?ID",
                Some(_) => "?ID=other",
                None => "?…",
            };
        }
        let count = state.counts.entry(kind.clone()).or_default();
        *count += 1;
        let number = *count;
        let fault = state.faults.iter().find(|fault| fault.is_for(&kind, number));
        (operation, fault.map(|fault| fault.act.clone()))
    }

    fn operation(&self, method: &Method, path: &str) -> String {
        let Shape { path: state, methods, usual_words } = &self.shape;
        let lock = [state, methods.lock_suffix].concat();
        let word = if method == Method::GET && path == state {
            Some("GET")
        } else if method.as_str() == methods.update && path == state {
            Some("POST")
        } else if method.as_str() == methods.lock && path == lock {
            Some("LOCK")
        } else if method.as_str() == methods.unlock && path == lock {
            Some("UNLOCK")
        } else {
            None
        };
        match (word, usual_words) {
            (Some(word), true) => word.to_owned(),
            _ => format!("{method}{}", path.strip_prefix(state.as_str()).unwrap_or(path)),
        }
    }

    fn withhold(&self, mut entry: Recorded, mark: &'static str) -> Result<Answer, NoAnswer> {
        entry.mark = mark;
        self.state().log.push(entry);
        Err(NoAnswer)
    }

    async fn hold(&self) {
        let mut gate = self.gate.subscribe();
        self.gate.send_replace(Gate::Waiting);
        // The sender is this proxy's own.
        let _ = gate.wait_for(|gate| *gate == Gate::Open).await;
    }

    async fn forward(&self, passing: &Passing) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
        let path = passing.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = passing.headers.clone();
        for name in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        let request = self.http.request(passing.method.clone(), [&self.upstream, path].concat());
        let answer = request.headers(headers).body(passing.body.clone()).send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        Ok((status, headers, answer.bytes().await?))
    }

    /// A redirect to the server itself leads back here, so that what the client makes of it is seen.
    fn keep_client_here(&self, headers: &mut HeaderMap) {
        let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else { return };
        if let Some(path) = location.strip_prefix(&self.upstream)
            && let Ok(here) = HeaderValue::from_str(&[&self.own, path].concat())
        {
            headers.insert(LOCATION, here);
        }
    }

    /// Announces the whole body and sends half of it.
    async fn send_half(&self, passing: &Passing) -> anyhow::Result<()> {
        let host = self.upstream.strip_prefix("http://").context("a server without TLS")?;
        let mut socket = TcpStream::connect(host).await?;
        let path = passing.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut head = format!("{} {path} HTTP/1.1\r\nhost: {host}\r\n", passing.method);
        for (name, value) in &passing.headers {
            if *name != HOST && *name != CONNECTION {
                head += &format!("{name}: {}\r\n", value.to_str()?);
            }
        }
        head += "\r\n";
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(&passing.body[..passing.body.len() / 2]).await?;
        socket.shutdown().await?;
        // Until the server has dealt with it; what it says goes nowhere.
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest).await;
        Ok(())
    }
}

fn answered(status: u16, retry_after: Option<u32>) -> anyhow::Result<Answer> {
    let mut answer = Answer::new(Full::new(Bytes::from_static(b"somebody on the way")));
    *answer.status_mut() = StatusCode::from_u16(status)?;
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    Ok(answer)
}

/// Another digit in the version of the client that wrote it: still a state of the same serial and lineage.
fn damaged(body: &[u8]) -> Bytes {
    const BEFORE: &[u8] = b"terraform_version";
    let mut body = body.to_vec();
    let from = body.windows(BEFORE.len()).position(|bytes| bytes == BEFORE).unwrap_or_default();
    if let Some(digit) = body[from..].iter_mut().find(|byte| byte.is_ascii_digit()) {
        *digit = if *digit == b'9' { b'8' } else { *digit + 1 };
    }
    body.into()
}
