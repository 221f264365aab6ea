//! Finds known secrets in bytes: as they are, in any usual encoding, and inside of what is compressed.
//!
//! What can be undone without knowing the secret (percent signs, JSON's escapes, line breaks, gzip) is undone in the
//! bytes; what cannot be seen without knowing it (base64 at any offset, hexadecimal) is looked for in the bytes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read as _;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// A shorter needle would be found by chance.
const NEEDLE_BYTES_MIN: usize = 12;
const UNPACKED_BYTES_MAX: u64 = 256 << 20;
/// How often escapes are undone: JSON in JSON, in a document of a row, in a dump.
const ESCAPES_MAX: usize = 5;
/// How often it is unpacked: a log in gzip in an object in gzip.
const PACKED_MAX: usize = 3;
const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];

/// How a secret looked where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    Raw,
    Base64,
    Hex,
}

/// One secret in one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Which secret, by its name: a report must not hold what it complains about.
    pub secret: String,
    pub place: String,
    pub form: Form,
}

/// Looks for all secrets at once.
pub struct Scanner {
    search: AhoCorasick,
    /// Which secret and form each pattern is.
    patterns: Vec<(String, Form)>,
}

impl Scanner {
    /// Pairs of a secret's name and its text.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut texts, mut patterns) = (Vec::new(), Vec::new());
        for (name, secret) in secrets {
            assert!(secret.len() >= NEEDLE_BYTES_MIN, "{name} is too short to be looked for");
            for (form, text) in forms(secret) {
                texts.push(text);
                patterns.push((name.to_owned(), form));
            }
        }
        // Every match counts: one that is expected must not hide another that begins inside of it.
        let search = AhoCorasickBuilder::new().match_kind(MatchKind::Standard).build(&texts).unwrap();
        Self { search, patterns }
    }

    /// What of it is in the bytes of this place.
    pub fn scan(&self, place: &str, bytes: &[u8]) -> BTreeSet<Hit> {
        let mut hits = BTreeSet::new();
        self.look(place, bytes, PACKED_MAX, &mut hits);
        hits
    }

    fn look(&self, place: &str, bytes: &[u8], packed_max: usize, hits: &mut BTreeSet<Hit>) {
        let mut unescaped = Cow::Borrowed(bytes);
        for _ in 0..=ESCAPES_MAX {
            let plainer = [without_percent(&unescaped), without_breaks(&unescaped)];
            for text in plainer.iter().flatten().map(Vec::as_slice).chain([&*unescaped]) {
                self.match_all(place, text, hits);
                for unpacked in packed(text).into_iter().filter(|_| packed_max > 0) {
                    self.look(place, &unpacked, packed_max - 1, hits);
                }
            }
            match without_escapes(&unescaped) {
                Some(plainer) => unescaped = Cow::Owned(plainer),
                None => break,
            }
        }
    }

    fn match_all(&self, place: &str, bytes: &[u8], hits: &mut BTreeSet<Hit>) {
        hits.extend(self.search.find_overlapping_iter(bytes).map(|found| {
            let (secret, form) = self.patterns[found.pattern().as_usize()].clone();
            Hit { secret, place: place.to_owned(), form }
        }));
    }
}

/// What is looked for.
fn forms(secret: &str) -> Vec<(Form, Vec<u8>)> {
    let bytes = secret.as_bytes();
    let hex = hex::encode(bytes);
    let mut forms = vec![
        (Form::Raw, bytes.to_vec()),
        (Form::Hex, hex.to_uppercase().into_bytes()),
        (Form::Hex, hex.into_bytes()),
    ];
    // Inside a longer text the same bytes have one of three encodings; the signs at both ends mix with the neighbours'.
    for shift in 0..3 {
        let shifted = [&vec![0; shift][..], bytes].concat();
        let core = (shift * 8_usize).div_ceil(6)..shifted.len() * 8 / 6;
        for text in [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
            forms.push((Form::Base64, text.as_bytes()[core.clone()].to_vec()));
        }
    }
    forms
}

/// `%41` is `A`; `None` if there is none of it.
fn without_percent(bytes: &[u8]) -> Option<Vec<u8>> {
    replaced(bytes, b'%', |rest| {
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        Some((vec![u8::from_str_radix(digits, 16).ok()?], 2))
    })
}

/// `\"`, `\/`, `\\` and `\u0041` as in JSON, `\x41` and line breaks as logs have them; `None` if there is none of it.
fn without_escapes(bytes: &[u8]) -> Option<Vec<u8>> {
    replaced(bytes, b'\\', |rest| {
        let code = |from: usize, to: usize| {
            let digits = std::str::from_utf8(rest.get(from..to)?).ok()?;
            let sign = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            Some((sign.to_string().into_bytes(), to))
        };
        match rest.first()? {
            sign @ (b'"' | b'/' | b'\\' | b'\'') => Some((vec![*sign], 1)),
            b'n' => Some((vec![b'\n'], 1)),
            b'r' => Some((vec![b'\r'], 1)),
            b't' => Some((vec![b'\t'], 1)),
            b'u' => code(1, 5),
            b'x' => code(1, 3),
            _ => None,
        }
    })
}

/// Long encoded texts are broken into lines.
fn without_breaks(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    // Pages of a database are full of them by chance, and hold no broken text that a dump does not.
    let worth = bytes.iter().any(is_break) && !bytes.contains(&0);
    worth.then(|| bytes.iter().copied().filter(|byte| !is_break(byte)).collect())
}

/// Replaces what stands after each sign, where the function knows what it means.
fn replaced(bytes: &[u8], sign: u8, means: impl Fn(&[u8]) -> Option<(Vec<u8>, usize)>) -> Option<Vec<u8>> {
    let (mut out, mut rest, mut found) = (Vec::with_capacity(bytes.len()), bytes, false);
    while let Some(at) = rest.iter().position(|byte| *byte == sign) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match means(rest) {
            Some((text, length)) => {
                out.extend_from_slice(&text);
                rest = &rest[length..];
                found = true;
            }
            None => out.push(sign),
        }
    }
    out.extend_from_slice(rest);
    found.then_some(out)
}

/// What is compressed in it: as it is, in hexadecimal, or in base64.
fn packed(bytes: &[u8]) -> Vec<Vec<u8>> {
    let search = AhoCorasick::new([GZIP, b"1f8b08", b"1F8B08", b"H4sI"]).unwrap();
    let found = search.find_iter(bytes).filter_map(|found| {
        let rest = &bytes[found.start()..];
        let run = |is_part: fn(&u8) -> bool| {
            let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
            &rest[..length]
        };
        match found.pattern().as_usize() {
            0 => unpack(rest),
            1 | 2 => {
                let digits = run(u8::is_ascii_hexdigit);
                unpack(&hex::decode(&digits[..digits.len() / 2 * 2]).ok()?)
            }
            _ => {
                let text = run(|byte| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte));
                let decoded = [STANDARD, URL_SAFE, STANDARD_NO_PAD, URL_SAFE_NO_PAD]
                    .iter()
                    .find_map(|alphabet| alphabet.decode(text).ok())?;
                unpack(&decoded)
            }
        }
    });
    found.collect()
}

/// As much as can be unpacked: what follows it may be something else, and its end may be missing.
fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut source = flate2::read::MultiGzDecoder::new(bytes).take(UNPACKED_BYTES_MAX);
    let mut piece = [0; 8 << 10];
    while let Ok(length @ 1..) = source.read(&mut piece) {
        out.extend_from_slice(&piece[..length]);
    }
    (!out.is_empty()).then_some(out)
}
