//! The emulator's directory: its lock, its secrets, what a running emulator says about itself.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use plumbline_core::secrets::{Keyring, SecretText};
use serde::{Deserialize, Serialize};

/// What `status` shows: written when everything is ready, removed at a clean stop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// The emulator's process.
    pub pid: u32,
    /// The gateway.
    pub url: String,
    /// The object store.
    pub store_url: String,
    /// The Postgres server's port on loopback.
    pub postgres_port: u16,
    /// Who signs in first.
    pub admin_email: String,
    /// Where the admin's password lies.
    pub password_file: PathBuf,
}

/// Another emulator holds the directory.
#[derive(Debug, thiserror::Error)]
#[error(
    "an emulator already runs on {directory} (process {pid}); stop it with `plumbline-emulator stop --dir {directory}`"
)]
pub struct AlreadyRunning {
    /// The directory.
    pub directory: String,
    /// The process that holds it.
    pub pid: String,
}

/// A directory that this process holds. The lock goes with the process, however it ends.
#[derive(Debug)]
pub(crate) struct Home {
    directory: PathBuf,
    lock: File,
}

impl Home {
    /// Creates the directory if need be and takes it, or says who has it.
    pub(crate) fn take(directory: &Path) -> anyhow::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let directory = std::fs::canonicalize(directory)?;
        let mut lock = open_lock(&directory)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                lock.read_to_string(&mut pid)?;
                let directory = directory.display().to_string();
                bail!(AlreadyRunning { directory, pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the directory"),
        }
        lock.set_len(0)?;
        lock.rewind()?;
        writeln!(lock, "{}", std::process::id())?;
        Ok(Self { directory, lock })
    }

    /// A path below the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A directory below it that only this account can read.
    pub(crate) fn private_directory(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(error).with_context(|| format!("cannot create {}", path.display()))
            }
            _ => Ok(path),
        }
    }

    /// A secret that is made once: 64 hexadecimal digits of chance. The flag says whether it is new.
    pub(crate) fn secret(&self, name: &str) -> anyhow::Result<(String, bool)> {
        let path = self.path(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok((text.trim().to_owned(), false)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let secret = [random_word(), random_word()].concat();
                write_private(&path, format!("{secret}\n").as_bytes())?;
                Ok((secret, true))
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// The keys of the root key in `root-key`, which is made once, and of those before it in `root-key.previous`, one a line.
    pub(crate) fn keyring(&self) -> anyhow::Result<Keyring> {
        let (root, _) = self.secret("root-key")?;
        let path = self.path("root-key.previous");
        let previous = match std::fs::read_to_string(&path) {
            Ok(text) => SecretText::new(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => SecretText::default(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let previous: Vec<&str> = previous.lines().filter(|line| !line.is_empty()).collect();
        Keyring::from_roots(&root, &previous).with_context(|| {
            format!("{} and {} hold the root keys", self.path("root-key").display(), path.display())
        })
    }

    /// The names of root keys that are lost for good, one a line: what they sealed stays as it is, and nobody opens it.
    pub(crate) fn lost_roots(&self) -> anyhow::Result<String> {
        let path = self.path("root-key.lost");
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            read => read.with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Says what runs here.
    pub(crate) fn publish(&self, facts: &Facts) -> anyhow::Result<()> {
        write_private(&self.path("emulator.json"), &serde_json::to_vec_pretty(facts)?)
    }

    /// Gives the directory back after a clean stop.
    pub(crate) fn release(self) -> anyhow::Result<()> {
        let _ = std::fs::remove_file(self.path("emulator.json"));
        self.lock.unlock().context("cannot unlock the directory")
    }
}

/// The facts of the emulator that runs on the directory; `None` if none does.
pub fn find_running(directory: &Path) -> anyhow::Result<Option<Facts>> {
    if !directory.join("lock").exists() {
        return Ok(None);
    }
    match open_lock(directory)?.try_lock() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let text = std::fs::read(directory.join("emulator.json"))
                .context("an emulator is starting or stopping on this directory")?;
            Ok(Some(serde_json::from_slice(&text)?))
        }
        Err(TryLockError::Error(error)) => Err(error).context("cannot look at the lock"),
    }
}

fn open_lock(directory: &Path) -> anyhow::Result<File> {
    let path = directory.join("lock");
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))
}

/// Writes a file that only this account can read. It appears whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let half = Path::new(&name);
    let _ = std::fs::remove_file(half);
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(half)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(half, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// 32 random hexadecimal digits.
pub(crate) fn random_word() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}
