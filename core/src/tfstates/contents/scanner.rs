//! JSON from a reader, value by value, in the same memory whatever its size.
//!
//! It finds where values begin and end, and copies those that are asked for: `serde_json` reads the copies. Of what is
//! passed over it checks only that strings and brackets are closed.

use std::io::Read;

use super::Unreadable;
use super::fingerprint::Raw;

const BUFFER_BYTES: usize = 64 << 10;
/// Longest name of a field that anything is looked for under, in bytes.
const NAME_BYTES_MAX: usize = 4 << 10;

/// Reads one document.
pub(super) struct Scanner<R> {
    source: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// Bytes of the document before those in the buffer.
    before: u64,
}

/// What came of copying a value.
pub(super) enum Copied<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It is too long to be kept: what tells it from others, byte for byte.
    Long(Raw),
}

impl<R: Read> Scanner<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES].into(), at: 0, end: 0, before: 0 }
    }

    /// Where the next byte is.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The next byte that is no white space; it stays the next one.
    pub(super) fn peek(&mut self) -> Result<u8, Unreadable> {
        while self.fill() {
            match self.buffer[self.at] {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Ok(byte),
            }
        }
        Err(Unreadable::Broken)
    }

    /// Whether nothing but white space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_err()
    }

    /// Goes through an object. `entry` must read each value.
    pub(super) fn object(
        &mut self,
        mut entry: impl FnMut(&mut Self, &str) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        self.step(b'{')?;
        if self.peek()? == b'}' {
            return self.step(b'}');
        }
        loop {
            let name = self.name()?;
            self.step(b':')?;
            entry(self, &name)?;
            if self.peek()? == b'}' {
                return self.step(b'}');
            }
            self.step(b',')?;
        }
    }

    /// Goes through an array. `item` must read each value.
    pub(super) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        self.step(b'[')?;
        if self.peek()? == b']' {
            return self.step(b']');
        }
        loop {
            item(self)?;
            if self.peek()? == b']' {
                return self.step(b']');
            }
            self.step(b',')?;
        }
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self) -> Result<(), Unreadable> {
        self.value(|_| {})
    }

    /// Copies a value into a buffer that may be used again, if it is not longer than `bytes_max`.
    pub(super) fn copy<'a>(
        &mut self,
        bytes_max: usize,
        into: &'a mut Vec<u8>,
    ) -> Result<Copied<'a>, Unreadable> {
        into.clear();
        let mut long: Option<Raw> = None;
        self.value(|piece| match &mut long {
            Some(raw) => raw.update(piece),
            None if into.len() + piece.len() <= bytes_max => into.extend_from_slice(piece),
            None => {
                let mut raw = Raw::default();
                raw.update(into);
                raw.update(piece);
                long = Some(raw);
            }
        })?;
        Ok(match long {
            Some(raw) => Copied::Long(raw),
            None => Copied::Whole(into),
        })
    }

    /// A short value read as what it should be; `None` if it is something else, or long.
    pub(super) fn parse<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, Unreadable> {
        let mut copy = Vec::new();
        Ok(match self.copy(NAME_BYTES_MAX, &mut copy)? {
            Copied::Whole(text) => serde_json::from_slice(text).ok(),
            Copied::Long(_) => None,
        })
    }

    fn name(&mut self) -> Result<String, Unreadable> {
        if self.peek()? != b'"' {
            return Err(Unreadable::Broken);
        }
        self.parse()?.ok_or(Unreadable::Broken)
    }

    fn step(&mut self, expected: u8) -> Result<(), Unreadable> {
        if self.peek()? != expected {
            return Err(Unreadable::Broken);
        }
        self.at += 1;
        Ok(())
    }

    /// Reads one value and shows it piece by piece.
    fn value(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), Unreadable> {
        let first = self.peek()?;
        let is_scalar = match first {
            b'{' | b'[' | b'"' => false,
            b'}' | b']' | b',' | b':' => return Err(Unreadable::Broken),
            _ => true,
        };
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        // A number that ends with the document may be cut off: every value that is asked for has something after it.
        while self.fill() {
            let chunk = &self.buffer[self.at..self.end];
            let (mut used, mut done) = (0, false);
            for byte in chunk {
                if is_scalar && matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                    done = true;
                    break;
                }
                used += 1;
                if escaped {
                    escaped = false;
                } else if in_string {
                    match byte {
                        b'\\' => escaped = true,
                        b'"' => in_string = false,
                        _ => continue,
                    }
                } else {
                    match byte {
                        b'"' => in_string = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth = depth.checked_sub(1).ok_or(Unreadable::Broken)?,
                        _ => continue,
                    }
                }
                if !is_scalar && depth == 0 && !in_string {
                    done = true;
                    break;
                }
            }
            take(&chunk[..used]);
            self.at += used;
            if done {
                return Ok(());
            }
        }
        Err(Unreadable::Broken)
    }

    /// Whether there is a byte; reads more if all are used.
    fn fill(&mut self) -> bool {
        if self.at == self.end {
            self.before += self.end as u64;
            self.at = 0;
            // A source that fails tells whoever feeds it; here the document just ends.
            self.end = self.source.read(&mut self.buffer).unwrap_or(0);
        }
        self.at < self.end
    }
}
