//! What differs between two states, by resource address. Values are compared but never kept or shown.

use std::collections::BTreeMap;
use std::io::Read;

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprints;
use super::scanner::Copied;
use super::walk::{InstanceName, Output, ResourceName, Visitor, walk};
use super::{ADDRESSES_MAX, Unreadable};

/// Longest list in an answer.
const LISTED_MAX: usize = 10_000;
/// Longest value of an output that is understood, in bytes: of a longer one the bytes are compared.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// What differs between two states. Every list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateDiff {
    /// Addresses that only the newer one has.
    pub added: Vec<String>,
    /// Addresses whose content differs.
    pub changed: Vec<String>,
    /// Addresses that only the older one has.
    pub removed: Vec<String>,
    /// Names of outputs that were added, changed or removed.
    pub outputs_changed: Vec<String>,
    /// Whether a list would have more than 10,000 lines: it has the first ones.
    pub truncated: bool,
}

/// Two states, compared while one after the other is read.
#[derive(Debug, Default)]
pub(in crate::tfstates) struct Comparison {
    fingerprints: Fingerprints,
    resources: BTreeMap<Box<str>, Pair>,
    outputs: BTreeMap<Box<str>, Pair>,
}

/// What both states have under a name, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pair {
    older: Option<u64>,
    newer: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Older,
    Newer,
}

impl Comparison {
    /// Reads the older state. Not reading one means that there was none.
    pub(in crate::tfstates) fn read_older(self, source: impl Read) -> Result<Self, Unreadable> {
        self.read(source, Side::Older)
    }

    /// Reads the newer state.
    pub(in crate::tfstates) fn read_newer(self, source: impl Read) -> Result<Self, Unreadable> {
        self.read(source, Side::Newer)
    }

    fn read(mut self, source: impl Read, side: Side) -> Result<Self, Unreadable> {
        walk(source, &mut Reading { comparison: &mut self, side, instance: 0 })?;
        Ok(self)
    }

    /// What differs.
    pub(in crate::tfstates) fn finish(self) -> StateDiff {
        let mut diff = StateDiff::default();
        let mut list = |list: fn(&mut StateDiff) -> &mut Vec<String>, name: Box<str>| {
            let lines = list(&mut diff);
            if lines.len() < LISTED_MAX {
                lines.push(name.into());
            } else {
                diff.truncated = true;
            }
        };
        for (address, pair) in self.resources {
            match (pair.older, pair.newer) {
                (None, _) => list(|diff| &mut diff.added, address),
                (_, None) => list(|diff| &mut diff.removed, address),
                (Some(older), Some(newer)) if older != newer => list(|diff| &mut diff.changed, address),
                (Some(_), Some(_)) => {}
            }
        }
        for (name, pair) in self.outputs {
            if pair.older != pair.newer {
                list(|diff| &mut diff.outputs_changed, name);
            }
        }
        diff
    }
}

impl Pair {
    fn add(&mut self, side: Side, fingerprint: u64) {
        let sum = match side {
            Side::Older => &mut self.older,
            Side::Newer => &mut self.newer,
        };
        // Objects that were replaced and not destroyed yet have the address of the one that replaces them.
        *sum = Some(sum.unwrap_or(0).wrapping_add(fingerprint));
    }
}

struct Reading<'a> {
    comparison: &'a mut Comparison,
    side: Side,
    instance: u64,
}

impl Visitor for Reading<'_> {
    type Kept = u64;

    /// What people mean by "changed": not the order in which it is built, nor a provider's notes.
    fn wants(&self, field: &str) -> bool {
        !matches!(field, "dependencies" | "private")
    }

    fn field(&mut self, name: &str, value: &Copied<'_>) -> Result<(), Unreadable> {
        let fingerprints = &self.comparison.fingerprints;
        self.instance = self.instance.wrapping_add(fingerprints.field(name, fingerprints.of(value)?));
        Ok(())
    }

    fn instance(&mut self) -> u64 {
        std::mem::take(&mut self.instance)
    }

    fn resource(
        &mut self,
        name: &ResourceName,
        instances: Vec<(InstanceName, u64)>,
    ) -> Result<(), Unreadable> {
        for (instance, fingerprint) in instances {
            let mut fingerprint = self.comparison.fingerprints.field("", fingerprint);
            if let Some(deposed) = &instance.deposed {
                fingerprint = self.comparison.fingerprints.field(deposed, fingerprint);
            }
            let address = name.address(&instance).into();
            self.comparison.resources.entry(address).or_default().add(self.side, fingerprint);
        }
        if self.comparison.resources.len() > ADDRESSES_MAX { Err(Unreadable::TooMany) } else { Ok(()) }
    }

    fn output_bytes_max(&self) -> Option<usize> {
        Some(OUTPUT_BYTES_MAX)
    }

    fn output(&mut self, name: &str, output: &Output<'_>) -> Result<(), Unreadable> {
        let fingerprints = &self.comparison.fingerprints;
        let kind = fingerprints.field("type", fingerprints.of(&output.kind)?);
        let value = fingerprints.field("value", fingerprints.of(&output.value)?);
        let sensitive = fingerprints.field("sensitive", u64::from(output.is_sensitive));
        let fingerprint = kind.wrapping_add(value).wrapping_add(sensitive);
        self.comparison.outputs.entry(name.into()).or_default().add(self.side, fingerprint);
        if self.comparison.outputs.len() > ADDRESSES_MAX { Err(Unreadable::TooMany) } else { Ok(()) }
    }
}
