//! What a state says about itself, and whether that is what its writer announced.

use std::io::Read;
use std::ops::Range;

use serde_json::Number;

use super::Unreadable;
use super::walk::{Visitor, walk_into};
use crate::tfstates::{BadState, SERIAL_MAX, StateFacts};

/// What stands at the top of a body. `None`: nothing there, or nothing of that kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Says {
    /// Of the format.
    pub version: Option<i64>,
    /// Rises with every change.
    pub serial: Option<Number>,
    /// The same for all versions of one state.
    pub lineage: Option<String>,
    /// What wrote it.
    pub terraform_version: Option<String>,
    /// Encrypted by OpenTofu.
    pub is_opaque: bool,
    /// `terraform show -json`.
    pub is_shown: bool,
    /// `terraform show -json PLAN`.
    pub is_plan: bool,
}

/// What one pass through a state found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tfstates) struct Contents {
    pub says: Says,
    /// The bytes of the serial.
    pub(in crate::tfstates) serial_at: Option<Range<u64>>,
    /// Objects that the state manages: what data sources read does not count.
    pub(in crate::tfstates) resource_count: u64,
    pub(in crate::tfstates) is_object: bool,
}

impl Says {
    const LINEAGE_LENGTH_MAX: usize = 255;
    const VERSION_LENGTH_MAX: usize = 64;

    /// What a write is judged by.
    pub fn judge(&self) -> Result<StateFacts, BadState> {
        if self.is_plan {
            return Err(BadState::PlanJson);
        }
        if self.is_shown {
            return Err(BadState::ShowJson);
        }
        let says_nothing = self.version.is_none() && self.serial.is_none() && self.lineage.is_none();
        if !self.is_opaque && says_nothing {
            return Err(BadState::EmptyObject);
        }
        // A state that its client encrypted has a version of its own, or none.
        if !self.is_opaque {
            match self.version {
                Some(4) => {}
                Some(..4) => return Err(BadState::OldVersion),
                Some(5..) => return Err(BadState::NewVersion),
                None => return Err(BadState::NoVersion),
            }
        }
        let usable = |text: &&String| !text.is_empty() && !text.contains(char::is_control);
        Ok(StateFacts {
            lineage: self
                .lineage
                .as_ref()
                .filter(usable)
                .filter(|text| text.len() <= Self::LINEAGE_LENGTH_MAX)
                .cloned()
                .ok_or(BadState::NoLineage)?,
            serial: self
                .serial
                .as_ref()
                .and_then(Number::as_i64)
                .filter(|serial| (0..=SERIAL_MAX).contains(serial))
                .ok_or(BadState::NoSerial)?,
            terraform_version: self
                .terraform_version
                .as_ref()
                .filter(usable)
                .filter(|text| text.len() <= Self::VERSION_LENGTH_MAX)
                .cloned(),
            opaque: self.is_opaque,
            resource_count: None,
        })
    }
}

/// Looks only at the top.
struct Top;

impl Visitor for Top {
    type Kept = ();

    fn instance(&mut self) {}
}

/// What a whole state says, without looking into its resources.
pub(in crate::tfstates) fn read_facts(source: impl Read) -> Result<Contents, Unreadable> {
    let mut contents = Contents::default();
    walk_into(source, &mut Top, &mut contents)?;
    Ok(contents)
}

/// What the first bytes of a body show. Terraform writes what a state is judged by first, so a little is nearly always
/// enough; what has not come yet is not held against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tfstates) struct Beginning {
    /// Why the body cannot be what was announced.
    pub(in crate::tfstates) contradiction: Option<&'static str>,
    /// Encrypted by OpenTofu.
    pub(in crate::tfstates) is_opaque: bool,
    /// Known only of a whole body.
    pub(in crate::tfstates) resource_count: Option<i64>,
}

impl Beginning {
    /// Reads it, against what was announced.
    pub(in crate::tfstates) fn read(bytes: &[u8], is_whole: bool, serial: i64, lineage: &str) -> Self {
        let mut contents = Contents::default();
        let walked = walk_into(bytes, &mut Top, &mut contents);
        let says = &contents.says;
        let is_broken = !contents.is_object || (is_whole && walked.is_err());
        let is_counted = is_whole && walked.is_ok() && !says.is_opaque;
        Self {
            contradiction: if is_broken {
                Some("the body is no JSON object")
            } else {
                says.contradicts(is_whole, serial, lineage)
            },
            is_opaque: says.is_opaque,
            resource_count: if is_counted { i64::try_from(contents.resource_count).ok() } else { None },
        }
    }
}

impl Says {
    /// Why this cannot be what was announced. What is missing counts only if all has been read.
    pub(in crate::tfstates) fn contradicts(
        &self,
        is_whole: bool,
        serial: i64,
        lineage: &str,
    ) -> Option<&'static str> {
        let is_missing = (self.serial.is_none() || self.lineage.is_none()) && is_whole;
        let is_other_serial = self.serial.as_ref().is_some_and(|said| said.as_i64() != Some(serial));
        let is_other_lineage = self.lineage.as_ref().is_some_and(|said| said != lineage);
        match self.judge() {
            Err(BadState::PlanJson | BadState::ShowJson | BadState::OldVersion | BadState::NewVersion) => {
                Some("the body is no state of version 4")
            }
            _ if is_other_serial => Some("the body has another serial than was announced"),
            _ if is_other_lineage => Some("the body has another lineage than was announced"),
            _ if is_missing => Some("the body has no serial or no lineage"),
            _ => None,
        }
    }
}
