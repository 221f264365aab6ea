//! The state backend that the child sees: HTTP on the loopback interface, with a password of its own.
//!
//! In a *plan* it serves one pinned state, answers locks itself and refuses every write. In an *apply* it locks,
//! reads and writes through `callback`. The child never gets the run's token.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

use crate::callback::Callback;
use crate::error::StepError;
use crate::files::digests;
use crate::logs::Log;
use crate::state_delivery::Delivery;
use crate::uploads;

const USER: &str = "plumbline";
const LOCK_BYTES_MAX: usize = 64 << 10;
/// A step's summary has room for these.
const FINDINGS_MAX: usize = 20;
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// What stands behind the proxy.
pub(crate) enum Backing {
    /// One state version on disk, or none. Read only.
    Pinned(Option<PathBuf>),
    /// The workspace's state.
    Live(Callback, Delivery),
}

struct Shared {
    backing: Backing,
    ours: PathBuf,
    authorization: String,
    log: Mutex<Option<Log>>,
    lock: Mutex<Option<(String, Bytes)>>,
    was_locked: AtomicBool,
    findings: Mutex<Vec<String>>,
}

/// A running proxy.
#[derive(Clone)]
pub(crate) struct StateProxy {
    shared: Arc<Shared>,
    port: u16,
    password: String,
}

