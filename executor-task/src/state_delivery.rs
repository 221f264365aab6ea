//! State writes of an apply on their way to `callback`: kept on disk, sent again while it is away, in order.
//!
//! A newer body takes the place of one that has not been begun: terraform's snapshots replace each other. The
//! lock is not given back before everything is delivered or refused for good.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumbline_core::protocol::{StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use tokio::sync::{Notify, watch};

use crate::callback::{Callback, Refusal};
use crate::error::StepError;
use crate::files::{Digests, digests};
use crate::uploads;

/// Larger bodies go through the object store.
const INLINE_BYTES_MAX: u64 = 1 << 20;
const INLINE_TIMEOUT: Duration = Duration::from_secs(60);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long terraform waits for a delivery before it is told "kept" and goes on.
const PATIENCE: Duration = Duration::from_secs(5);

/// A body that terraform wrote.
struct Spooled {
    number: u64,
    path: PathBuf,
    lock_id: String,
}

/// What became of the writes so far.
#[derive(Clone, Default)]
struct Progress {
    /// Every write up to this number is delivered, replaced or refused.
    settled: u64,
    /// The first refusal: what terraform believes to be stored is not.
    refused: Option<String>,
}

struct Shared {
    callback: Callback,
    directory: PathBuf,
    queue: Mutex<Queue>,
    more: Notify,
    progress: watch::Sender<Progress>,
}

#[derive(Default)]
struct Queue {
    last_number: u64,
    waiting: Option<Spooled>,
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Delivery {
    shared: Arc<Shared>,
}

impl Delivery {
    /// Starts the task that sends.
    pub(crate) fn start(callback: Callback, directory: &Path) -> Self {
        let shared = Shared {
            callback,
            directory: directory.to_owned(),
            queue: Mutex::default(),
            more: Notify::new(),
            progress: watch::Sender::default(),
        };
        let delivery = Self { shared: Arc::new(shared) };
        tokio::spawn(send_all(delivery.clone()));
        delivery
    }

    /// A fresh file for a body.
    pub(crate) fn spool(&self) -> (u64, PathBuf) {
        let mut queue = self.queue();
        queue.last_number += 1;
        (queue.last_number, self.shared.directory.join(format!("state-{}.json", queue.last_number)))
    }

