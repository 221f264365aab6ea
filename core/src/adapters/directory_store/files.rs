//! Objects as files. Everything here blocks.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::digest::{Sha256Digest, Sha256Hasher};
use crate::ports::{BlobError, BlobHead, check_key};

/// Where files grow before they get their name. No key can contain `~`, so it is out of every key's way.
const INCOMING: &str = "~incoming";

pub(super) fn put(root: &Path, key: &str, bytes: &[u8]) -> Result<(), BlobError> {
    let mut incoming = Incoming::begin(root, key)?;
    incoming.write(bytes)?;
    incoming.finish()
}

/// An object that has no name yet; its file goes when this goes.
#[derive(Debug)]
pub(super) struct Incoming {
    root: PathBuf,
    key: String,
    path: PathBuf,
    file: tempfile::NamedTempFile,
    hasher: Sha256Hasher,
    size_bytes: u64,
}

impl Incoming {
    pub(super) fn begin(root: &Path, key: &str) -> Result<Self, BlobError> {
        let path = path_of(root, key)?;
        let incoming = root.join(INCOMING);
        let file = ensure_directory(&incoming)
            .and_then(|()| tempfile::NamedTempFile::new_in(&incoming))
            .map_err(|error| store_error(root, key, &error))?;
        let (root, key) = (root.to_owned(), key.to_owned());
        Ok(Self { root, key, path, file, hasher: Sha256Hasher::default(), size_bytes: 0 })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.file.write_all(bytes).map_err(|error| store_error(&self.root, &self.key, &error))?;
        self.hasher.update(bytes);
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Names the file, unless the name is taken by other bytes.
    pub(super) fn finish(self) -> Result<(), BlobError> {
        let Self { root, key, path, file, hasher, size_bytes } = self;
        let fault = |error| store_error(&root, &key, &error);
        file.as_file().sync_all().map_err(fault)?;
        let parents: Vec<&Path> = path.ancestors().skip(1).take_while(|ancestor| *ancestor != root).collect();
        for parent in parents.into_iter().rev() {
            ensure_directory(parent).map_err(fault)?;
        }
        match file.persist_noclobber(&path) {
            Ok(_) => sync_parent(&path).map_err(fault),
            Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => {
                let sha256 = hasher.finish();
                let same = head(&root, &key)?
                    .is_some_and(|head| head.size_bytes == size_bytes && head.sha256 == Some(sha256));
                if same { Ok(()) } else { Err(BlobError::Conflict(key)) }
            }
            Err(refused) => Err(fault(refused.error)),
        }
    }
}

pub(super) fn get(root: &Path, key: &str) -> Result<Bytes, BlobError> {
    found(root, key, fs::read(path_of(root, key)?))
}

pub(super) fn get_part(root: &Path, key: &str, part: &Range<u64>) -> Result<Bytes, BlobError> {
    let read = |path: PathBuf| {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(part.start))?;
        let mut bytes = Vec::new();
        file.take(part.end.saturating_sub(part.start)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    found(root, key, read(path_of(root, key)?))
}

fn found(root: &Path, key: &str, read: io::Result<Vec<u8>>) -> Result<Bytes, BlobError> {
    match read {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) if is_absent(&error) => {
            require_root(root)?;
            Err(BlobError::NotFound(key.into()))
        }
        Err(error) => Err(store_error(root, key, &error)),
    }
}

pub(super) fn head(root: &Path, key: &str) -> Result<Option<BlobHead>, BlobError> {
    let path = path_of(root, key)?;
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => {
            let sha256 = digest_of(&path).map_err(|error| store_error(root, key, &error))?;
            Ok(Some(BlobHead { size_bytes: metadata.len(), sha256: Some(sha256) }))
        }
        Ok(_) => Ok(None),
        Err(error) if is_absent(&error) => require_root(root).map(|()| None),
        Err(error) => Err(store_error(root, key, &error)),
    }
}

/// Reads piece by piece: objects may be larger than memory.
fn digest_of(path: &Path) -> io::Result<Sha256Digest> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(Sha256Digest(hasher.finalize().into()))
}

pub(super) fn delete(root: &Path, key: &str) -> Result<(), BlobError> {
    match fs::remove_file(path_of(root, key)?) {
        Ok(()) => Ok(()),
        Err(error) if is_absent(&error) => require_root(root),
        Err(error) => Err(store_error(root, key, &error)),
    }
}

fn path_of(root: &Path, key: &str) -> Result<PathBuf, BlobError> {
    check_key(key)?;
    Ok(root.join(key))
}

/// One level only: `create_dir_all` would bring back a root that went away with its disk.
fn ensure_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Ok(()) => sync_parent(path),
        other => other,
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// A key may go through or end at what is a directory or file of another key: then there is no such object.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

fn require_root(root: &Path) -> Result<(), BlobError> {
    if root.is_dir() {
        return Ok(());
    }
    Err(BlobError::StoreMissing {
        name: root.display().to_string(),
        reason: "the directory does not exist".into(),
    })
}

fn store_error(root: &Path, key: &str, error: &io::Error) -> BlobError {
    if let Err(missing) = require_root(root) {
        return missing;
    }
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::InvalidFilename => {
            BlobError::Refused(format!("{key}: {error}"))
        }
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => BlobError::Conflict(key.into()),
        _ => BlobError::Unavailable(format!("{key}: {error}")),
    }
}
