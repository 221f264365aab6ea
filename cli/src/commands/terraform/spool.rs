//! Where states wait that terraform wrote and the server does not have yet: a directory for each call, which outlives it
//! if something is left in it.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use bytes::Bytes;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use plumbline_state_proxy::{Spooled, lock_file, spooled};
use serde::{Deserialize, Serialize};

const ABOUT: &str = "about.json";
const IN_USE: &str = "in-use";

/// Whose states wait here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    /// The server's address.
    pub(super) server: String,
    /// The workspace's id.
    pub(super) workspace_id: String,
}

/// The directory of one call.
#[derive(Debug)]
pub(super) struct Spool {
    directory: PathBuf,
    /// Held by this process and the terraform that it starts: while either lives, nobody takes over.
    _in_use: File,
}

impl Spool {
    /// A fresh one.
    pub(super) fn create(about: &About) -> anyhow::Result<Self> {
        let directory = root()?.join(uuid::Uuid::new_v4().simple().to_string());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory).and_then(|()| {
            let in_use = File::create(directory.join(IN_USE))?;
            in_use.lock()?;
            std::fs::write(directory.join(ABOUT), serde_json::to_vec(about)?)?;
            // The child inherits it, and with it the lock.
            fcntl(&in_use, FcntlArg::F_SETFD(FdFlag::empty()))?;
            Ok(in_use)
        });
        let in_use = made.with_context(|| format!("cannot keep states in {}", directory.display()))?;
        Ok(Self { directory, _in_use: in_use })
    }

    /// Those of killed calls for the same workspace in which something is left.
    pub(super) fn left_for(about: &About) -> anyhow::Result<Vec<Self>> {
        let root = root()?;
        let Ok(entries) = std::fs::read_dir(&root) else { return Ok(Vec::new()) };
        let mut left = Vec::new();
        for directory in entries.flatten().map(|entry| entry.path()) {
            let Ok(text) = std::fs::read(directory.join(ABOUT)) else { continue };
            if serde_json::from_slice::<About>(&text).ok().as_ref() != Some(about) {
                continue;
            }
            let in_use = File::open(directory.join(IN_USE))
                .with_context(|| format!("cannot look into {}", directory.display()))?;
            match in_use.try_lock() {
                Ok(()) => left.push(Self { directory, _in_use: in_use }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Ok(left)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// When the call began, by the clock of the file system.
    pub(super) fn began(&self) -> Option<SystemTime> {
        std::fs::metadata(self.directory.join(ABOUT)).and_then(|meta| meta.modified()).ok()
    }

    /// The newest state that waits: it holds all that earlier ones hold.
    pub(super) fn newest(&self) -> anyhow::Result<Option<Spooled>> {
        let bodies = spooled(&self.directory);
        Ok(bodies.with_context(|| format!("cannot look into {}", self.directory.display()))?.pop())
    }

    /// The LockInfo of the lock that was held, or asked for.
    pub(super) fn lock(&self) -> Option<Bytes> {
        std::fs::read(lock_file(&self.directory)).ok().map(Bytes::from)
    }

    /// Its id.
    pub(super) fn lock_id(&self) -> Option<String> {
        let info: serde_json::Value = serde_json::from_slice(&self.lock()?).ok()?;
        info.get("ID")?.as_str().map(str::to_owned)
    }

    /// Removes it and what is in it.
    pub(super) fn remove(self) {
        if let Err(error) = std::fs::remove_dir_all(&self.directory) {
            eprintln!("{} could not be removed: {error}", self.directory.display());
        }
    }
}

fn root() -> anyhow::Result<PathBuf> {
    Ok(crate::config::directory()?.join("spool"))
}
