//! Private keys of GitHub Apps: RSA in PEM, as GitHub gives them out (PKCS #1), or PKCS #8.

use super::pem;

const PKCS1: &str = "RSA PRIVATE KEY";
const PKCS8: &str = "PRIVATE KEY";
const WRONG: &str = "must be an RSA private key in PEM without a passphrase, as GitHub gives it out";

/// How the bytes of a key are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Pkcs1,
    Pkcs8,
}

/// The key in its one spelling.
pub(super) fn normalise(text: &str) -> Result<String, &'static str> {
    let (layout, bytes) = read(text)?;
    // An outer ASN.1 sequence that fills the block; whoever signs looks at the rest.
    let is_whole = match bytes[..] {
        [0x30, 0x82, high, low, ..] => usize::from(high) << 8 | usize::from(low) == bytes.len() - 4,
        _ => false,
    };
    if !is_whole {
        return Err(WRONG);
    }
    let label = match layout {
        Layout::Pkcs1 => PKCS1,
        Layout::Pkcs8 => PKCS8,
    };
    Ok(pem::close(label, &bytes))
}

/// Layout and bytes.
pub(super) fn read(text: &str) -> Result<(Layout, Vec<u8>), &'static str> {
    let (label, bytes) = pem::open(text).ok_or(WRONG)?;
    match label.as_str() {
        PKCS1 => Ok((Layout::Pkcs1, bytes)),
        PKCS8 => Ok((Layout::Pkcs8, bytes)),
        _ => Err(WRONG),
    }
}
