//! The file that sends the state through the proxy, there only while the tool runs.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Terraform reads files with this ending last, in the order of their names.
const BEGINS: &str = "zz_plumb_";
const ENDS: &str = "_override.tf";
const CONTENT: &str = "terraform {\n  backend \"http\" {}\n}\n";

/// Whether a file of this name is one of ours.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(BEGINS) && name.ends_with(ENDS)
}

/// The file; gone when dropped.
#[derive(Debug)]
pub(super) struct OverrideFile {
    path: PathBuf,
    /// Held while the file is in use: who finds it free finds a file that a killed process left.
    _lock: File,
}

impl OverrideFile {
    /// Writes it next to the configuration.
    pub(super) fn write(directory: &Path) -> anyhow::Result<Self> {
        remove_left(directory);
        let name = format!("{BEGINS}{}{ENDS}", uuid::Uuid::new_v4().simple());
        let path = directory.join(name);
        let written = File::create_new(&path).and_then(|mut file| {
            file.lock()?;
            file.write_all(CONTENT.as_bytes())?;
            Ok(file)
        });
        let lock = written.with_context(|| {
            format!(
                "cannot write {} (to do without it, write `terraform {{ backend \"http\" {{}} }}` into the configuration)",
                path.display()
            )
        })?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for OverrideFile {
    fn drop(&mut self) {
        // Whoever removed it before us did no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What killed processes left here. Best effort: it says the same as ours.
fn remove_left(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_free = |path: &Path| {
            File::open(path).is_ok_and(|file| !matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
        };
        if is_ours(&name) && is_free(&path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}
