//! The proxy's answers to terraform, each by what stands behind it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

use super::{Backing, Child, Live, Shared, guard};
use crate::delivery::Kept;
use crate::digests::{Digesting, Digests};
use crate::locks::{force_lock_open, give_lock_back, take_lock};
use crate::reading::{ReadError, download};
use crate::transfers::create_private;

const LOCK_BYTES_MAX: usize = 64 << 10;
const PIECE_BYTES: usize = 64 << 10;
/// Between two tries to read, after the upstream's own patience.
const READ_PAUSE: Duration = Duration::from_secs(1);
/// An unlock that waits longer is explained.
const SILENCE_MAX: Duration = Duration::from_secs(5);

pub(super) async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
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
        (Backing::Live(live), "/state", "GET") => read(&shared, live).await,
        (Backing::Live(live), "/state", "PUT" | "POST") => write(&shared, live, request).await,
        (Backing::Live(live), "/lock", "POST" | "LOCK") => lock(&shared, live, request).await,
        (Backing::Live(live), "/lock", "DELETE" | "UNLOCK") => unlock(&shared, live, request).await,
        (Backing::Live(_), _, _) => {
            shared.finding(&format!("the child sent {method} {path} to the state proxy; refused"));
            StatusCode::FORBIDDEN.into_response()
        }
    }
}

async fn serve(path: Option<&Path>) -> Response {
    let Some(path) = path else { return StatusCode::NO_CONTENT.into_response() };
    match tokio::fs::File::open(path).await {
        Ok(file) => {
            let body = Body::from_stream(ReaderStream::with_capacity(file, PIECE_BYTES));
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn read(shared: &Shared, live: &Live) -> Response {
    // What the child has written is what it reads.
    if let Err(reason) = live.delivery.settled().await {
        return (StatusCode::CONFLICT, reason).into_response();
    }
    let path =
        live.delivery.directory().join(format!("read-{}.json", hex::encode(rand::random::<[u8; 8]>())));
    let response = match patiently(shared, live, &path).await {
        Ok(true) => serve(Some(&path)).await,
        Ok(false) => serve(None).await,
        Err(error) => {
            // Terraform shows the status and drops the reason.
            shared.say(&error.to_string());
            let status = match &error {
                ReadError::Refused(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                    StatusCode::FORBIDDEN
                }
                ReadError::Refused(refusal) => refusal.status,
                ReadError::Passing(_) => StatusCode::FORBIDDEN,
            };
            (status, error.to_string()).into_response()
        }
    };
    // It is open for reading, if it is there.
    let _ = std::fs::remove_file(&path);
    response
}

/// Under the lock terraform has changed things already: it reads once more before it writes a first state, and without an
/// answer it gives up.
async fn patiently(shared: &Shared, live: &Live, to: &Path) -> Result<bool, ReadError> {
    let began = Instant::now();
    loop {
        let downloaded = download(&*live.upstream, to).await;
        let is_locked = guard(&shared.lock).is_some();
        match downloaded {
            Err(ReadError::Passing(reason))
                if is_locked && live.unlock_patience.is_none_or(|patience| began.elapsed() < patience) =>
            {
                shared.say(&format!("waiting for the control plane: {reason}"));
            }
            downloaded => return downloaded,
        }
        tokio::time::sleep(READ_PAUSE).await;
    }
}

async fn write(shared: &Shared, live: &Live, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let lock_id = url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "ID")
        .map(|(_, id)| id.into_owned());
    let held = guard(&shared.lock).as_ref().map(|(id, _)| id.clone());
    let may_go_without = lock_id.is_none() && live.child == Child::Person;
    if !may_go_without && (lock_id.is_none() || lock_id != held) {
        shared.finding("a state write came without the lock; refused");
        return (StatusCode::CONFLICT, "the state is written under its lock only").into_response();
    }
    let headers = request.headers().clone();
    let place = live.delivery.spool();
    // A task of its own: a whole body is delivered also when the connection ends before the answer.
    let kept = tokio::spawn(async move {
        match spool(request.into_body(), &place.path, &headers).await {
            Ok(found) => place.deliver(found, lock_id).await.map_err(|reason| (StatusCode::CONFLICT, reason)),
            Err(reason) => Err((StatusCode::BAD_REQUEST, reason)),
        }
    });
    match kept.await {
        Ok(Ok(Kept::Delivered)) => StatusCode::OK.into_response(),
        Ok(Ok(Kept::OnDisk)) => {
            shared.say("the control plane does not take the state yet; it is kept on disk and sent again");
            StatusCode::OK.into_response()
        }
        Ok(Err((status, reason))) => {
            shared.say(&reason);
            (status, reason).into_response()
        }
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the state was not kept").into_response(),
    }
}

async fn spool(body: Body, path: &Path, headers: &HeaderMap) -> Result<Digests, String> {
    let mut stream = body.into_data_stream();
    let mut file = create_private(path).await.map_err(|error| error.to_string())?;
    let mut digesting = Digesting::default();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| error.to_string())?;
        digesting.update(&chunk);
        file.write_all(&chunk).await.map_err(|error| error.to_string())?;
    }
    file.sync_all().await.map_err(|error| error.to_string())?;
    let found = digesting.finish();
    let wanted = headers.get("content-md5").and_then(|value| value.to_str().ok());
    match wanted {
        Some(wanted) if wanted != STANDARD.encode(found.md5) => Err("Content-MD5 does not match".into()),
        _ => Ok(found),
    }
}