impl StateProxy {
    /// Listens on a port of its own.
    pub(crate) async fn start(backing: Backing, ours: PathBuf) -> Result<Self, StepError> {
        let failed = StepError::machine("the state proxy cannot listen");
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let port =
            listener.local_addr().map_err(StepError::machine("the state proxy has no address"))?.port();
        let password = hex::encode(rand::random::<[u8; 32]>());
        let shared = Arc::new(Shared {
            backing,
            ours,
            authorization: format!("Basic {}", STANDARD.encode(format!("{USER}:{password}"))),
            log: Mutex::default(),
            lock: Mutex::default(),
            was_locked: AtomicBool::new(false),
            findings: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        // Otherwise the second half of an answer waits until terraform acknowledges the first: 40 ms.
        let listener = listener.tap_io(|socket| {
            if let Err(error) = socket.set_nodelay(true) {
                tracing::debug!(%error, "a connection broke before it was served");
            }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { shared, port, password })
    }

    /// Findings go to the log of the step that runs.
    pub(crate) fn log_to(&self, log: &Log) {
        *guard(&self.shared.log) = Some(log.clone());
    }

    /// What the child tried that it may not.
    pub(crate) fn findings(&self) -> Vec<String> {
        guard(&self.shared.findings).clone()
    }

    /// Whether the child ever had the lock. Terraform takes it before it changes anything.
    pub(crate) fn was_locked(&self) -> bool {
        self.shared.was_locked.load(Ordering::Acquire)
    }

    /// The backend's settings. Never `-backend-config`: terraform stores that in the plan file.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let base = format!("http://127.0.0.1:{}", self.port);
        let settings = [
            ("TF_HTTP_ADDRESS", format!("{base}/state")),
            ("TF_HTTP_UPDATE_METHOD", "PUT".into()),
            ("TF_HTTP_LOCK_ADDRESS", format!("{base}/lock")),
            ("TF_HTTP_LOCK_METHOD", "POST".into()),
            ("TF_HTTP_UNLOCK_ADDRESS", format!("{base}/lock")),
            ("TF_HTTP_UNLOCK_METHOD", "DELETE".into()),
            ("TF_HTTP_USERNAME", USER.into()),
            ("TF_HTTP_PASSWORD", self.password.clone()),
        ];
        settings.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// After the child is gone: everything it wrote is delivered, and a lock that it left behind is given back.
    pub(crate) async fn close(&self) -> Result<(), String> {
        let Backing::Live(callback, delivery) = &self.shared.backing else { return Ok(()) };
        let delivered = delivery.settled().await;
        let left = guard(&self.shared.lock).take();
        if let Some((_, info)) = left {
            self.shared.say("the state lock was left behind and is given back");
            if let Ok(Err(refusal)) = callback.send(|| lock_request(callback, Method::DELETE, &info)).await {
                tracing::warn!(status = %refusal.status, "the state lock could not be given back");
            }
        }
        delivered
    }
}

impl Shared {
    fn say(&self, what: &str) {
        if let Some(log) = guard(&self.log).as_ref() {
            log.line(&format!("plumbline: {what}"));
        }
    }

    fn finding(&self, what: &str) {
        let mut findings = guard(&self.findings);
        if findings.len() < FINDINGS_MAX {
            findings.push(what.to_owned());
            drop(findings);
            tracing::warn!(finding = what, "the child tried what it may not");
            self.say(&format!("finding: {what}"));
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes());
    if given != Some(shared.authorization.as_bytes()) {
        shared.finding("somebody asked the state proxy without its password");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic")]).into_response();
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match (&shared.backing, path.as_str(), method.as_str()) {
        (Backing::Pinned(state), "/state", "GET") => serve(state.as_deref()).await,
        (Backing::Pinned(_), "/lock", "POST" | "DELETE" | "LOCK" | "UNLOCK") => {
            StatusCode::OK.into_response()
        }
        (Backing::Pinned(_), _, _) => {
            shared.finding("the plan tried to write the state; refused");
            (StatusCode::FORBIDDEN, "a plan cannot write state").into_response()
        }
        (Backing::Live(callback, delivery), "/state", "GET") => read(&shared, callback, delivery).await,
        (Backing::Live(_, delivery), "/state", "PUT" | "POST") => write(&shared, delivery, request).await,
        (Backing::Live(callback, _), "/lock", "POST" | "LOCK") => lock(&shared, callback, request).await,
        (Backing::Live(callback, delivery), "/lock", "DELETE" | "UNLOCK") => {
            unlock(&shared, callback, delivery, request).await
        }
        (Backing::Live(..), _, _) => {
            shared.finding(&format!("the child sent {method} {path} to the state proxy; refused"));
            StatusCode::FORBIDDEN.into_response()
        }
    }
}

async fn serve(path: Option<&std::path::Path>) -> Response {
    let Some(path) = path else { return StatusCode::NO_CONTENT.into_response() };
    match tokio::fs::File::open(path).await {
        Ok(file) => {
            let body = Body::from_stream(ReaderStream::new(file));
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Downloads the state that the token may read. `false` if there is none.
pub(crate) async fn download(callback: &Callback, to: &std::path::Path) -> Result<bool, StepError> {
    let make = || callback.request(Method::GET, "state").timeout(Duration::from_secs(900));
    let transient = |reason: String| StepError::Transient(format!("the state could not be read: {reason}"));
    let response = match callback.send(make).await? {
        Ok(response) => response,
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => return Ok(false),
        Err(refusal) => {
            return Err(StepError::Permanent(format!(
                "reading the state was refused with {}",
                refusal.status
            )));
        }
    };
    if response.status() == StatusCode::NO_CONTENT {
        return Ok(false);
    }
    if response.status().is_redirection() {
        let url =
            response.headers().get(header::LOCATION).and_then(|url| url.to_str().ok()).map(str::to_owned);
        let url = url.ok_or_else(|| transient("a redirect without a target".into()))?;
        let signed =
            plumbline_core::protocol::Presigned { method: "GET".into(), url, headers: Default::default() };
        uploads::get(callback, &signed, to).await.map_err(transient)?;
    } else {
        uploads::save(response, to).await.map_err(transient)?;
    }
    Ok(std::fs::metadata(to).is_ok_and(|meta| meta.len() > 0))
}

async fn read(shared: &Shared, callback: &Callback, delivery: &Delivery) -> Response {
    // What the child has written is what it reads.
    if let Err(reason) = delivery.settled().await {
        return (StatusCode::CONFLICT, reason).into_response();
    }
    let path = shared.ours.join(format!("read-{}.json", hex::encode(rand::random::<[u8; 8]>())));
    let response = match download(callback, &path).await {
        Ok(true) => serve(Some(&path)).await,
        Ok(false) => serve(None).await,
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    };
    // It is open for reading, if it is there.
    let _ = std::fs::remove_file(&path);
    response
}

async fn write(shared: &Shared, delivery: &Delivery, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let lock_id = url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "ID")
        .map(|(_, id)| id.into_owned());
    let held = guard(&shared.lock).as_ref().map(|(id, _)| id.clone());
    let Some(lock_id) = lock_id.filter(|id| held.as_ref() == Some(id)) else {
        shared.finding("a state write came without the lock; refused");
        return (StatusCode::CONFLICT, "the state is written under its lock only").into_response();
    };
    let headers = request.headers().clone();
    let place = delivery.spool();
    // A task of its own: a whole body is delivered also when the connection ends before the answer.
    let kept = tokio::spawn(async move {
        match spool(request.into_body(), &place.path, &headers).await {
            Ok(()) => place.deliver(lock_id).await.map_err(|reason| (StatusCode::CONFLICT, reason)),
            Err(reason) => Err((StatusCode::BAD_REQUEST, reason)),
        }
    });
    match kept.await {
        Ok(Ok(())) => StatusCode::OK.into_response(),
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the state was not kept").into_response(),
    }
}

async fn spool(body: Body, path: &std::path::Path, headers: &HeaderMap) -> Result<(), String> {
    let mut stream = body.into_data_stream();
    let mut file = tokio::fs::File::create(path).await.map_err(|error| error.to_string())?;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| error.to_string())?;
        file.write_all(&chunk).await.map_err(|error| error.to_string())?;
    }
    file.sync_all().await.map_err(|error| error.to_string())?;
    let wanted = headers.get("content-md5").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let found = digests(path).map_err(|error| error.to_string())?;
    match wanted {
        Some(wanted) if wanted != STANDARD.encode(found.md5) => Err("Content-MD5 does not match".into()),
        _ => Ok(()),
    }
}

fn lock_request(callback: &Callback, method: Method, info: &Bytes) -> reqwest::RequestBuilder {
    let request = callback.request(method, "state/lock").header("content-type", "application/json");
    request.body(info.clone()).timeout(CALL_TIMEOUT)
}

async fn lock(shared: &Shared, callback: &Callback, request: Request) -> Response {
    let Some((id, info)) = lock_info(request).await else {
        return (StatusCode::BAD_REQUEST, "not a LockInfo").into_response();
    };
    match callback.send(|| lock_request(callback, Method::POST, &info)).await {
        Ok(Ok(_)) => {
            *guard(&shared.lock) = Some((id, info));
            shared.was_locked.store(true, Ordering::Release);
            StatusCode::OK.into_response()
        }
        Ok(Err(refusal)) => {
            (refusal.status, [(header::CONTENT_TYPE, "application/json")], refusal.body).into_response()
        }
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    }
}

async fn unlock(shared: &Shared, callback: &Callback, delivery: &Delivery, request: Request) -> Response {
    let Some((_, info)) = lock_info(request).await else {
        // An empty body is a forced unlock.
        shared.finding("the child tried to force the state lock; refused");
        return StatusCode::FORBIDDEN.into_response();
    };
    let delivered = delivery.settled().await;
    match callback.send(|| lock_request(callback, Method::DELETE, &info)).await {
        Ok(Ok(_)) => {
            *guard(&shared.lock) = None;
            delivered.map_or_else(
                |reason| (StatusCode::CONFLICT, reason).into_response(),
                |()| StatusCode::OK.into_response(),
            )
        }
        Ok(Err(refusal)) => (refusal.status, refusal.body).into_response(),
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    }
}

async fn lock_info(request: Request) -> Option<(String, Bytes)> {
    let body = axum::body::to_bytes(request.into_body(), LOCK_BYTES_MAX).await.ok()?;
    let info: serde_json::Value = serde_json::from_slice(&body).ok()?;
    let id = info.get("ID")?.as_str().filter(|id| !id.is_empty())?.to_owned();
    Some((id, body))
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
