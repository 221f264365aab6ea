//! What the child talks to.
//!
//! In a *plan* of a run it serves one pinned state, answers locks itself and refuses every write. Everything else is
//! *live*: it locks, reads and writes the workspace's state.

mod answers;

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::serve::ListenerExt as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::delivery::Delivery;
use crate::locks::give_lock_back;
use crate::spools::lock_file;
use crate::upstream::Upstream;

const USER: &str = "plumbline";
/// A step's summary has room for these.
const FINDINGS_MAX: usize = 20;

/// What stands behind the proxy.
pub enum Backing {
    /// One state version on disk, or none. Read only.
    Pinned(Option<PathBuf>),
    /// The workspace's state.
    Live(Live),
}

/// The workspace's state.
pub struct Live {
    /// The way to it.
    pub upstream: Arc<dyn Upstream>,
    /// Of what is written.
    pub delivery: Delivery,
    /// Whose terraform it is.
    pub child: Child,
    /// How long an unlock waits for what is not delivered yet; `None` waits for ever.
    pub unlock_patience: Option<Duration>,
}

/// Whose terraform it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// A run's: it writes under its lock and never takes another's away.
    Run,
    /// A person's: the control plane decides whether they may write without a lock, and force one.
    Person,
}

type Say = Box<dyn Fn(&str) + Send + Sync>;

struct Shared {
    backing: Backing,
    authorization: String,
    say: Mutex<Option<Say>>,
    lock: Mutex<Option<(String, Bytes)>>,
    was_locked: AtomicBool,
    findings: Mutex<Vec<String>>,
}

/// A running proxy.
#[derive(Clone)]
pub struct StateProxy {
    shared: Arc<Shared>,
    port: u16,
    password: String,
}

impl StateProxy {
    /// Listens on a port of its own. The password is what terraform sends to every HTTP backend that its code names without
    /// one, too; an empty one is replaced by one that is good here only.
    pub async fn start(backing: Backing, password: &str) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let password = match password {
            "" => hex::encode(rand::random::<[u8; 32]>()),
            given => given.to_owned(),
        };
        let shared = Arc::new(Shared {
            backing,
            authorization: format!("Basic {}", STANDARD.encode(format!("{USER}:{password}"))),
            say: Mutex::default(),
            lock: Mutex::default(),
            was_locked: AtomicBool::new(false),
            findings: Mutex::default(),
        });
        let router = Router::new().fallback(answers::answer).with_state(Arc::clone(&shared));
        // Otherwise the second half of an answer waits until terraform acknowledges the first: 40 ms.
        let listener = listener.tap_io(|socket| {
            if let Err(error) = socket.set_nodelay(true) {
                tracing::debug!(%error, "a connection broke before it was served");
            }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { shared, port, password })
    }

    /// Where what people should know goes, from now on.
    pub fn tell(&self, say: impl Fn(&str) + Send + Sync + 'static) {
        *guard(&self.shared.say) = Some(Box::new(say));
    }

    /// What the child tried that it may not.
    pub fn findings(&self) -> Vec<String> {
        guard(&self.shared.findings).clone()
    }

    /// Whether the child ever had the lock. Terraform takes it before it changes anything.
    pub fn was_locked(&self) -> bool {
        self.shared.was_locked.load(Ordering::Acquire)
    }

    /// The backend's settings. Never `-backend-config`: terraform stores that in the plan file.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
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
    pub async fn close(&self) -> Result<(), String> {
        let Backing::Live(live) = &self.shared.backing else { return Ok(()) };
        let delivered = live.delivery.settled().await;
        let left = guard(&self.shared.lock).take();
        if let Some((_, info)) = left {
            self.shared.say("the state lock was left behind and is given back");
            match give_lock_back(&*live.upstream, info).await {
                Ok(Ok(_)) => live.forget_lock(),
                Ok(Err(refusal)) => {
                    tracing::warn!(status = %refusal.status, "the state lock could not be given back");
                }
                Err(away) => tracing::warn!(%away, "the state lock could not be given back"),
            }
        }
        delivered
    }
}

impl Shared {
    fn say(&self, what: &str) {
        if let Some(say) = guard(&self.say).as_ref() {
            say(what);
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

impl Live {
    /// On disk before the control plane gives it: a lock that outlives this process is then known.
    fn remember_lock(&self, info: &Bytes) -> std::io::Result<()> {
        std::fs::write(lock_file(self.delivery.directory()), info)
    }

    fn forget_lock(&self) {
        // It may never have been kept.
        let _ = std::fs::remove_file(lock_file(self.delivery.directory()));
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
