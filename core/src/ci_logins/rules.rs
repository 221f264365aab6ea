//! What a rule must look like, and which tokens it takes.

use chrono::{DateTime, TimeDelta, Utc};
use url::Url;

use super::CiLoginError;
use super::model::{CiClaims, NewTrustRule, TrustRuleView};
use crate::text::is_line;

/// How far clocks may differ.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);
/// How long published keys are taken without being fetched again.
pub(super) const KEYS_AGE: TimeDelta = TimeDelta::hours(12);
/// How often the keys of one issuer are fetched at most.
pub(super) const KEYS_PAUSE: TimeDelta = TimeDelta::seconds(30);

const TEXT_CHARS_MAX: usize = 255;
const SUBJECT_CHARS_MAX: usize = 500;
const CLAIMS_MAX: usize = 20;
const WORKSPACES_MAX: usize = 500;

/// Refuses what cannot be a rule, and what would trust strangers.
pub(super) fn check(new: &NewTrustRule, allow_private: bool) -> Result<(), CiLoginError> {
    let invalid = |field, reason| Err(CiLoginError::Invalid { field, reason });
    if !is_line(&new.name, TEXT_CHARS_MAX) {
        return invalid("name", "must be 1 to 255 characters, not blank, without control characters");
    }
    check_issuer(&new.issuer, allow_private)?;
    if !is_line(&new.audience, TEXT_CHARS_MAX) || new.audience.contains('*') {
        return invalid("audience", "must be 1 to 255 characters, without `*`");
    }
    check_subject(&new.subject)?;
    if new.claims.len() > CLAIMS_MAX
        || new.claims.iter().any(|(name, text)| !is_line(name, 64) || !is_line(text, TEXT_CHARS_MAX))
    {
        return invalid("claims", "must be at most 20 names and texts of at most 255 characters");
    }
    if !(5..=120).contains(&new.key_minutes) {
        return invalid("key_minutes", "must be 5 to 120");
    }
    match new.workspace_ids.as_deref() {
        Some([]) => invalid("workspace_ids", "must name a workspace; leave it out for all of the unit"),
        Some(ids) if ids.len() > WORKSPACES_MAX => {
            invalid("workspace_ids", "must name at most 500 workspaces")
        }
        _ => Ok(()),
    }
}

fn check_issuer(issuer: &str, allow_private: bool) -> Result<(), CiLoginError> {
    let wrong = CiLoginError::Invalid {
        field: "issuer",
        reason: "must be the address of an issuer, https://…, in lower case, without query, fragment, name or password",
    };
    let Ok(url) = Url::parse(issuer) else { return Err(wrong) };
    let is_encrypted = url.scheme() == "https" || (allow_private && url.scheme() == "http");
    // Browsers mend what is written wrong; issuers are compared letter by letter.
    let rest = issuer.strip_prefix(&url[..url::Position::BeforePath]);
    let is_written_so = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_plain = is_written_so
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && url.host_str().is_some_and(|host| !host.is_empty());
    if is_encrypted && is_plain && is_line(issuer, TEXT_CHARS_MAX) && !issuer.contains(char::is_whitespace) {
        Ok(())
    } else {
        Err(wrong)
    }
}

/// Everybody can have a repository at a public forge: the owner must stand there in letters.
fn check_subject(subject: &str) -> Result<(), CiLoginError> {
    let literal = subject.split('*').next().unwrap_or_default();
    let is_pinned = !subject.contains('*') || (literal.contains(':') && literal.contains('/'));
    if is_line(subject, SUBJECT_CHARS_MAX) && is_pinned {
        return Ok(());
    }
    Err(CiLoginError::Invalid {
        field: "subject",
        reason: "must be 1 to 500 characters; before the first `*` it must name the owner, as in repo:acme/*",
    })
}

/// Refuses a token whose time has not come or is over.
pub(super) fn check_time(claims: &CiClaims, now: DateTime<Utc>) -> Result<(), CiLoginError> {
    let (early, late) = ((now - LEEWAY).timestamp(), (now + LEEWAY).timestamp());
    if claims.exp <= early {
        return Err(CiLoginError::Refused("it has expired"));
    }
    if claims.nbf.is_some_and(|from| from > late) || claims.iat.is_some_and(|made| made > late) {
        return Err(CiLoginError::Refused("it is not good yet"));
    }
    Ok(())
}

/// The one rule that takes the token.
pub(super) fn choose<'r>(
    rules: &'r [TrustRuleView],
    claims: &CiClaims,
) -> Result<&'r TrustRuleView, CiLoginError> {
    let mut taking = rules.iter().filter(|rule| takes(rule, claims));
    match (taking.next(), taking.next()) {
        (Some(rule), None) => Ok(rule),
        (Some(_), Some(_)) => Err(CiLoginError::Ambiguous),
        (None, _) => {
            Err(CiLoginError::Refused("no trust rule takes its audience, subject and claims together"))
        }
    }
}

fn takes(rule: &TrustRuleView, claims: &CiClaims) -> bool {
    claims.aud.has(&rule.audience)
        && matches(&rule.subject, &claims.sub)
        && rule.claims.iter().all(|(name, wanted)| match claims.more.get(name) {
            Some(serde_json::Value::String(text)) => text == wanted,
            Some(serde_json::Value::Bool(word)) => word.to_string() == *wanted,
            Some(serde_json::Value::Number(number)) => number.to_string() == *wanted,
            _ => false,
        })
}

/// Whether a text is what a pattern says: `*` stands for any characters but colons, also for none.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (patterns, parts) = (pattern.split(':'), text.split(':'));
    patterns.clone().count() == parts.clone().count()
        && patterns.zip(parts).all(|(one, part)| fits(one, part))
}

/// The same between two colons. Each piece is looked for where the one before it ended, so no text takes long.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(last)
}
