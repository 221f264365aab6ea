//! The outputs of a state, without what is sensitive unless that is asked for.

use std::io::Read;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Unreadable;
use super::scanner::Copied;
use super::walk::{Output, Visitor, walk};

/// Outputs in one answer.
const OUTPUTS_MAX: usize = 1_000;
/// Longest value in an answer, in bytes of JSON.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// All values of an answer together, in bytes of JSON: below what a function may answer.
const ANSWER_BYTES_MAX: usize = 2 << 20;

/// Why an output has no value here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// It is marked as sensitive.
    Sensitive,
    /// It is longer than 64 KiB, or the answer as a whole would be too long.
    TooLong,
}

/// An output of a state.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateOutput {
    /// Its name.
    pub name: String,
    /// Its type, as Terraform writes it: `"string"`, `["list","string"]`.
    #[serde(rename = "type")]
    #[schema(value_type = Object)]
    pub kind: Value,
    /// Whether the configuration marks it as sensitive.
    pub sensitive: bool,
    /// Its value; null also if it is withheld.
    #[schema(value_type = Object)]
    pub value: Value,
    /// Why there is no value.
    pub withheld: Option<Withheld>,
    /// How long the value is, as JSON in bytes; absent if it is sensitive and not shown.
    pub size_bytes: Option<u64>,
}

/// Without the value, which may be a secret.
impl std::fmt::Debug for StateOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateOutput").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The outputs of a state, in the order in which they stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateOutputs {
    /// At most 1,000.
    pub items: Vec<StateOutput>,
    /// Whether there are more.
    pub truncated: bool,
}

struct Reading {
    shows_sensitive: bool,
    bytes_left: usize,
    outputs: StateOutputs,
}

impl Visitor for Reading {
    type Kept = ();

    fn instance(&mut self) {}

    fn output_bytes_max(&self) -> Option<usize> {
        Some(VALUE_BYTES_MAX)
    }

    /// Terraform writes them before the resources, which are nearly all of a large state.
    fn has_enough(&self, after: &str) -> bool {
        after == "outputs"
    }

    fn output(&mut self, name: &str, output: &Output<'_>) -> Result<(), Unreadable> {
        if self.outputs.items.len() == OUTPUTS_MAX {
            self.outputs.truncated = true;
            return Ok(());
        }
        let is_hidden = output.is_sensitive && !self.shows_sensitive;
        let (value, withheld) = match output.value {
            _ if is_hidden => (Value::Null, Some(Withheld::Sensitive)),
            Copied::Whole(json) if json.len() <= self.bytes_left => {
                self.bytes_left -= json.len();
                (parse(json)?, None)
            }
            Copied::Whole(_) | Copied::Long(_) => (Value::Null, Some(Withheld::TooLong)),
        };
        let kind = match output.kind {
            Copied::Whole(json) => parse(json)?,
            Copied::Long(_) => Value::Null,
        };
        self.outputs.items.push(StateOutput {
            name: name.to_owned(),
            kind,
            sensitive: output.is_sensitive,
            value,
            withheld,
            size_bytes: (!is_hidden).then_some(output.value_bytes),
        });
        Ok(())
    }
}

fn parse(json: &[u8]) -> Result<Value, Unreadable> {
    serde_json::from_slice(json).map_err(|_| Unreadable::Broken)
}

/// The outputs, with their sensitive values only if `shows_sensitive`.
pub(in crate::tfstates) fn outputs(
    source: impl Read,
    shows_sensitive: bool,
) -> Result<StateOutputs, Unreadable> {
    let outputs = StateOutputs::default();
    let mut reading = Reading { shows_sensitive, bytes_left: ANSWER_BYTES_MAX, outputs };
    walk(source, &mut reading)?;
    Ok(reading.outputs)
}
