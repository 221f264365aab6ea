//! What a state file says about itself, read from disk piece by piece: a state may be larger than memory.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use plumbline_core::tfstates::{BadState, Says};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

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

/// Of any kind, so that what is of the wrong one is told by its name.
#[derive(Deserialize)]
struct Known {
    version: Option<Value>,
    serial: Option<Value>,
    lineage: Option<Value>,
    terraform_version: Option<Value>,
    encrypted_data: Option<IgnoredAny>,
    format_version: Option<IgnoredAny>,
    planned_values: Option<IgnoredAny>,
    resource_changes: Option<IgnoredAny>,
}

impl Known {
    fn says(self) -> Says {
        let text = |value: Option<Value>| value.and_then(|value| Some(value.as_str()?.to_owned()));
        Says {
            version: self.version.and_then(|version| version.as_i64()),
            serial: self.serial.and_then(|serial| match serial {
                Value::Number(serial) => Some(serial),
                _ => None,
            }),
            lineage: text(self.lineage),
            terraform_version: text(self.terraform_version),
            is_opaque: self.encrypted_data.is_some(),
            is_shown: self.format_version.is_some(),
            is_plan: self.planned_values.is_some() || self.resource_changes.is_some(),
        }
    }
}

/// Of a body that terraform wrote. What it lacks, the control plane says.
pub(crate) fn read_written(path: &Path) -> io::Result<StateFileFacts> {
    let known: Known = serde_json::from_reader(BufReader::with_capacity(PIECE_BYTES, File::open(path)?))?;
    let says = known.says();
    Ok(StateFileFacts {
        serial: says.serial.and_then(|serial| serial.as_i64()).unwrap_or_default(),
        lineage: says.lineage.unwrap_or_default(),
        terraform_version: says.terraform_version.filter(|version| !version.is_empty()),
    })
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
        // Everything else may be of any kind.
        Err(error) if first == b'{' && error.is_data() => return Ok(Err(BadState::TwiceTheSame)),
        Err(error) if !error.is_data() => return Ok(Err(BadState::NotJson)),
        Ok(_) | Err(_) => return Ok(Err(BadState::NotAnObject)),
    };
    Ok(known.says().judge().map(|facts| StateFileFacts {
        serial: facts.serial,
        lineage: facts.lineage,
        terraform_version: facts.terraform_version,
    }))
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
            (br#"{"version":5,"serial":1,"lineage":"l"}"#, BadState::NewVersion),
            (br#"{"version":"4","serial":1,"lineage":"l"}"#, BadState::NoVersion),
            (br#"{"version":4,"serial":1.5,"lineage":"l"}"#, BadState::NoSerial),
            (br#"{"version":4,"serial":1,"lineage":9}"#, BadState::NoLineage),
            (br#"{"version":4,"serial":1,"serial":2,"lineage":"l"}"#, BadState::TwiceTheSame),
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
