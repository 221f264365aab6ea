//! Where the cluster's files lie, and which account owns them.
//!
//! Postgres refuses to run as root, so root's cluster belongs to an unprivileged account, which may not be able to
//! reach a directory below somebody's home.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use nix::unistd::User;
use sha2::{Digest as _, Sha256};
use tokio::process::Command;

use crate::processes::{Account, run_as};

/// Accounts that may own root's cluster, best first. Each exists on every usual Linux or comes with its Postgres.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// A directory that only the server's account can read.
#[derive(Clone, Debug)]
pub struct Place {
    /// Mode 0700, owned by the account.
    pub directory: PathBuf,
    /// `None`: the account of this process.
    pub account: Option<Account>,
}

impl Place {
    /// Prepares `wanted`. If the server's account cannot reach it, a private directory in the temporary directory
    /// stands in, the same one each time.
    pub async fn prepare(wanted: &Path) -> anyhow::Result<Self> {
        let account = server_account()?;
        let directory = claim(wanted, account)?;
        if reaches(account, &directory).await {
            return Ok(Self { directory, account });
        }
        let stand_in = std::env::temp_dir().join(stand_in_name(&directory));
        tracing::warn!(
            wanted = %directory.display(),
            used = %stand_in.display(),
            "the server's account cannot reach the wanted directory: the database lies elsewhere"
        );
        let directory = claim(&stand_in, account)?;
        if !reaches(account, &directory).await {
            bail!("the account of the Postgres server cannot reach {}", directory.display());
        }
        Ok(Self { directory, account })
    }

    /// Gives a file to the server's account.
    pub fn give(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(Account { uid, gid }) = self.account {
            std::os::unix::fs::chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot give {} away", path.display()))?;
        }
        Ok(())
    }
}

fn server_account() -> anyhow::Result<Option<Account>> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    for name in ACCOUNTS {
        if let Some(user) = User::from_name(name)? {
            return Ok(Some(Account { uid: user.uid.as_raw(), gid: user.gid.as_raw() }));
        }
    }
    bail!("Postgres does not run as root, and this machine has none of the accounts {}", ACCOUNTS.join(", "))
}

/// Creates the directory, or takes one that is ours already. Anything else at that path is refused: in a temporary
/// directory others may have put it there.
fn claim(directory: &Path, account: Option<Account>) -> anyhow::Result<PathBuf> {
    if let Some(parent) = directory.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {
            let place = Place { directory: directory.to_owned(), account };
            place.give(directory)?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot create {}", directory.display()));
        }
    }
    let meta = std::fs::symlink_metadata(directory)?;
    let owner = account.map_or_else(|| nix::unistd::geteuid().as_raw(), |account| account.uid);
    if !meta.is_dir() || meta.uid() != owner || meta.permissions().mode() & 0o077 != 0 {
        bail!(
            "{} must be a directory of the user id {owner} with mode 0700; move it away, or choose another one",
            directory.display()
        );
    }
    std::fs::canonicalize(directory).with_context(|| format!("cannot resolve {}", directory.display()))
}

/// Whether the account can work in the directory. Asked by doing it: modes, lists and mounts all have a say.
async fn reaches(account: Option<Account>, directory: &Path) -> bool {
    let mut command = Command::new("/bin/true");
    command.current_dir(directory).kill_on_drop(true);
    run_as(&mut command, account);
    command.status().await.is_ok_and(|status| status.success())
}

fn stand_in_name(wanted: &Path) -> String {
    let digest = Sha256::digest(wanted.as_os_str().as_encoded_bytes());
    format!("plumbline-postgres-{}", hex::encode(&digest[..8]))
}
