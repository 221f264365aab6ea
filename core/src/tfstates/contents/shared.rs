//! What of a state other workspaces see: its outputs.

use std::io::Read;

use serde_json::json;

use super::Unreadable;
use super::scanner::Copied;
use super::walk::{Output, Visitor, walk};

/// The only version of the format in which outputs stand at the top.
const VERSION: i64 = 4;

/// A state without its resources.
pub(in crate::tfstates) enum Shared {
    /// As JSON.
    State(Vec<u8>),
    /// Its outputs are longer than was allowed.
    TooLong,
}

struct Sharing {
    /// The fields of an object, without its braces.
    outputs: Vec<u8>,
    bytes_max: usize,
    is_too_long: bool,
}

impl Visitor for Sharing {
    type Kept = ();

    fn instance(&mut self) {}

    fn output_bytes_max(&self) -> Option<usize> {
        Some(self.bytes_max)
    }

    /// Terraform writes them before the resources, which are nearly all of a large state.
    fn has_enough(&self, after: &str) -> bool {
        after == "outputs"
    }

    fn output(&mut self, name: &str, output: &Output<'_>) -> Result<(), Unreadable> {
        let (Copied::Whole(value), Copied::Whole(kind)) = (&output.value, &output.kind) else {
            self.is_too_long = true;
            return Ok(());
        };
        if self.outputs.len() + value.len() + kind.len() > self.bytes_max {
            self.is_too_long = true;
        }
        if self.is_too_long {
            return Ok(());
        }
        let name = json!(name).to_string();
        let between: &[u8] = if self.outputs.is_empty() { b"" } else { b"," };
        let mark: &[u8] = if output.is_sensitive { b",\"sensitive\":true}" } else { b"}" };
        for part in [between, name.as_bytes(), b":{\"value\":", value, b",\"type\":", kind, mark] {
            self.outputs.extend_from_slice(part);
        }
        Ok(())
    }
}

/// A state of this serial and lineage with the outputs alone, their values byte for byte and with their marks of
/// sensitivity; also Terraform's version, if it stands before them. What its client has encrypted is an error, and so is another
/// version of the format.
pub(in crate::tfstates) fn shared(
    source: impl Read,
    serial: i64,
    lineage: &str,
    bytes_max: usize,
) -> Result<Shared, Unreadable> {
    let mut sharing = Sharing { outputs: Vec::new(), bytes_max, is_too_long: false };
    let contents = walk(source, &mut sharing)?;
    if contents.says.version.is_some_and(|version| version != VERSION) {
        return Err(Unreadable::NoState);
    }
    if sharing.is_too_long {
        return Ok(Shared::TooLong);
    }
    let mut state = json!({ "version": VERSION, "serial": serial, "lineage": lineage });
    if let Some(version) = contents.says.terraform_version {
        state["terraform_version"] = version.into();
    }
    let mut state = state.to_string().into_bytes();
    state.pop();
    for part in [b",\"outputs\":{", &*sharing.outputs, b"},\"resources\":[],\"check_results\":null}"] {
        state.extend_from_slice(part);
    }
    Ok(Shared::State(state))
}
