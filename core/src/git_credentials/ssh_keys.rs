//! SSH keys: private ones as OpenSSH writes them, and keys of hosts as `known_hosts` has them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::pem;

const LABEL: &str = "OPENSSH PRIVATE KEY";
const MAGIC: &[u8] = b"openssh-key-v1\0";
const RSA_BITS_MIN: usize = 2048;
const PADDING_BYTES_MAX: usize = 64;
const FINGERPRINT: &str = "SHA256:";
/// Kinds that ssh takes on both sides, with how many values a private one has between its name and its comment.
const KINDS: [(&str, usize); 5] = [
    ("ssh-ed25519", 2),
    ("ecdsa-sha2-nistp256", 3),
    ("ecdsa-sha2-nistp384", 3),
    ("ecdsa-sha2-nistp521", 3),
    ("ssh-rsa", 6),
];

const NOT_OURS: &str =
    "must be a private key in OpenSSH's format; ssh-keygen -p -f FILE writes an older one anew";
const DAMAGED: &str = "is a damaged private key";

/// A private key that ssh can use without asking.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PrivateKey {
    /// In its one spelling.
    pub text: String,
    /// `<kind> <base64>`.
    pub public: String,
}

/// Checks a private key and brings it into its one spelling: line ends, line lengths and blanks around it do not matter.
pub(super) fn private_key(text: &str) -> Result<PrivateKey, &'static str> {
    let (label, bytes) = pem::open(text).ok_or(NOT_OURS)?;
    if label != LABEL {
        return Err(NOT_OURS);
    }
    let mut outer = Reader(bytes.strip_prefix(MAGIC).ok_or(NOT_OURS)?);
    let (cipher, function, options) = (outer.text()?, outer.text()?, outer.block()?);
    if cipher != b"none" || function != b"none" || !options.is_empty() {
        return Err("is protected by a passphrase, which nobody could type; use a key without one");
    }
    if outer.number()? != 1 {
        return Err(DAMAGED);
    }
    let (public, private) = (outer.block()?, outer.block()?);
    let kind = check_public(public)?;
    if !outer.0.is_empty() {
        return Err(DAMAGED);
    }
    check_private(private, kind)?;
    Ok(PrivateKey {
        text: pem::close(LABEL, &bytes),
        public: format!("{} {}", kind.0, STANDARD.encode(public)),
    })
}

/// Checks what a host may show: a line of `known_hosts`, the key alone, or a fingerprint. `host` has its port unless
/// that is 22.
pub(super) fn host_key(line: &str, host: &str) -> Result<String, &'static str> {
    const SHAPE: &str = "must be a line of known_hosts, or a fingerprint SHA256:…";
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_kind = |word: &&str| KINDS.iter().any(|(kind, _)| kind == word);
    if let [word] = words[..] {
        let digest = word.strip_prefix(FINGERPRINT).ok_or(SHAPE)?;
        let digest = STANDARD_NO_PAD.decode(digest.trim_end_matches('=')).map_err(|_| SHAPE)?;
        return if digest.len() == 32 {
            Ok([FINGERPRINT, &STANDARD_NO_PAD.encode(digest)].concat())
        } else {
            Err(SHAPE)
        };
    }
    let (kind, key) = match words[..] {
        [kind, key, ..] if is_kind(&kind) => (kind, key),
        [hosts, kind, key, ..] if is_kind(&kind) => {
            if !names(hosts, host) {
                return Err("names another host, or is a marked line; give the lines of this host alone");
            }
            (kind, key)
        }
        _ => return Err(SHAPE),
    };
    let blob = STANDARD.decode(key).map_err(|_| SHAPE)?;
    if check_public(&blob).map_err(|_| SHAPE)?.0 != kind {
        return Err(SHAPE);
    }
    Ok(format!("{kind} {}", STANDARD.encode(blob)))
}

/// Whether the first word of a line of `known_hosts` can mean the host. Hashed names say nothing, so they may.
fn names(word: &str, host: &str) -> bool {
    if word.starts_with("|1|") {
        return true;
    }
    let bracketed = host.rsplit_once(':').map(|(name, port)| format!("[{name}]:{port}"));
    word.split(',').any(|name| {
        let name = name.to_ascii_lowercase();
        name == host || bracketed.as_ref() == Some(&name) || name == host.trim_matches(['[', ']'])
    })
}

fn check_public(blob: &[u8]) -> Result<(&'static str, usize), &'static str> {
    let mut reader = Reader(blob);
    let name = reader.text()?;
    let kind = *KINDS
        .iter()
        .find(|(kind, _)| kind.as_bytes() == name)
        .ok_or("is of a kind that is refused here: use ed25519, ecdsa or rsa")?;
    if kind.0 == "ssh-rsa" {
        let (_, modulus) = (reader.block()?, reader.block()?);
        if modulus.strip_prefix(&[0]).unwrap_or(modulus).len() * 8 < RSA_BITS_MIN {
            return Err("is an RSA key of less than 2,048 bits");
        }
    }
    Ok(kind)
}

fn check_private(block: &[u8], kind: (&str, usize)) -> Result<(), &'static str> {
    let mut reader = Reader(block);
    if reader.number()? != reader.number()? || reader.text()? != kind.0.as_bytes() {
        return Err(DAMAGED);
    }
    for _ in 0..kind.1 {
        reader.text()?;
    }
    reader.block()?;
    // 1, 2, 3 … up to the cipher's block.
    let is_padding =
        reader.0.len() <= PADDING_BYTES_MAX && reader.0.iter().zip(1..).all(|(byte, place)| *byte == place);
    if is_padding { Ok(()) } else { Err(DAMAGED) }
}

/// Reads SSH's wire format.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Result<usize, &'static str> {
        let (number, rest) = self.0.split_first_chunk::<4>().ok_or(DAMAGED)?;
        self.0 = rest;
        usize::try_from(u32::from_be_bytes(*number)).map_err(|_| DAMAGED)
    }

    fn block(&mut self) -> Result<&'a [u8], &'static str> {
        let length = self.number()?;
        let (block, rest) = self.0.split_at_checked(length).ok_or(DAMAGED)?;
        self.0 = rest;
        Ok(block)
    }

    /// A block that is not empty.
    fn text(&mut self) -> Result<&'a [u8], &'static str> {
        let block = self.block()?;
        if block.is_empty() { Err(DAMAGED) } else { Ok(block) }
    }
}
