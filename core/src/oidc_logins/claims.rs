//! Who somebody is, as the provider's claims say it. Read only after the token that holds them was found genuine.

use serde_json::{Map, Value};

use crate::users::normal_email;

/// As long as the standard allows a subject to be.
const SUBJECT_CHARS_MAX: usize = 255;
/// Longest name that is kept.
const NAME_CHARS_MAX: usize = 255;
/// Groups that are looked at.
const GROUPS_MAX: usize = 5000;

/// Why claims say nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimsError {
    /// Without it nobody could be found again.
    #[error("the provider's answer has no subject")]
    NoSubject,
}

/// Somebody at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider.
    pub issuer: String,
    /// Who, for ever: never given to somebody else.
    pub subject: String,
    /// Their e-mail as we keep it; `None` if there is none, or none that can be one.
    pub email: Option<String>,
    /// Whether the provider says that the e-mail is theirs. It has to say so: silence is no.
    pub email_verified: bool,
    /// What to call them.
    pub display_name: Option<String>,
    /// Their groups; `None` if the provider says nothing of groups.
    pub groups: Option<Vec<String>>,
}

impl Identity {
    /// Reads claims. `role_claim` names the one that holds groups.
    pub fn read(issuer: &str, claims: &Map<String, Value>, role_claim: &str) -> Result<Self, ClaimsError> {
        let subject = text(claims, "sub").filter(|subject| subject.chars().count() <= SUBJECT_CHARS_MAX);
        Ok(Self {
            issuer: issuer.to_owned(),
            subject: subject.ok_or(ClaimsError::NoSubject)?.to_owned(),
            email: text(claims, "email").and_then(normal_email),
            email_verified: claims.get("email_verified").is_some_and(is_true),
            display_name: display_name(claims),
            groups: claims.get(role_claim).and_then(groups),
        })
    }
}

/// Some providers write it as a text.
fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true) || value.as_str() == Some("true")
}

fn text<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c str> {
    let text = claims.get(name)?.as_str()?;
    let is_blank = text.trim().is_empty();
    (!is_blank && !text.contains('\0')).then_some(text)
}

/// Their whole name, or what there is of it, or what they sign in with over there.
fn display_name(claims: &Map<String, Value>) -> Option<String> {
    let parts = ["given_name", "family_name"].map(|name| text(claims, name));
    let joined = parts.into_iter().flatten().map(str::trim).collect::<Vec<_>>().join(" ");
    let name = text(claims, "name")
        .map(str::to_owned)
        .or_else(|| Some(joined).filter(|joined| !joined.is_empty()))
        .or_else(|| text(claims, "preferred_username").map(str::to_owned))?;
    let shown: String = name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    Some(shown).filter(|name| !name.trim().is_empty())
}

/// One group or several.
fn groups(claim: &Value) -> Option<Vec<String>> {
    match claim {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(many) => {
            let words = many.iter().filter_map(|one| one.as_str().map(str::to_owned));
            Some(words.take(GROUPS_MAX).collect())
        }
        _ => None,
    }
}
