//! What a value may be, and what is shown of it.

use serde_json::{Value as Json, json};
use url::{Host, Url};

use super::model::{Given, Kind, SecretShape, Setting, TextShape, Value};
use super::views::Changed;
use crate::business_units::check_slug;
use crate::oidc_logins::RoleMapping;
use crate::secrets::SecretText;
use crate::text::is_line;
use crate::workspaces::{LocalRepos, RepoUrl, check_branch, check_working_dir};

/// Longest text, in characters.
const TEXT_CHARS_MAX: usize = 255;
/// Longest mapping, in bytes.
const JSON_BYTES_MAX: usize = 16 << 10;
/// Longest secret, in bytes.
const SECRET_BYTES_MAX: usize = 4096;
/// Longest address, in bytes.
const URL_BYTES_MAX: usize = 2048;
/// A shorter secret would be told by its end.
const TAIL_SECRET_CHARS_MIN: usize = 12;
const TAIL_CHARS: usize = 4;

/// Checks a value from a request. The reason never holds the value.
pub(super) fn read(setting: &Setting, given: &Json, local: LocalRepos) -> Result<Given, String> {
    match setting.kind {
        Kind::Bool => given.as_bool().map(plain_bool).ok_or_else(|| "must be true or false".into()),
        Kind::Integer { min, max } | Kind::Duration { min, max, .. } => given
            .as_i64()
            .filter(|number| (min..=max).contains(number))
            .map(|number| Given::Plain(Value::Integer(number)))
            .ok_or_else(|| format!("must be a whole number from {min} to {max}")),
        Kind::Word(words) => {
            let word = given.as_str().filter(|word| words.contains(word));
            word.map(plain_text).ok_or_else(|| format!("must be one of: {}", words.join(", ")))
        }
        Kind::Text(shape) => text(shape, text_of(given)?, local).map(|text| plain_text(&text)),
        Kind::Url => url(text_of(given)?, &["https", "http"]).map(plain_text),
        Kind::Secret(shape) => {
            let secret = secret(shape, text_of(given)?)?;
            Ok(Given::Secret(SecretText::new(secret.to_owned())))
        }
    }
}

/// A stored value, if it is still one that the registry allows: bounds may have become narrower.
pub(super) fn stored(setting: &Setting, value: &Json) -> Option<Value> {
    match read(setting, value, LocalRepos::Allowed) {
        Ok(Given::Plain(value)) => Some(value),
        Ok(Given::Secret(_)) | Err(_) => None,
    }
}

/// The end of a secret, for people to tell it from another one; nothing of a short one.
pub(super) fn masked_tail(secret: &SecretText) -> Option<String> {
    let letters: Vec<char> = secret.expose().chars().collect();
    let shown = letters.len().checked_sub(TAIL_CHARS).filter(|_| letters.len() >= TAIL_SECRET_CHARS_MIN)?;
    Some(format!("...{}", letters[shown..].iter().collect::<String>()))
}

/// What a write does to a setting; `None` if nothing.
pub(super) fn changed(before: Before<'_>, to: Option<&Given>) -> Option<Changed> {
    let was_set = before.value.is_some() || before.is_sealed;
    match to {
        None => was_set.then_some(Changed::Deleted),
        Some(Given::Plain(value)) if before.value == Some(&json!(value)) => None,
        // The same secret again counts as a new one: whoever may write must not learn what is there.
        Some(_) => Some(if was_set { Changed::Replaced } else { Changed::Set }),
    }
}

/// What a setting was before a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before<'a> {
    pub value: Option<&'a Json>,
    pub is_sealed: bool,
}

fn plain_bool(value: bool) -> Given {
    Given::Plain(Value::Bool(value))
}

fn plain_text(text: &str) -> Given {
    Given::Plain(Value::Text(text.to_owned()))
}

fn text_of(given: &Json) -> Result<&str, String> {
    given.as_str().ok_or_else(|| "must be a text".into())
}

fn text(shape: TextShape, text: &str, local: LocalRepos) -> Result<String, String> {
    if shape == TextShape::RoleMapping {
        return role_mapping(text);
    }
    if matches!(shape, TextShape::Repository) {
        return Ok(RepoUrl::parse(text, local)?.as_str().to_owned());
    }
    if matches!(shape, TextShape::Directory) {
        return Ok(check_working_dir(text)?);
    }
    if !is_line(text, TEXT_CHARS_MAX) {
        return Err("must have 1 to 255 characters, not all blank, without control characters".into());
    }
    let (fits, expected) = match shape {
        TextShape::Line => (true, ""),
        TextShape::Branch => return check_branch(text).map(|()| text.to_owned()).map_err(Into::into),
        TextShape::Host => (is_host(text), "must be the name or address of a host, without a port"),
        TextShape::Email => (is_email(text), "must be one e-mail address"),
        TextShape::Emails => {
            (text.split(',').all(|one| is_email(one.trim())), "must be e-mail addresses, separated by commas")
        }
        TextShape::Currency => (
            text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()),
            "must be three capital letters, such as USD",
        ),
        TextShape::Organisation => {
            (is_organisation(text), "must be the name of an organisation: letters, digits and single dashes")
        }
        TextShape::Slug => (check_slug(text).is_ok(), "must be the slug of a business unit"),
        TextShape::Repository | TextShape::Directory | TextShape::RoleMapping => (true, ""),
    };
    if fits { Ok(text.to_owned()) } else { Err(expected.into()) }
}

fn role_mapping(text: &str) -> Result<String, String> {
    if text.len() > JSON_BYTES_MAX || text.contains('\0') {
        return Err("must be a JSON object as a text, of at most 16 KiB".into());
    }
    RoleMapping::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn is_host(text: &str) -> bool {
    // A port, a path or a user would be parsed as such, and not be part of the host any more.
    let is_name = !text.contains([':', '/', '@', '?', '#', ' ', '%'])
        && !text.starts_with('-')
        && Url::parse(&["smtp://", text].concat()).is_ok_and(|url| url.has_host());
    is_name || text.parse::<std::net::Ipv6Addr>().is_ok()
}

fn is_email(text: &str) -> bool {
    // A header may be made of it: one address, and nothing that ends a line or adds another.
    let word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_graphic() && !"<>(),;:\\\"@".contains(c))
    };
    text.split_once('@').is_some_and(|(name, host)| word(name) && word(host))
}

fn is_organisation(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

fn url<'t>(text: &'t str, schemes: &[&str]) -> Result<&'t str, String> {
    let expected = || format!("must be an address beginning with {}://", schemes.join(":// or "));
    if text.len() > URL_BYTES_MAX || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("must be an address of at most 2,048 bytes, without blanks".into());
    }
    let url = Url::parse(text).map_err(|_| expected())?;
    if !schemes.contains(&url.scheme()) || matches!(url.host(), None | Some(Host::Domain(""))) {
        return Err(expected());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password".into());
    }
    Ok(text)
}

fn secret(shape: SecretShape, text: &str) -> Result<&str, String> {
    match shape {
        SecretShape::Token { chars_min } => {
            let long_enough = text.chars().count() >= chars_min && text.len() <= SECRET_BYTES_MAX;
            if !long_enough || text.chars().any(char::is_control) || text.trim() != text {
                return Err(format!(
                    "must have {chars_min} characters to {SECRET_BYTES_MAX} bytes, without control characters and \
                     without blanks at its ends"
                ));
            }
            Ok(text)
        }
        SecretShape::HttpsUrl => url(text, &["https"]),
    }
}
