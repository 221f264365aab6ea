//! What a variable may be, and which value wins.

use unicode_normalization::is_nfc;

use super::hcl;
use super::model::{NewVariable, NewVariableSet, Origin};

/// Longest key, in characters.
const KEY_CHARS_MAX: usize = 255;
/// Longest value, in bytes.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Variables of one unit, set, workspace or run.
pub(super) const OWNER_VARIABLES_MAX: i64 = 200;
/// Variables that a run gets.
const RUN_VARIABLES_MAX: usize = 1_000;
/// Keys and values together, of one owner and of all that a run gets, in bytes: an executor takes them in one answer,
/// where each byte may need six, and such an answer has at most six megabytes.
pub(super) const TOTAL_BYTES_MAX: i64 = 512 << 10;
/// Longest description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 2_000;
const SET_NAME_CHARS_MAX: usize = 255;
const PRIORITY_MAX: i32 = 1_000;
/// Variable sets of one business unit.
pub(super) const SETS_MAX: i64 = 100;
/// Shorter secrets show nothing of themselves.
const SECRET_CHARS_MIN: usize = 12;
const TAIL_CHARS: usize = 4;

/// A field with a value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct InvalidVariable {
    /// The field's name on the wire.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl InvalidVariable {
    /// The named field is wrong.
    pub fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

/// Refuses what cannot be the name of a Terraform variable here.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_next = |c: char| is_first(c) || c.is_ascii_digit();
    if key.starts_with(is_first) && key.chars().all(is_next) && key.len() <= KEY_CHARS_MAX {
        return Ok(());
    }
    Err("a variable's name has at most 255 letters, digits and underscores, and no digit first")
}

/// Refuses what Terraform would not see as it is written.
pub fn check_value(value: &str, is_hcl: bool) -> Result<(), &'static str> {
    if value.len() > VALUE_BYTES_MAX {
        return Err("a value has at most 64 KiB");
    }
    if value.contains('\0') {
        return Err("a value has no NUL");
    }
    if is_hcl {
        return hcl::check(value);
    }
    if is_nfc(value) {
        return Ok(());
    }
    Err("Terraform keeps text in Unicode's composed form (NFC) and would change this value: \
         send it composed, or in an encoding such as base64")
}

/// Refuses more than one owner or one run may have.
pub fn check_total(count: usize, bytes: i64) -> Result<(), String> {
    if count > RUN_VARIABLES_MAX {
        return Err(format!("a run has at most {RUN_VARIABLES_MAX} variables, and these are {count}"));
    }
    if bytes > TOTAL_BYTES_MAX {
        return Err(format!(
            "keys and values of all variables together have at most {TOTAL_BYTES_MAX} bytes, and these have {bytes}"
        ));
    }
    Ok(())
}

/// Refuses what one owner has no room for.
pub(super) fn check_room(count: i64, bytes: i64) -> Result<(), InvalidVariable> {
    if count > OWNER_VARIABLES_MAX {
        let reason = format!("there is no room for another: at most {OWNER_VARIABLES_MAX} in one place");
        return Err(InvalidVariable::new("key", reason));
    }
    if bytes > TOTAL_BYTES_MAX {
        let reason = format!(
            "keys and values in one place have at most {TOTAL_BYTES_MAX} bytes together, and these would have {bytes}"
        );
        return Err(InvalidVariable::new("value", reason));
    }
    Ok(())
}

/// What a key and its value count.
pub fn size_of(key: &str, value_bytes: usize) -> i64 {
    i64::try_from(key.len() + value_bytes).unwrap_or(i64::MAX)
}

/// Refuses a description that is too long.
pub(super) fn check_description(description: Option<&str>) -> Result<(), InvalidVariable> {
    match description {
        Some(text) if text.chars().count() > DESCRIPTION_CHARS_MAX => {
            Err(InvalidVariable::new("description", "must have at most 2,000 characters"))
        }
        _ => Ok(()),
    }
}

impl NewVariable {
    /// Checks every field.
    pub(super) fn check(&self) -> Result<(), InvalidVariable> {
        check_key(&self.key).map_err(|reason| InvalidVariable::new("key", reason))?;
        check_value(self.value.as_str(), self.is_hcl)
            .map_err(|reason| InvalidVariable::new("value", reason))?;
        check_description(self.description.as_deref())
    }
}

impl NewVariableSet {
    /// Checks every field.
    pub(super) fn check(&self) -> Result<(), InvalidVariable> {
        let length = self.name.chars().count();
        let is_clean = !self.name.chars().any(char::is_control) && self.name.trim() == self.name;
        if !(1..=SET_NAME_CHARS_MAX).contains(&length) || !is_clean {
            let reason = "must have 1 to 255 characters, no control characters, and no space at its ends";
            return Err(InvalidVariable::new("name", reason));
        }
        if !(0..=PRIORITY_MAX).contains(&self.priority) {
            return Err(InvalidVariable::new("priority", "must be between 0 and 1,000"));
        }
        check_description(self.description.as_deref())
    }
}

/// What a secret shows of itself: its last four characters, if it is long enough not to be given away by them.
pub fn masked_tail(secret: &str) -> Option<String> {
    let length = secret.chars().count();
    let tail = || secret.chars().skip(length - TAIL_CHARS).collect::<String>();
    (length >= SECRET_CHARS_MIN).then(|| format!("…{}", tail().escape_debug()))
}

/// A key with the value that won.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged<T> {
    /// The key.
    pub key: String,
    /// Where the value comes from.
    pub source: Origin,
    /// What the source says.
    pub value: T,
    /// Whose values it wins over, the strongest first.
    pub overrides: Vec<Origin>,
}

/// The one rule of what wins: unit < variable sets by rising priority, ties by name < workspace < run. Sorted by key.
pub fn merge<T>(all: impl IntoIterator<Item = (Origin, String, T)>) -> Vec<Merged<T>> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|(one, one_key, _), (other, other_key, _)| one_key.cmp(other_key).then(other.cmp(one)));
    let mut merged: Vec<Merged<T>> = Vec::new();
    for (source, key, value) in all {
        match merged.last_mut().filter(|strongest| strongest.key == key) {
            Some(strongest) => strongest.overrides.push(source),
            None => merged.push(Merged { key, source, value, overrides: Vec::new() }),
        }
    }
    merged
}
