//! What the browser keeps while its person is at the provider: one sealed cookie, for ten minutes, for our two paths.
//!
//! The browser can neither read nor change it. Whoever brings the provider's answer without it did not begin the sign-in.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use plumbline_core::oidc_logins::{COOKIE_AGE, Cli};
use plumbline_core::secrets::{Domain, Keyring, KeyringError};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

const NAME: &str = "plumbline_signin";
const PATH: &str = "/api/v1/auth/oidc";
const BOUND_TO: &[u8] = b"plumbline sign-in cookie 1";
/// Longest cookie that is looked at, in bytes.
const BYTES_MAX: usize = 4096;

/// A sign-in that is under way.
#[derive(Serialize, Deserialize)]
pub(crate) struct Begun {
    /// Goes to the provider and comes back.
    pub state: String,
    /// Must stand in the provider's token.
    pub nonce: String,
    /// Proves to the provider that whoever brings its code began the sign-in.
    pub verifier: String,
    /// Who was asked.
    pub issuer: String,
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
    /// The command line's port and nonce, if one asked.
    pub cli: Option<(u16, String)>,
}

impl Begun {
    /// The command line that waits.
    pub(crate) fn cli(&self) -> Option<Cli> {
        let (port, nonce) = self.cli.as_ref()?;
        Cli::parse(Some(&port.to_string()), Some(nonce)).ok().flatten()
    }
}

/// The header that sets it.
pub(crate) fn set(keys: &Keyring, begun: &Begun, is_https: bool) -> Result<HeaderValue, KeyringError> {
    let mut sealed = serde_json::to_vec(begun).expect("texts and a number become JSON");
    let nonce: [u8; NONCE_LEN] = rand::random();
    sealing(keys.key(Domain::Signin)?)
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(BOUND_TO), &mut sealed)
        .expect("a cookie is far shorter than what can be sealed");
    let text = URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat());
    Ok(header(&text, COOKIE_AGE.as_secs(), is_https))
}

/// The header that takes it away.
pub(crate) fn clear(is_https: bool) -> HeaderValue {
    header("", 0, is_https)
}

fn header(text: &str, seconds: u64, is_https: bool) -> HeaderValue {
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{NAME}={text}; Path={PATH}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&text).expect("base64 and words are visible ASCII")
}

/// The sign-in that the browser began; `None` if it brings none of ours.
pub(crate) fn find(keys: &Keyring, headers: &HeaderMap) -> Result<Option<Begun>, KeyringError> {
    // One that was made before the root key was replaced is ours, too.
    let keys: Vec<LessSafeKey> = keys.every_key(Domain::Signin)?.map(sealing).collect();
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut ours = all.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == NAME).then_some(value)
    });
    Ok(ours.find_map(|text| keys.iter().find_map(|key| open(key, text))))
}

fn open(key: &LessSafeKey, text: &str) -> Option<Begun> {
    if text.len() > BYTES_MAX {
        return None;
    }
    let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let plain = key.open_in_place(nonce, Aad::from(BOUND_TO), sealed).ok()?;
    serde_json::from_slice(plain).ok()
}

fn sealing(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("the key has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(root: &str) -> Keyring {
        Keyring::from_root(&[root, " for tests only, 32 characters or more"].concat()).expect("a root key")
    }

    fn begun() -> Begun {
        let text = |word: &str| word.to_owned();
        Begun {
            state: text("state"),
            nonce: text("nonce"),
            verifier: text("verifier"),
            issuer: text("https://id.example.com"),
            at: DateTime::UNIX_EPOCH,
            cli: None,
        }
    }

    fn brought(set: &HeaderValue) -> HeaderMap {
        let pair = set.to_str().expect("text").split(';').next().expect("a pair").to_owned();
        let line = format!("other=1; {pair}; last=2");
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(&line).expect("text"))])
    }

    #[test]
    fn only_we_can_read_it_and_a_changed_one_is_none() {
        let made = set(&keys("a root"), &begun(), true).expect("sealed");
        let text = made.to_str().expect("text");
        assert!(!text.contains("verifier") && !text.contains("c3RhdGU"), "{text}");
        let found = find(&keys("a root"), &brought(&made)).expect("a key").expect("ours");
        assert_eq!(found.verifier, "verifier");
        assert!(find(&keys("another root"), &brought(&made)).expect("a key").is_none());
        for at in 0..60 {
            let mut bytes = text.as_bytes().to_vec();
            let index = NAME.len() + 1 + at;
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let changed = HeaderValue::from_bytes(&bytes).expect("text");
            assert!(find(&keys("a root"), &brought(&changed)).expect("a key").is_none(), "byte {at}");
        }
        assert!(find(&keys("a root"), &HeaderMap::new()).expect("a key").is_none());
    }

    #[test]
    fn a_root_key_that_is_replaced_meanwhile_ends_no_sign_in() {
        let root = |word: &str| [word, " for tests only, 32 characters or more"].concat();
        let made = set(&keys("an old root"), &begun(), true).expect("sealed");
        let both = Keyring::from_roots(&root("a new root"), &[&root("an old root")]).expect("two roots");
        assert!(find(&both, &brought(&made)).expect("a key").is_some());
        assert!(find(&keys("a new root"), &brought(&made)).expect("a key").is_none());
    }

    #[test]
    fn it_is_for_our_two_paths_for_ten_minutes_and_for_no_script() {
        let made = set(&keys("a root"), &begun(), true).expect("sealed");
        let text = made.to_str().expect("text");
        for word in
            ["; Path=/api/v1/auth/oidc;", "; Max-Age=600;", "; HttpOnly;", "; SameSite=Lax;", "; Secure"]
        {
            assert!(text.contains(word), "{word}: {text}");
        }
        let plain = set(&keys("a root"), &begun(), false).expect("sealed");
        assert!(!plain.to_str().expect("text").contains("Secure"), "http is for one machine");
        assert!(clear(true).to_str().expect("text").contains("plumbline_signin=; "));
    }
}
