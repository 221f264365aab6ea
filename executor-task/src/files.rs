//! Files that the child may have made: never followed through a symlink, never anything but a regular file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens what the child left. `None` if there is nothing.
pub(crate) fn find_left_by_child(path: &Path) -> io::Result<Option<File>> {
    let opened = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(Some(file))
}

/// A small text that the repository or the child wrote. `None` if there is nothing.
pub(crate) fn read_left_by_child(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = find_left_by_child(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("larger than {bytes_max} bytes")));
    }
    Ok(Some(bytes))
}

/// Copies what the child left to a place of ours. Returns whether there was anything.
pub(crate) fn copy_left_by_child(from: &Path, to: &Path) -> io::Result<bool> {
    let Some(mut source) = find_left_by_child(from)? else { return Ok(false) };
    let mut target = File::create(to)?;
    io::copy(&mut source, &mut target)?;
    target.sync_all()?;
    Ok(true)
}