async fn lock(shared: &Shared, live: &Live, request: Request) -> Response {
    let Some((id, info)) = body_of(request).await.and_then(lock_info) else {
        return (StatusCode::BAD_REQUEST, "not a LockInfo").into_response();
    };
    if let Err(error) = live.remember_lock(&info) {
        return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
    }
    match take_lock(&*live.upstream, info.clone()).await {
        Ok(Ok(_)) => {
            *guard(&shared.lock) = Some((id, info));
            shared.was_locked.store(true, Ordering::Release);
            StatusCode::OK.into_response()
        }
        Ok(Err(refusal)) => {
            live.forget_lock();
            // Of another holder terraform tells itself.
            if refusal.status != StatusCode::LOCKED {
                shared.say(&format!("the lock was refused with {}: {}", refusal.status, refusal.reason()));
            }
            (refusal.status, [(header::CONTENT_TYPE, "application/json")], refusal.body).into_response()
        }
        // It may have been given all the same: the record stays.
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    }
}

async fn unlock(shared: &Shared, live: &Live, request: Request) -> Response {
    let Some(body) = body_of(request).await else {
        return (StatusCode::BAD_REQUEST, "not a LockInfo").into_response();
    };
    let Some((_, info)) = lock_info(body.clone()) else {
        return match live.child {
            Child::Person if body.is_empty() => force_unlock(shared, live).await,
            Child::Person => (StatusCode::BAD_REQUEST, "not a LockInfo").into_response(),
            Child::Run => {
                // An empty body is a forced unlock.
                shared.finding("the child tried to force the state lock; refused");
                StatusCode::FORBIDDEN.into_response()
            }
        };
    };
    let Some(delivered) = settle(shared, live).await else {
        let reason =
            "the control plane does not take the state: it stays on disk, and the lock is kept for it";
        return (StatusCode::CONFLICT, reason).into_response();
    };
    match give_lock_back(&*live.upstream, info).await {
        Ok(Ok(_)) => {
            *guard(&shared.lock) = None;
            live.forget_lock();
            delivered.map_or_else(
                |reason| (StatusCode::CONFLICT, reason).into_response(),
                |()| StatusCode::OK.into_response(),
            )
        }
        Ok(Err(refusal)) => {
            shared.say(&format!("the unlock was refused with {}: {}", refusal.status, refusal.reason()));
            (refusal.status, refusal.body).into_response()
        }
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    }
}

/// Waits until everything written is settled; `None` if that takes longer than it may.
async fn settle(shared: &Shared, live: &Live) -> Option<Result<(), String>> {
    let settled = live.delivery.settled();
    tokio::pin!(settled);
    if let Ok(delivered) = tokio::time::timeout(SILENCE_MAX, &mut settled).await {
        return Some(delivered);
    }
    shared.say("the lock is given back once the control plane has taken the state; waiting for it");
    match live.unlock_patience {
        None => Some(settled.await),
        Some(patience) => tokio::time::timeout(patience.saturating_sub(SILENCE_MAX), settled).await.ok(),
    }
}

/// The person's own decision; the control plane asks for an admin and records it.
async fn force_unlock(shared: &Shared, live: &Live) -> Response {
    match force_lock_open(&*live.upstream).await {
        Ok(Ok(_)) => StatusCode::OK.into_response(),
        Ok(Err(refusal)) => {
            shared.say(&format!("the unlock was refused with {}: {}", refusal.status, refusal.reason()));
            (refusal.status, refusal.body).into_response()
        }
        Err(error) => (StatusCode::FORBIDDEN, error.to_string()).into_response(),
    }
}

async fn body_of(request: Request) -> Option<Bytes> {
    axum::body::to_bytes(request.into_body(), LOCK_BYTES_MAX).await.ok()
}

fn lock_info(body: Bytes) -> Option<(String, Bytes)> {
    let info: serde_json::Value = serde_json::from_slice(&body).ok()?;
    let id = info.get("ID")?.as_str().filter(|id| !id.is_empty())?.to_owned();
    Some((id, body))
}
