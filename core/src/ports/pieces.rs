//! An object cut into pieces of one size, as it comes.

use bytes::{Bytes, BytesMut};

use crate::digest::{Sha256Digest, Sha256Hasher};

/// What a [`PartWriter`](super::PartWriter) has not sent yet, and what it knows of all that came.
///
/// A piece is given out once more than it has come, so that the last one is never empty, unless nothing came at all.
#[derive(Debug)]
pub struct Pieces {
    piece_bytes: usize,
    hasher: Sha256Hasher,
    size_bytes: u64,
    /// Below the size of a piece, or just as long.
    pending: BytesMut,
    /// What came after that and was not looked at yet.
    rest: Bytes,
}

impl Pieces {
    /// Pieces of this length, the last one aside.
    pub fn new(piece_bytes: usize) -> Self {
        Self {
            piece_bytes,
            hasher: Sha256Hasher::default(),
            size_bytes: 0,
            pending: BytesMut::new(),
            rest: Bytes::new(),
        }
    }

    /// More of the object. What was added before must have been taken: [`Pieces::next_whole`] has given `None`.
    pub fn add(&mut self, bytes: Bytes) {
        debug_assert!(self.rest.is_empty(), "what was added before is taken first");
        self.hasher.update(&bytes);
        self.size_bytes += bytes.len() as u64;
        self.rest = bytes;
    }

    /// The next piece, if it is whole and more has come.
    pub fn next_whole(&mut self) -> Option<Bytes> {
        let is_last = self.pending.len() + self.rest.len() <= self.piece_bytes;
        let length = if is_last { self.rest.len() } else { self.piece_bytes - self.pending.len() };
        self.pending.extend_from_slice(&self.rest.split_to(length));
        (!is_last).then(|| self.pending.split().freeze())
    }

    /// What is left, when nothing more comes.
    pub fn last(&mut self) -> Bytes {
        self.pending.extend_from_slice(&std::mem::take(&mut self.rest));
        self.pending.split().freeze()
    }

    /// How long all that came is.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The digest of all that came. To be asked for once, at the end.
    pub fn finish_digest(&mut self) -> Sha256Digest {
        std::mem::take(&mut self.hasher).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_of_one_length_and_the_last_one_is_never_empty() {
        for length in [0, 1, 3, 4, 5, 8, 9, 12] {
            for each in [1, 2, 3, 4, 5, 12] {
                let whole: Vec<u8> = (0..length).collect();
                let (mut pieces, mut given) = (Pieces::new(4), Vec::new());
                for part in whole.chunks(each) {
                    pieces.add(Bytes::copy_from_slice(part));
                    given.extend(std::iter::from_fn(|| pieces.next_whole()));
                }
                assert!(given.iter().all(|piece| piece.len() == 4), "{length} in {each}: {given:?}");
                let last = pieces.last();
                assert!(last.len() <= 4 && (length == 0 || !last.is_empty()), "{length} in {each}: {last:?}");
                given.push(last);
                assert_eq!(given.concat(), whole, "{length} in {each}");
                assert_eq!(pieces.size_bytes(), u64::from(length));
                assert_eq!(pieces.finish_digest(), Sha256Digest::of(&whole));
            }
        }
    }
}