    /// Takes a whole body that is on disk. `Err` if it was refused while terraform waited.
    pub(crate) async fn deliver(&self, number: u64, path: PathBuf, lock_id: String) -> Result<(), String> {
        let replaced = self.queue().waiting.replace(Spooled { number, path, lock_id });
        if let Some(replaced) = replaced {
            // Only room on disk is lost.
            let _ = std::fs::remove_file(replaced.path);
        }
        self.shared.more.notify_one();
        let mut progress = self.shared.progress.subscribe();
        match tokio::time::timeout(PATIENCE, progress.wait_for(|progress| progress.settled >= number)).await {
            Ok(Ok(progress)) => progress.refused.clone().map_or(Ok(()), Err),
            // On disk, and sent as soon as somebody listens.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Resolves when everything written so far is settled. `Err` if something was refused.
    pub(crate) async fn settled(&self) -> Result<(), String> {
        let number = self.queue().last_number;
        let mut progress = self.shared.progress.subscribe();
        match progress.wait_for(|progress| progress.settled >= number).await {
            Ok(progress) => progress.refused.clone().map_or(Ok(()), Err),
            Err(_) => Err("the state could not be delivered".into()),
        }
    }

    /// A body that could not even be kept: it counts as settled, terraform was told.
    pub(crate) fn abandon(&self, number: u64) {
        self.shared.progress.send_modify(|progress| progress.settled = progress.settled.max(number));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn send_all(delivery: Delivery) {
    loop {
        let next = delivery.queue().waiting.take();
        let Some(next) = next else {
            delivery.shared.more.notified().await;
            continue;
        };
        let result = send(&delivery.shared.callback, &next).await;
        delivery.shared.progress.send_modify(|progress| {
            progress.settled = next.number;
            match &result {
                // A later accepted body holds everything that a refused one held.
                Ok(()) => progress.refused = None,
                Err(reason) => progress.refused = Some(reason.clone()),
            }
        });
        if result.is_ok() {
            // Only room on disk is lost.
            let _ = std::fs::remove_file(&next.path);
        }
    }
}

/// What the control plane wants to know about a body.
#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    serial: i64,
    #[serde(default)]
    lineage: String,
    #[serde(default)]
    terraform_version: Option<String>,
}

async fn send(callback: &Callback, body: &Spooled) -> Result<(), String> {
    let path = body.path.clone();
    let read = move || -> std::io::Result<(Digests, Meta)> {
        let meta = serde_json::from_reader(std::io::BufReader::new(std::fs::File::open(&path)?))?;
        Ok((digests(&path)?, meta))
    };
    let (found, meta) = tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| format!("the state cannot be read: {error}"))?;
    if found.size_bytes <= INLINE_BYTES_MAX {
        send_inline(callback, body, &found).await
    } else {
        send_large(callback, body, &found, meta).await
    }
}

async fn send_inline(callback: &Callback, body: &Spooled, found: &Digests) -> Result<(), String> {
    let bytes = bytes::Bytes::from(std::fs::read(&body.path).map_err(|error| error.to_string())?);
    let lock_id: String = url::form_urlencoded::byte_serialize(body.lock_id.as_bytes()).collect();
    let path = format!("state?ID={lock_id}");
    let make = || {
        callback
            .request(Method::PUT, &path)
            .header("content-type", "application/json")
            .header("content-md5", STANDARD.encode(found.md5))
            .body(bytes.clone())
            .timeout(INLINE_TIMEOUT)
    };
    patiently(|| callback.send(make)).await?.map(drop).map_err(|refusal| describe(&refusal))
}

async fn send_large(callback: &Callback, body: &Spooled, found: &Digests, meta: Meta) -> Result<(), String> {
    let begin = StateUploadBegin {
        lock_id: body.lock_id.clone(),
        serial: meta.serial,
        lineage: meta.lineage,
        size_bytes: found.size_bytes,
        md5: hex::encode(found.md5),
        sha256: found.sha256,
        terraform_version: meta.terraform_version,
    };
    let mut pause = Duration::from_millis(200);
    loop {
        let make = || callback.request(Method::POST, "state/uploads").json(&begin).timeout(INLINE_TIMEOUT);
        let answer = patiently(|| callback.send(make)).await?.map_err(|refusal| describe(&refusal))?;
        let answer: StateUploadAnswer =
            answer.json().await.map_err(|error| error.without_url().to_string())?;
        match uploads::put(callback, &answer.request, &body.path, found.size_bytes).await {
            Ok(()) => return commit(callback, &answer).await,
            // The URL may have expired while the store was away: ask for another.
            Err(reason) => tracing::warn!(%reason, "a state upload did not work, trying again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_PAUSE_MAX);
    }
}

async fn commit(callback: &Callback, upload: &StateUploadAnswer) -> Result<(), String> {
    let path = format!("state/uploads/{}/commit", upload.upload_id);
    let make = || callback.request(Method::POST, &path).json(&serde_json::json!({})).timeout(INLINE_TIMEOUT);
    let answer = patiently(|| callback.send(make)).await?.map_err(|refusal| describe(&refusal))?;
    match answer.json().await {
        Ok(StateUploadCommit::Accepted) => Ok(()),
        Ok(StateUploadCommit::Quarantined) => {
            Err("the lock was lost; the state is kept in quarantine".into())
        }
        Err(error) => Err(error.without_url().to_string()),
    }
}

/// A state is worth more than the attempt's time limit: only the end of the process stops the sending.
async fn patiently<F>(call: impl Fn() -> F) -> Result<Result<reqwest::Response, Refusal>, String>
where
    F: Future<Output = Result<Result<reqwest::Response, Refusal>, StepError>>,
{
    loop {
        if let Ok(answer) = call().await {
            return Ok(answer);
        }
        tokio::time::sleep(RETRY_PAUSE_MAX).await;
    }
}

fn describe(refusal: &Refusal) -> String {
    let text = String::from_utf8_lossy(&refusal.body);
    let text: String = text.chars().take(300).collect();
    match refusal.status {
        StatusCode::CONFLICT | StatusCode::LOCKED => {
            format!("the state was refused, its lock is not ours: {text}")
        }
        status => format!("the state was refused with {status}: {text}"),
    }
}
