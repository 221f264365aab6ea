//! What lies in a directory of the proxy: bodies that wait for the control plane, and the lock that they belong to.
//! It is enough to deliver them after the process that spooled them is gone.

use std::io;
use std::path::{Path, PathBuf};

const LOCK_NAME: &str = "lock.json";
const BEGINS: &str = "state-";
/// Only what was written to its end has this ending.
const WHOLE: &str = ".json";

/// A body that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spooled {
    /// The order of writing.
    pub number: u64,
    /// The state itself.
    pub path: PathBuf,
}

/// Where the LockInfo is kept while the lock is held.
pub fn lock_file(directory: &Path) -> PathBuf {
    directory.join(LOCK_NAME)
}

/// A body that is being written.
pub(crate) fn part(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{BEGINS}{number}.part"))
}

/// A whole body.
pub(crate) fn whole(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{BEGINS}{number}{WHOLE}"))
}

/// The whole bodies of a directory, oldest first.
pub fn spooled(directory: &Path) -> io::Result<Vec<Spooled>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix(BEGINS).and_then(|name| name.strip_suffix(WHOLE)?.parse().ok());
        found.extend(number.map(|number| Spooled { number, path: path.clone() }));
    }
    found.sort_by_key(|body| body.number);
    Ok(found)
}
