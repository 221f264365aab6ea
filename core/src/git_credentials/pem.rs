//! The armour of private keys: `-----BEGIN <label>-----`, base64, `-----END <label>-----`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const LINE_CHARS: usize = 64;

/// The label and the bytes of a text that is one armoured block and nothing else.
pub(super) fn open(text: &str) -> Option<(String, Vec<u8>)> {
    let mut lines = text.trim().lines().map(str::trim);
    let label = lines.next()?.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
    let end = format!("-----END {label}-----");
    let mut body = String::new();
    let mut is_closed = false;
    for line in lines {
        if is_closed {
            return None;
        }
        if line == end { is_closed = true } else { body.push_str(line) }
    }
    let bytes = STANDARD.decode(body).ok()?;
    (is_closed && !bytes.is_empty()).then(|| (label.to_owned(), bytes))
}

/// The block as every program reads it.
pub(super) fn close(label: &str, bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    let mut text = format!("-----BEGIN {label}-----\n");
    for at in (0..body.len()).step_by(LINE_CHARS) {
        text.push_str(&body[at..body.len().min(at + LINE_CHARS)]);
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}
