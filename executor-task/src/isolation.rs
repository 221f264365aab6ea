//! What keeps supervisor and child apart: an undumpable supervisor and, where we are root, a user per run.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::RunId;

use crate::settings::TICKET_VARIABLE;

/// Users of runs lie in `FIRST_UID .. FIRST_UID + UIDS`.
const FIRST_UID: u32 = 1_000_000;
const UIDS: u32 = 1 << 28;

/// Makes this process unreadable for others of the same user, and the parent of every orphan below it.
pub(crate) fn harden_supervisor() {
    // SAFETY: prctl with these options takes integers only.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    // Nothing that we write is for others, but for what is opened to the child by name.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}

/// Overwrites the ticket where the kernel shows the environment. Called before any thread runs.
pub(crate) fn forget_ticket() {
    // SAFETY: no other thread exists yet; getenv points into a NUL-terminated string that we may overwrite in place.
    unsafe {
        let value = libc::getenv(TICKET_VARIABLE.as_ptr());
        if !value.is_null() {
            std::ptr::write_bytes(value, b'-', libc::strlen(value));
        }
    }
}

/// Who the child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// A user of its own, without capabilities.
    OwnUser(u32),
    /// Our own user: the child could reach our files. Only where we are not root, or were told so.
    Off,
}

impl Isolation {
    /// The best that this machine allows.
    pub(crate) fn choose(run: RunId, wanted: bool) -> Self {
        if wanted && nix::unistd::geteuid().is_root() {
            let digest = Sha256Digest::of(run.0.as_bytes());
            let number = u32::from_be_bytes([digest.0[0], digest.0[1], digest.0[2], digest.0[3]]);
            Self::OwnUser(FIRST_UID + number % UIDS)
        } else {
            Self::Off
        }
    }

    /// The child's user, if it has its own.
    pub(crate) fn uid(self) -> Option<u32> {
        match self {
            Self::OwnUser(uid) => Some(uid),
            Self::Off => None,
        }
    }

    /// Lets the child read a file or directory of ours, not write it.
    pub(crate) fn share(self, path: &Path) -> io::Result<()> {
        let is_dir = std::fs::symlink_metadata(path)?.is_dir();
        if let Some(gid) = self.uid() {
            std::os::unix::fs::lchown(path, None, Some(gid))?;
            std::fs::set_permissions(
                path,
                std::fs::Permissions::from_mode(if is_dir { 0o750 } else { 0o640 }),
            )?;
        }
        Ok(())
    }

    /// Lets the child add to a directory of ours, but not remove or replace what is ours in it.
    pub(crate) fn open_for_adding(self, path: &Path) -> io::Result<()> {
        if let Some(gid) = self.uid() {
            std::os::unix::fs::chown(path, Some(0), Some(gid))?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1770))?;
        }
        Ok(())
    }

    /// Gives a whole tree to the child. Symlinks are not followed; nobody else writes there yet.
    pub(crate) fn give(self, path: &Path) -> io::Result<()> {
        let Some(uid) = self.uid() else { return Ok(()) };
        let mut pending = vec![path.to_owned()];
        while let Some(path) = pending.pop() {
            std::os::unix::fs::lchown(&path, Some(uid), Some(uid))?;
            if std::fs::symlink_metadata(&path)?.is_dir() {
                for entry in std::fs::read_dir(&path)? {
                    pending.push(entry?.path());
                }
            }
        }
        Ok(())
    }
}

/// Whether users other than the owner can get to a path: every directory above it lets them pass.
pub(crate) fn reachable_by_others(path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .filter(|part| !part.as_os_str().is_empty())
        .all(|part| std::fs::metadata(part).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}
