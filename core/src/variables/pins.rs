//! What a run gets: merged when it first begins, sealed with it, and the same in every later attempt and in its apply.

use super::effective::{shown, total};
use super::service::open_sealed;
use super::store::{self, Contender};
use super::{
    EffectiveVariables, Merged, Origin, Pin, RunVariable, VariableError, VariableValue, check_total, merge,
    size_of,
};
use crate::Deps;
use crate::db::{DbError, Query};
use crate::ids::{BusinessUnitId, RunId, WorkspaceId};
use crate::secrets::{Domain, Place, SealError};

/// What a run's row keeps of its variables.
#[derive(Clone, Debug)]
pub struct PinnedVariables {
    /// Keys, sources and flags.
    pub pins: Vec<Pin>,
    /// The values, sealed; `None` if there are no variables.
    pub sealed: Option<String>,
}

/// What two places say about one key.
enum Candidate {
    Stored(Contender),
    Own(RunVariable),
}

/// Merges what reaches the workspace with the run's own, as it is now. A value that cannot be opened is an error: a
/// run without it would be another run.
pub async fn pin(
    query: &impl Query,
    deps: &Deps,
    unit: BusinessUnitId,
    workspace: WorkspaceId,
    run: RunId,
    own: Vec<RunVariable>,
) -> Result<(PinnedVariables, Vec<RunVariable>), VariableError> {
    let stored = store::of_workspace(query, unit, workspace).await?;
    let stored = stored.into_iter().map(|(origin, key, value)| (origin, key, Candidate::Stored(value)));
    let own = own.into_iter().map(|one| (Origin::Run, one.key.clone(), Candidate::Own(one)));
    let merged = merge(stored.chain(own));
    let bytes = total(&merged, |value| match value {
        Candidate::Stored(stored) => usize::try_from(stored.value_bytes).unwrap_or(0),
        Candidate::Own(own) => own.value.as_str().len(),
    });
    check_total(merged.len(), bytes).map_err(VariableError::TooMuch)?;
    let winners = merged.iter().filter_map(|one| match &one.value {
        Candidate::Stored(stored) => Some(stored.id),
        Candidate::Own(_) => None,
    });
    let sealed = store::sealed_values(query, unit, winners).await?;
    let (mut pins, mut values) = (Vec::new(), Vec::new());
    for Merged { key, source, value, overrides } in merged {
        let variable = match value {
            Candidate::Own(variable) => variable,
            Candidate::Stored(stored) => {
                let gone = || DbError::TryAgain("a variable was removed while it was read".into());
                let sealed = sealed.get(&stored.id).ok_or_else(gone)?;
                match open_sealed(deps, stored.id, sealed) {
                    Ok(value) => {
                        RunVariable { key, value, is_secret: stored.is_secret, is_hcl: stored.is_hcl }
                    }
                    Err(cause) => return Err(VariableError::Unreadable { key, origin: source, cause }),
                }
            }
        };
        let (is_secret, is_hcl) = (variable.is_secret, variable.is_hcl);
        pins.push(Pin { key: variable.key.clone(), is_secret, is_hcl, source, overrides });
        values.push(variable);
    }
    let sealed = match values.as_slice() {
        [] => None,
        values => {
            let text = zeroize::Zeroizing::new(
                serde_json::to_string(values).expect("plain strings and booleans are JSON"),
            );
            Some(deps.keys.seal(Domain::Variables, place(run), &text)?)
        }
    };
    Ok((PinnedVariables { pins, sealed }, values))
}

/// What a run was pinned with.
pub fn replay(deps: &Deps, run: RunId, pinned: &PinnedVariables) -> Result<Vec<RunVariable>, VariableError> {
    let Some(sealed) = &pinned.sealed else {
        let is_whole = pinned.pins.is_empty();
        return if is_whole { Ok(Vec::new()) } else { Err(VariableError::Lost("the values are missing")) };
    };
    let text = match deps.keys.open(Domain::Variables, place(run), sealed) {
        Ok(text) => text,
        Err(SealError::Unreadable(reason)) => return Err(VariableError::Lost(reason)),
        Err(error @ SealError::Key(_)) => return Err(error.into()),
    };
    let values: Vec<RunVariable> =
        serde_json::from_str(&text).map_err(|_| VariableError::Lost("it is not a list of variables"))?;
    let is_same = pinned.pins.iter().map(|pin| &pin.key).eq(values.iter().map(|value| &value.key));
    if is_same { Ok(values) } else { Err(VariableError::Lost("some of the variables are missing")) }
}

/// The variables of a run as people see them: all that it was pinned with, or before that its own.
pub fn show(
    deps: &Deps,
    run: RunId,
    pinned: Option<&PinnedVariables>,
    own: &[RunVariable],
) -> Result<EffectiveVariables, VariableError> {
    let (pins, values) = match pinned {
        Some(pinned) => {
            let values = match replay(deps, run, pinned) {
                Ok(values) => values.into_iter().map(|one| Some(one.value)).collect(),
                // Which there were is known even so.
                Err(VariableError::Lost(_)) => vec![None; pinned.pins.len()],
                Err(error) => return Err(error),
            };
            (pinned.pins.clone(), values)
        }
        None => {
            let mut own = own.to_vec();
            own.sort_by(|one, other| one.key.cmp(&other.key));
            let pin = |one: &RunVariable| Pin {
                key: one.key.clone(),
                is_secret: one.is_secret,
                is_hcl: one.is_hcl,
                source: Origin::Run,
                overrides: Vec::new(),
            };
            (own.iter().map(pin).collect(), own.into_iter().map(|one| Some(one.value)).collect())
        }
    };
    let merged: Vec<(Merged<Option<VariableValue>>, bool, bool)> = pins
        .into_iter()
        .zip(values)
        .map(|(pin, value)| {
            let merged = Merged { key: pin.key, source: pin.source, value, overrides: pin.overrides };
            (merged, pin.is_secret, pin.is_hcl)
        })
        .collect();
    let total_bytes = merged
        .iter()
        .map(|(one, ..)| size_of(&one.key, one.value.as_ref().map_or(0, |value| value.as_str().len())));
    let total_bytes = total_bytes.sum();
    let items = merged
        .into_iter()
        .map(|(one, is_secret, is_hcl)| {
            let is_readable = one.value.is_some();
            shown(one, is_readable, is_secret, is_hcl)
        })
        .collect();
    Ok(EffectiveVariables {
        items,
        total_bytes,
        fits: true,
        pinned: Some(pinned.is_some()),
        removed_at: None,
    })
}

fn place(run: RunId) -> Place {
    Place { table: "runs", column: "pinned_variables_sealed", row: run.into() }
}
