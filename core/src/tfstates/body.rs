//! What a state body says about itself, and what is no state body at all.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

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
    /// No lineage.
    #[error("the state has no usable `lineage`")]
    NoLineage,
    /// No serial.
    #[error("the state has no usable `serial`: it must be a whole number that is not negative")]
    NoSerial,
}

impl BadState {
    /// Whether the body could not even be read, as opposed to saying the wrong thing.
    pub fn is_malformed(self) -> bool {
        matches!(self, Self::Empty | Self::NotUtf8 | Self::NotJson)
    }
}

const LINEAGE_LENGTH_MAX: usize = 255;
const VERSION_LENGTH_MAX: usize = 64;

#[derive(Deserialize)]
struct Known<'a> {
    version: Option<i64>,
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
}

/// Reads what a state says about itself; nothing of its resources is kept or copied.
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
        serde_json::error::Category::Data => BadState::OldVersion,
        _ => BadState::NotJson,
    })?;
    if known.planned_values.is_some() || known.resource_changes.is_some() {
        return Err(BadState::PlanJson);
    }
    if known.format_version.is_some() {
        return Err(BadState::ShowJson);
    }
    let opaque = known.encrypted_data.is_some();
    if !opaque && known.version.is_none() && known.serial.is_none() && known.lineage.is_none() {
        return Err(BadState::EmptyObject);
    }
    if !opaque && known.version.is_some_and(|version| version < 4) {
        return Err(BadState::OldVersion);
    }
    let text_of = |raw: Option<&RawValue>| {
        raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
            .filter(|text| !text.is_empty() && !text.contains('\0'))
    };
    Ok(StateFacts {
        lineage: text_of(known.lineage)
            .filter(|text| text.len() <= LINEAGE_LENGTH_MAX)
            .ok_or(BadState::NoLineage)?,
        serial: known
            .serial
            .and_then(|raw| raw.get().parse().ok())
            .filter(|serial| *serial >= 0)
            .ok_or(BadState::NoSerial)?,
        terraform_version: text_of(known.terraform_version).filter(|text| text.len() <= VERSION_LENGTH_MAX),
        opaque,
    })
}

/// The same state with another serial. Every other value keeps its bytes. `None` if the state is encrypted, where
/// the serial is sealed inside too, or cannot be read.
pub fn with_serial(body: &[u8], serial: i64) -> Option<Vec<u8>> {
    let mut fields: BTreeMap<&str, &RawValue> = serde_json::from_slice(body).ok()?;
    if fields.contains_key("encrypted_data") {
        return None;
    }
    let serial = serde_json::value::to_raw_value(&serial).ok()?;
    fields.insert("serial", &serial);
    serde_json::to_vec(&fields).ok()
}
