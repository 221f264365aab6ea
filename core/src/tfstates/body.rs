//! What a state body says about itself, and what is no state body at all.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::contents::Says;
use super::counted;

/// What a write is judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFacts {
    /// Rises with every change.
    pub serial: i64,
    /// The same for all versions of one state.
    pub lineage: String,
    /// What wrote it.
    pub terraform_version: Option<String>,
    /// Encrypted by the client: its resources cannot be read.
    pub opaque: bool,
    /// Objects that it manages; `None` if they cannot be read, or were not counted.
    pub resource_count: Option<u64>,
}

/// Why bytes are no Terraform state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    /// No bytes.
    #[error("the body is empty: a state is a JSON object with `serial` and `lineage`")]
    Empty,
    /// Binary, or another encoding.
    #[error(
        "the body is not UTF-8: send the state as Terraform writes it, not compressed and not a plan file"
    )]
    NotUtf8,
    /// Not JSON.
    #[error("the body is not JSON: it may have been cut off on its way")]
    NotJson,
    /// A list, a number.
    #[error("the body is JSON, but not an object")]
    NotAnObject,
    /// `{}`.
    #[error("the body is an empty object: an empty state still has `version`, `serial` and `lineage`")]
    EmptyObject,
    /// `terraform show -json PLAN`.
    #[error("the body is a plan as JSON (`terraform show -json` of a plan file), not a state")]
    PlanJson,
    /// `terraform show -json`.
    #[error("the body is the output of `terraform show -json`, not a state: use `terraform state pull`")]
    ShowJson,
    /// An old state.
    #[error(
        "the body is a state of an older format: Plumbline keeps states of version 4 (Terraform 0.12 or newer)"
    )]
    OldVersion,
    /// A state of a Terraform that does not exist yet.
    #[error(
        "the body is a state of a newer format than version 4: Plumbline could not keep what it says exact"
    )]
    NewVersion,
    /// No version.
    #[error("the state has no usable `version`: it must be 4")]
    NoVersion,
    /// Readers would disagree on which one counts.
    #[error("the body has one of its own fields, such as `serial` or `lineage`, twice")]
    TwiceTheSame,
    /// No reader gets to its end.
    #[error("the body is nested more than {DEPTH_MAX} levels deep: Terraform itself could not read it")]
    TooDeep,
    /// No lineage.
    #[error(
        "the state has no usable `lineage`: it must be a text of 1 to 255 bytes without control characters"
    )]
    NoLineage,
    /// No serial.
    #[error("the state has no usable `serial`: it must be a whole number from 0 to 2^53 - 1")]
    NoSerial,
}

/// The most that every reader of JSON keeps exact. The next one, which a rollback takes, is a number still.
pub const SERIAL_MAX: i64 = (1 << 53) - 1;
/// Levels that Go's decoder, and with it Terraform, reads.
const DEPTH_MAX: usize = 10_000;

#[derive(Deserialize)]
struct Known<'a> {
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    serial: Option<&'a RawValue>,
    #[serde(borrow)]
    lineage: Option<&'a RawValue>,
    #[serde(borrow)]
    terraform_version: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_data: Option<&'a RawValue>,
    #[serde(borrow)]
    format_version: Option<&'a RawValue>,
    #[serde(borrow)]
    planned_values: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_changes: Option<&'a RawValue>,
    #[serde(default)]
    resources: counted::Resources,
}

/// Reads what a state says about itself; its resources are counted, nothing of them is kept or copied.
pub fn parse_state(body: &[u8]) -> Result<StateFacts, BadState> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(BadState::Empty);
    }
    let text = std::str::from_utf8(body).map_err(|_| BadState::NotUtf8)?;
    if !text.trim_start().starts_with('{') {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        return Err(if is_json { BadState::NotAnObject } else { BadState::NotJson });
    }
    let known: Known<'_> = serde_json::from_str(text).map_err(|error| match error.classify() {
        // Every field is taken as it is: only a second one of the same name can be wrong.
        serde_json::error::Category::Data => BadState::TwiceTheSame,
        _ => BadState::NotJson,
    })?;
    if is_too_deep(body) {
        return Err(BadState::TooDeep);
    }
    let text_of = |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let says = Says {
        version: known.version.and_then(|raw| raw.get().parse().ok()),
        serial: known.serial.and_then(|raw| serde_json::from_str(raw.get()).ok()),
        lineage: text_of(known.lineage),
        terraform_version: text_of(known.terraform_version),
        is_opaque: known.encrypted_data.is_some(),
        is_shown: known.format_version.is_some(),
        is_plan: known.planned_values.is_some() || known.resource_changes.is_some(),
    };
    let facts = says.judge()?;
    let resource_count = (!facts.opaque).then_some(known.resources.0);
    Ok(StateFacts { resource_count, ..facts })
}

/// Whether valid JSON has more levels than any reader takes.
fn is_too_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'[' | b'{') => depth += 1,
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return true;
        }
    }
    false
}
