//! What a state file says about itself, read from disk piece by piece: a state may be larger than memory.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use plumbline_core::tfstates::BadState;
use serde::Deserialize;
use serde::de::IgnoredAny;

const PIECE_BYTES: usize = 64 << 10;

/// What the control plane wants to know about a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateFileFacts {
    /// Rises with every change.
    pub serial: i64,
    /// The same for all versions of one state.
    pub lineage: String,
    /// What wrote it.
    pub terraform_version: Option<String>,
}

#[derive(Deserialize)]
struct Known {
    version: Option<i64>,
    serial: Option<i64>,
    lineage: Option<String>,
    terraform_version: Option<String>,
    encrypted_data: Option<IgnoredAny>,
    format_version: Option<IgnoredAny>,
    planned_values: Option<IgnoredAny>,
    resource_changes: Option<IgnoredAny>,
}

/// Of a body that terraform wrote. What it lacks, the control plane says.
pub(crate) fn read_written(path: &Path) -> io::Result<StateFileFacts> {
    let known: Known = serde_json::from_reader(BufReader::with_capacity(PIECE_BYTES, File::open(path)?))?;
    Ok(facts_of(known))
}

fn facts_of(known: Known) -> StateFileFacts {
    StateFileFacts {
        serial: known.serial.unwrap_or_default(),
        lineage: known.lineage.unwrap_or_default(),
        terraform_version: known.terraform_version.filter(|version| !version.is_empty()),
    }
}

/// Of a file that a person names: whether it is a state at all is said before anything is sent.
pub fn check_file(path: &Path) -> io::Result<Result<StateFileFacts, BadState>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory));
    }
    check(file)
}

fn check(reader: impl Read) -> io::Result<Result<StateFileFacts, BadState>> {
    let mut reader = BufReader::with_capacity(PIECE_BYTES, Watched::new(reader));
    let parsed: Result<Known, serde_json::Error> = serde_json::from_reader(&mut reader);
    // To the end, so that all of it was seen.
    io::copy(&mut reader, &mut io::sink())?;
    let seen = reader.into_inner();
    if seen.is_binary || !seen.tail.is_empty() {
        return Ok(Err(BadState::NotUtf8));
    }
    let Some(first) = seen.first else { return Ok(Err(BadState::Empty)) };
    let known = match parsed {
        Ok(known) if first == b'{' => known,
        Err(error) if error.is_io() => return Err(error.into()),
        Err(error) if first == b'{' && error.is_data() => return Ok(Err(BadState::OldVersion)),
        Err(error) if !error.is_data() => return Ok(Err(BadState::NotJson)),
        Ok(_) | Err(_) => return Ok(Err(BadState::NotAnObject)),
    };
    Ok(judge(known))
}

fn judge(known: Known) -> Result<StateFileFacts, BadState> {
    if known.planned_values.is_some() || known.resource_changes.is_some() {
        return Err(BadState::PlanJson);
    }
    if known.format_version.is_some() {
        return Err(BadState::ShowJson);
    }
    let is_opaque = known.encrypted_data.is_some();
    if !is_opaque && known.version.is_none() && known.serial.is_none() && known.lineage.is_none() {
        return Err(BadState::EmptyObject);
    }
    if !is_opaque && known.version.is_some_and(|version| version < 4) {
        return Err(BadState::OldVersion);
    }
    if known.lineage.as_deref().is_none_or(str::is_empty) {
        return Err(BadState::NoLineage);
    }
    if known.serial.is_none_or(|serial| serial < 0) {
        return Err(BadState::NoSerial);
    }
    Ok(facts_of(known))
}

/// Notes the first byte that is no blank, and whether all of it is UTF-8: the parser skips strings without a look.
struct Watched<R> {
    reader: R,
    first: Option<u8>,
    /// A character that the piece before began.
    tail: Vec<u8>,
    is_binary: bool,
}

impl<R> Watched<R> {
    fn new(reader: R) -> Self {
        Self { reader, first: None, tail: Vec::new(), is_binary: false }
    }

    fn see(&mut self, piece: &[u8]) {
        self.first = self.first.or_else(|| piece.iter().copied().find(|byte| !byte.is_ascii_whitespace()));
        // Most pieces are plain and begin where a character does.
        if self.is_binary || (self.tail.is_empty() && piece.is_ascii()) {
            return;
        }
        self.tail.extend_from_slice(piece);
        match std::str::from_utf8(&self.tail) {
            Ok(_) => self.tail.clear(),
            Err(error) if error.error_len().is_none() => drop(self.tail.drain(..error.valid_up_to())),
            Err(_) => self.is_binary = true,
        }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.see(&buffer[..length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(body: &[u8]) -> Result<StateFileFacts, BadState> {
        check(body).expect("readable")
    }

    #[test]
    fn a_state_tells_its_serial_and_lineage() {
        let facts = checked(
            br#" {"version":4,"serial":7,"lineage":"l","terraform_version":"1.11.4","resources":[]}"#,
        );
        let terraform_version = Some("1.11.4".to_owned());
        assert_eq!(facts, Ok(StateFileFacts { serial: 7, lineage: "l".into(), terraform_version }));
        let encrypted =
            checked(br#"{"serial":1,"lineage":"l","encrypted_data":"x","encryption_version":"v0"}"#);
        assert_eq!(encrypted.map(|facts| facts.serial), Ok(1));
    }

    #[test]
    fn what_is_no_state_is_called_by_its_name() {
        for (body, expected) in [
            (&b""[..], BadState::Empty),
            (b" \n", BadState::Empty),
            (b"{}", BadState::EmptyObject),
            (b"[]", BadState::NotAnObject),
            (b"[1]", BadState::NotAnObject),
            (b"7", BadState::NotAnObject),
            (b"garbage", BadState::NotJson),
            (br#"{"version":4,"serial":1,"#, BadState::NotJson),
            (b"{\"version\":4,\"serial\":1,\"lineage\":\"l\",\"x\":\"\xff\"}", BadState::NotUtf8),
            (b"PK\x03\x04\xff\xfe", BadState::NotUtf8),
            (b"{\"version\":4,\"x\":\"\xc3", BadState::NotUtf8),
            (br#"{"version":3,"serial":1,"lineage":"l"}"#, BadState::OldVersion),
            (br#"{"version":4,"serial":1}"#, BadState::NoLineage),
            (br#"{"version":4,"lineage":"l"}"#, BadState::NoSerial),
            (br#"{"version":4,"lineage":"l","serial":-1}"#, BadState::NoSerial),
            (br#"{"format_version":"1.0","values":{}}"#, BadState::ShowJson),
            (br#"{"format_version":"1.2","planned_values":{}}"#, BadState::PlanJson),
        ] {
            assert_eq!(checked(body), Err(expected), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_character_may_lie_across_two_pieces() {
        let body = "{\"version\":4,\"serial\":1,\"lineage\":\"l\",\"x\":\"äöü€\"}".as_bytes();
        let slow = OneByOne(body);
        assert!(check(slow).expect("readable").is_ok());
    }

    struct OneByOne<'a>(&'a [u8]);

    impl Read for OneByOne<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }
}
