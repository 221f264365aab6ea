//! Where the files of an attempt lie while it runs on this machine, and their removal where its executor cannot do that.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The directory below the attempt's own.
const BELOW: &str = "work";
/// The file that names the place, if it is elsewhere.
const PLACE: &str = "work-place";
const PREFIX: &str = "plumbline-work-";

/// A place for the attempt's files. As root, a plan's code has a user of its own who could not get into a private
/// directory: then it lies among the temporary files, where others can pass through and see nothing.
pub(super) fn make(attempt: &Path) -> io::Result<PathBuf> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(attempt.join(BELOW));
    }
    let made = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
    std::fs::set_permissions(made.path(), std::fs::Permissions::from_mode(0o711))?;
    std::fs::write(attempt.join(PLACE), made.path().as_os_str().as_encoded_bytes())?;
    Ok(made.keep())
}

/// Removes what is left there: state, plan and credentials, where the executor was killed.
pub(super) fn remove(attempt: &Path) {
    let elsewhere = std::fs::read_to_string(attempt.join(PLACE)).ok().map(PathBuf::from);
    let is_ours = |place: &PathBuf| {
        place.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    };
    for place in [Some(attempt.join(BELOW)), elsewhere.filter(is_ours)].into_iter().flatten() {
        match std::fs::remove_dir_all(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::error!(%error, place = %place.display(), "files of an executor could not be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
