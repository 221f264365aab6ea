//! State writes on their way to the control plane: kept on disk, sent again while it is away, in order.
//!
//! A newer body takes the place of one that has not been begun: terraform's snapshots replace each other. The
//! lock is not given back before everything is delivered or refused for good.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::digests::Digests;
use crate::sending::{Unsent, send_file};
use crate::spools;
use crate::upstream::Upstream;

/// How long terraform waits for a delivery before it is told "kept" and goes on.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries, after the upstream's own patience.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// A body that terraform wrote.
struct Waiting {
    number: u64,
    /// Earlier bodies that this one stands for.
    replaces: Vec<u64>,
    path: PathBuf,
    digests: Digests,
    lock_id: Option<String>,
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
    upstream: Arc<dyn Upstream>,
    directory: PathBuf,
    queue: Mutex<Queue>,
    more: Notify,
    progress: watch::Sender<Progress>,
}

#[derive(Default)]
struct Queue {
    last_number: u64,
    waiting: Option<Waiting>,
}

/// What terraform may be told about a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The control plane has it, or a newer one.
    Delivered,
    /// It is on disk, and sent as soon as somebody listens.
    OnDisk,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Delivery {
    shared: Arc<Shared>,
}

impl Delivery {
    /// Starts the task that sends what is put into a directory of its own.
    pub fn start(upstream: Arc<dyn Upstream>, directory: &Path) -> Self {
        let shared = Shared {
            upstream,
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
        let path = spools::part(&self.shared.directory, number);
        Spool { delivery: self.clone(), number, path, is_whole: false }
    }

    /// Where the bodies lie.
    pub(crate) fn directory(&self) -> &Path {
        &self.shared.directory
    }

    async fn deliver(&self, mut body: Waiting) -> Result<Kept, String> {
        let number = body.number;
        {
            let mut queue = self.queue();
            if let Some(replaced) = queue.waiting.take() {
                remove(&replaced.path);
                body.replaces = replaced.replaces;
                body.replaces.push(replaced.number);
            }
            queue.waiting = Some(body);
        }
        self.shared.more.notify_one();
        let mut progress = self.shared.progress.subscribe();
        let settled = progress.wait_for(|progress| !progress.open.contains(&number));
        match tokio::time::timeout(PATIENCE, settled).await {
            Ok(Ok(progress)) => progress.refused.clone().map_or(Ok(Kept::Delivered), Err),
            Ok(Err(_)) | Err(_) => Ok(Kept::OnDisk),
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
    pub(crate) async fn deliver(mut self, digests: Digests, lock_id: Option<String>) -> Result<Kept, String> {
        // Under the name of a whole body it outlives this process.
        let path = spools::whole(&self.delivery.shared.directory, self.number);
        std::fs::rename(&self.path, &path).map_err(|error: io::Error| error.to_string())?;
        self.is_whole = true;
        let body = Waiting { number: self.number, replaces: Vec::new(), path, digests, lock_id };
        self.delivery.deliver(body).await
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if !self.is_whole {
            remove(&self.path);
            self.delivery.shared.progress.send_modify(|progress| {
                progress.open.remove(&self.number);
            });
        }
    }
}

async fn send_all(delivery: Delivery) {
    let mut refused: Vec<PathBuf> = Vec::new();
    loop {
        let next = delivery.queue().waiting.take();
        let Some(next) = next else {
            delivery.shared.more.notified().await;
            continue;
        };
        let result = send(&*delivery.shared.upstream, &next).await;
        // Before terraform is told: what lies here is what the control plane does not have.
        match &result {
            Ok(()) => {
                remove(&next.path);
                refused.drain(..).for_each(|path| remove(&path));
            }
            Err(Unsent::Quarantined(_)) => remove(&next.path),
            Err(Unsent::Refused(_) | Unsent::Away(_)) => refused.push(next.path.clone()),
        }
        delivery.shared.progress.send_modify(|progress| {
            progress.open.retain(|number| *number != next.number && !next.replaces.contains(number));
            // A later accepted body holds everything that a refused one held.
            progress.refused = result.as_ref().err().map(ToString::to_string);
        });
    }
}

fn remove(path: &Path) {
    // Only room on disk is lost.
    let _ = std::fs::remove_file(path);
}

/// A state is worth more than anybody's time limit: only the end of the process stops the sending.
async fn send(upstream: &dyn Upstream, body: &Waiting) -> Result<(), Unsent> {
    loop {
        match send_file(upstream, &body.path, &body.digests, body.lock_id.as_deref()).await {
            Ok(_) => return Ok(()),
            Err(Unsent::Away(reason)) => tracing::warn!(%reason, "the state waits for the control plane"),
            Err(unsent) => return Err(unsent),
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use reqwest::Response;

    use super::*;
    use crate::digests::digests;
    use crate::upstream::{Away, Call, Refusal};

    /// Never answers.
    struct Nobody(reqwest::Client);

    #[async_trait]
    impl Upstream for Nobody {
        async fn send(&self, _: &Call) -> Result<Result<Response, Refusal>, Away> {
            Err(Away("nobody is there".into()))
        }
        fn http(&self) -> &reqwest::Client {
            &self.0
        }
        fn trusts(&self, _: &str) -> bool {
            true
        }
    }

    fn delivery(directory: &Path) -> Delivery {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Delivery::start(Arc::new(Nobody(reqwest::Client::new())), directory)
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
        let found = digests(&kept.path).expect("readable");
        let waiting = tokio::spawn(kept.deliver(found, Some("lock".into())));
        let broken = delivery.spool();
        std::fs::write(&broken.path, r#"{"serial":2"#).expect("written");
        drop(broken);
        assert!(!is_settled(&delivery).await, "the first body is still on its way");
        let left = spools::spooled(directory.path()).expect("readable");
        assert_eq!(
            left.iter().map(|body| body.number).collect::<Vec<_>>(),
            [1],
            "only whole bodies are kept"
        );
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
