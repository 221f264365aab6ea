//! Length and digests of a body, taken while it passes or from a file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use md5::Md5;
use plumbline_core::digest::Sha256Digest;
use sha2::{Digest as _, Sha256};

const PIECE_BYTES: usize = 64 << 10;

/// Length and digests.
#[derive(Clone, Debug)]
pub struct Digests {
    /// Length.
    pub size_bytes: u64,
    /// SHA-256.
    pub sha256: Sha256Digest,
    /// MD5, raw.
    pub md5: [u8; 16],
}

/// Takes the digests of what passes.
#[derive(Default)]
pub(crate) struct Digesting {
    size_bytes: u64,
    sha256: Sha256,
    md5: Md5,
}

impl Digesting {
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.sha256.update(piece);
        self.md5.update(piece);
        self.size_bytes += piece.len() as u64;
    }

    pub(crate) fn finish(self) -> Digests {
        Digests {
            size_bytes: self.size_bytes,
            sha256: Sha256Digest(self.sha256.finalize().into()),
            md5: self.md5.finalize().into(),
        }
    }
}

/// Reads a file once.
pub fn digests(path: &Path) -> io::Result<Digests> {
    let mut file = File::open(path)?;
    let mut digesting = Digesting::default();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok(digesting.finish());
        }
        digesting.update(&piece[..length]);
    }
}
