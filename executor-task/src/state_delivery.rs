//! State writes of an apply on their way to `callback`: kept on disk, sent again while it is away, in order.
//!
//! A newer body takes the place of one that has not been begun: terraform's snapshots replace each other. The
//! lock is not given back before everything is delivered or refused for good.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumbline_core::protocol::{StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use tokio::sync::{Notify, watch};

use crate::callback::{Callback, RETRY_PAUSE_MAX, Refusal};
use crate::error::StepError;
use crate::files::{Digests, digests};
use crate::pauses::Pauses;
use crate::uploads;

/// Larger bodies go through the object store.
const INLINE_BYTES_MAX: u64 = 1 << 20;
const INLINE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long terraform waits for a delivery before it is told "kept" and goes on.
const PATIENCE: Duration = Duration::from_secs(5);

/// A body that terraform wrote.
struct Spooled {
    number: u64,
    /// Earlier bodies that this one stands for.
    replaces: Vec<u64>,
    path: PathBuf,
    lock_id: String,
}

/// What became of the writes so far.
#[derive(Clone, Default)]
struct Progress {
    /// Writes that are neither delivered nor refused nor given up.
    open: BTreeSet<u64>,
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

    /// A fresh file for a body. Nothing counts as settled until it is delivered or dropped.
    pub(crate) fn spool(&self) -> Spool {
        let mut queue = self.queue();
        queue.last_number += 1;
        let number = queue.last_number;
        self.shared.progress.send_modify(|progress| {
            progress.open.insert(number);
        });
        let path = self.shared.directory.join(format!("state-{number}.json"));
        Spool { delivery: self.clone(), number, path, is_whole: false }
    }

    async fn deliver(&self, number: u64, path: PathBuf, lock_id: String) -> Result<(), String> {
        {
            let mut queue = self.queue();
            let mut replaces = Vec::new();
            if let Some(replaced) = queue.waiting.take() {
                // Only room on disk is lost.
                let _ = std::fs::remove_file(replaced.path);
                replaces = replaced.replaces;
                replaces.push(replaced.number);
            }
            queue.waiting = Some(Spooled { number, replaces, path, lock_id });
        }
        self.shared.more.notify_one();
        let mut progress = self.shared.progress.subscribe();
        let settled = progress.wait_for(|progress| !progress.open.contains(&number));
        match tokio::time::timeout(PATIENCE, settled).await {
            Ok(Ok(progress)) => progress.refused.clone().map_or(Ok(()), Err),
            // On disk, and sent as soon as somebody listens.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Resolves when everything written so far is settled. `Err` if something was refused.
    pub(crate) async fn settled(&self) -> Result<(), String> {
        let number = self.queue().last_number;
        let mut progress = self.shared.progress.subscribe();
        let settled = progress.wait_for(|progress| progress.open.first().is_none_or(|open| *open > number));
        match settled.await {
            Ok(progress) => progress.refused.clone().map_or(Ok(()), Err),
            Err(_) => Err("the state could not be delivered".into()),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for one body. Dropped without being delivered, it is given up: terraform was not told that it is kept.
pub(crate) struct Spool {
    delivery: Delivery,
    number: u64,
    /// Where the body goes.
    pub(crate) path: PathBuf,
    is_whole: bool,
}

impl Spool {
    /// Takes the whole body that is on disk. `Err` if it was refused while terraform waited.
    pub(crate) async fn deliver(mut self, lock_id: String) -> Result<(), String> {
        self.is_whole = true;
        self.delivery.deliver(self.number, self.path.clone(), lock_id).await
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if !self.is_whole {
            self.delivery.shared.progress.send_modify(|progress| {
                progress.open.remove(&self.number);
            });
        }
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
            progress.open.retain(|number| *number != next.number && !next.replaces.contains(number));
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
    let mut pauses = Pauses::up_to(RETRY_PAUSE_MAX);
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
        pauses.pause().await;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(directory: &Path) -> Delivery {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Nobody listens on port 9: nothing is ever delivered.
        Delivery::start(Callback::to_nobody("http://127.0.0.1:9"), directory)
    }

    async fn is_settled(delivery: &Delivery) -> bool {
        tokio::time::timeout(Duration::from_millis(50), delivery.settled()).await.is_ok()
    }

    #[tokio::test]
    async fn a_body_that_broke_off_does_not_settle_an_earlier_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let delivery = delivery(directory.path());
        assert!(is_settled(&delivery).await, "nothing was written");
        let kept = delivery.spool();
        std::fs::write(&kept.path, r#"{"serial":1,"lineage":"l"}"#).expect("written");
        let waiting = tokio::spawn(kept.deliver("lock".into()));
        let broken = delivery.spool();
        drop(broken);
        assert!(!is_settled(&delivery).await, "the first body is still on its way");
        waiting.abort();
    }

    #[tokio::test]
    async fn a_body_that_is_being_written_holds_up_the_unlock_until_it_is_given_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let delivery = delivery(directory.path());
        let begun = delivery.spool();
        assert!(!is_settled(&delivery).await);
        drop(begun);
        assert!(is_settled(&delivery).await);
    }
}
