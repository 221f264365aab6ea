//! Files of the emulator's directory.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Writes a file that only this account can read. It appears whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let half = Path::new(&name);
    let _ = std::fs::remove_file(half);
    std::fs::File::options()
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
