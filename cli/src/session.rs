//! Sessions and keys on disk: one file per server, readable by its owner alone.
//!
//! A file is replaced as a whole, so a reader sees the old session or the new one. A process that renews a session
//! holds the server's lock file meanwhile.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::api::Server;

/// A signed-in person at one server.
#[derive(Clone, Serialize, Deserialize)]
pub struct Session {
    /// The server's address.
    pub server: String,
    /// Who signed in.
    pub email: String,
    /// Sent with each call; lives for minutes.
    pub access_token: String,
    /// Buys the next pair, once.
    pub refresh_token: String,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("server", &self.server)
            .field("email", &self.email)
            .finish_non_exhaustive()
    }
}

/// The sessions of this person on this machine.
#[derive(Clone, Debug)]
pub struct SessionStore {
    directory: PathBuf,
}

impl SessionStore {
    /// The store in a configuration directory, which need not exist yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The session at a server.
    pub fn find(&self, server: &Server) -> anyhow::Result<Option<Session>> {
        let path = self.path(server, "json");
        let Some(text) = read(&path)? else { return Ok(None) };
        let session = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged; remove it and sign in again", path.display()))?;
        Ok(Some(session))
    }

    /// The API key that is kept for a server instead of a session.
    pub fn find_key(&self, server: &Server) -> anyhow::Result<Option<String>> {
        Ok(read(&self.path(server, "key"))?.map(|text| text.trim().to_owned()))
    }

    /// Stores the session at a server. A key that was kept there is forgotten.
    pub fn save(&self, server: &Server, session: &Session) -> anyhow::Result<()> {
        self.replace(&self.path(server, "json"), &serde_json::to_vec(session)?)?;
        self.forget(server, "key").map(drop)
    }

    /// Stores an API key instead of a session.
    pub fn save_key(&self, server: &Server, key: &str) -> anyhow::Result<()> {
        self.replace(&self.path(server, "key"), key.as_bytes())?;
        self.forget(server, "json").map(drop)
    }

    /// Forgets what is kept for a server. `false`: there was nothing.
    pub fn remove(&self, server: &Server) -> anyhow::Result<bool> {
        Ok(self.forget(server, "json")? | self.forget(server, "key")?)
    }

    fn forget(&self, server: &Server, extension: &str) -> anyhow::Result<bool> {
        let path = self.path(server, extension);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot remove {}", path.display())),
        }
    }

    /// The server that was signed in to last: the default of later calls.
    pub fn current(&self) -> anyhow::Result<Option<Server>> {
        let Some(text) = read(&self.directory.join("server"))? else { return Ok(None) };
        Ok(text.trim().parse().ok())
    }

    /// Makes a server the default.
    pub fn set_current(&self, server: &Server) -> anyhow::Result<()> {
        self.replace(&self.directory.join("server"), format!("{server}\n").as_bytes())
    }

    /// Waits until no other process renews the session at this server; freed when dropped.
    pub async fn lock(&self, server: &Server) -> anyhow::Result<File> {
        self.ensure_directory()?;
        let path = self.path(server, "lock");
        let locked = tokio::task::spawn_blocking(move || {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            file.lock()?;
            Ok::<_, std::io::Error>(file)
        });
        locked.await?.context("cannot lock the session's file")
    }

    fn path(&self, server: &Server, extension: &str) -> PathBuf {
        let mut name = String::new();
        for byte in server.to_string().bytes() {
            if byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-' {
                name.push(char::from(byte));
            } else {
                name.push_str(&format!("%{byte:02X}"));
            }
        }
        self.directory.join("sessions").join(format!("{name}.{extension}"))
    }

    fn ensure_directory(&self) -> anyhow::Result<()> {
        let sessions = self.directory.join("sessions");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&sessions).with_context(|| {
            format!("cannot create {}; set PLUMB_CONFIG_DIR to another place", sessions.display())
        })
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        self.ensure_directory()?;
        let fresh = path.with_extension(format!("{}.new", uuid::Uuid::new_v4().simple()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| std::fs::rename(&fresh, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
