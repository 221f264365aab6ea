//! What keeps supervisor and child apart: an undumpable supervisor and, where we are root, a user per run.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::RunId;
use plumbline_sts::SECRET_VARIABLES;

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

/// Overwrites the ticket, and what leads to the credentials of our role, where the kernel shows the environment. Called
/// before any thread runs.
pub(crate) fn forget_secrets() {
    for name in SECRET_VARIABLES.into_iter().chain([TICKET_VARIABLE]) {
        // SAFETY: no other thread exists yet; getenv points into a NUL-terminated string that we may overwrite in place.
        unsafe {
            let value = libc::getenv(name.as_ptr());
            if !value.is_null() {
                std::ptr::write_bytes(value, b'-', libc::strlen(value));
            }
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
        let digest = Sha256Digest::of(run.0.as_bytes());
        let number = u32::from_be_bytes([digest.0[0], digest.0[1], digest.0[2], digest.0[3]]);
        let uid = FIRST_UID + number % UIDS;
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let may = may_change_users(&read("/proc/self/status")) && is_mapped(&read("/proc/self/uid_map"), uid);
        if wanted && nix::unistd::geteuid().is_root() && may { Self::OwnUser(uid) } else { Self::Off }
    }

    /// The child's user, if it has its own.
    pub(crate) fn uid(self) -> Option<u32> {
        match self {
            Self::OwnUser(uid) => Some(uid),
            Self::Off => None,
        }
    }

    /// Whether a step that needs no network can be run without one.
    pub(crate) fn can_close_network(self) -> bool {
        const SYS_ADMIN: u64 = 1 << 21;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        self.uid().is_some() && has_capabilities(&status, SYS_ADMIN)
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

/// Whether root still has what a change of user needs; containers often take it away.
fn may_change_users(status: &str) -> bool {
    const CHOWN_SETGID_SETUID: u64 = 1 | 1 << 6 | 1 << 7;
    has_capabilities(status, CHOWN_SETGID_SETUID)
}

fn has_capabilities(status: &str, wanted: u64) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_some_and(|capabilities| capabilities & wanted == wanted)
}

/// Whether a user exists in our user namespace: rootless containers map few.
fn is_mapped(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first + count).contains(&u64::from(uid)))
    })
}

/// Whether users other than the owner can get to a path: every directory above it lets them pass.
pub(crate) fn reachable_by_others(path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .filter(|part| !part.as_os_str().is_empty())
        .all(|part| std::fs::metadata(part).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_of_its_own_needs_capabilities_and_a_mapping() {
        assert!(may_change_users("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(!may_change_users("CapEff:\t0000000000000000\n"));
        assert!(is_mapped("         0          0 4294967295\n", FIRST_UID));
        assert!(!is_mapped(
            "         0       1000          1\n         1     100000      65536\n",
            FIRST_UID
        ));
    }
}
