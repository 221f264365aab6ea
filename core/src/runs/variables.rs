//! The variables of a run: its own, sealed when it was asked for, and all that terraform gets, pinned when it first begins.

use chrono::{DateTime, Utc};

use super::store::{self, StoredRun};
use super::{RunError, RunVariable};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::db::{DbError, Query, Tx};
use crate::ids::RunId;
use crate::protocol::Variable;
use crate::secrets::{Domain, Place, SealError};
use crate::variables::pins::{self, PinnedVariables};
use crate::variables::{self, EffectiveVariables, VariableError};

/// Variables that a request may give a run.
const OWN_MAX: usize = 200;

/// The variables of a run, without secret values: where each comes from, and what it won over. Before the run has begun
/// these are its own.
pub async fn list(deps: &Deps, ctx: &Ctx, id: RunId) -> Result<EffectiveVariables, RunError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    store::find(&conn, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    let pinned = pinned_variables(&conn, id).await?;
    let own = match &pinned {
        Some(_) => Vec::new(),
        None => open_own(&conn, deps, id).await?,
    };
    let removed_at = removed_at(&conn, id).await?;
    Ok(EffectiveVariables { removed_at, ..pins::show(deps, id, pinned.as_ref(), &own)? })
}

/// What an attempt gets. The first one merges and pins it; every later one, an apply's included, gets the same.
pub(super) async fn for_attempt(
    tx: &Tx<'_>,
    deps: &Deps,
    run: &StoredRun,
) -> Result<Vec<Variable>, RunError> {
    let id = run.run.id;
    let values = match pinned_variables(tx, id).await? {
        Some(pinned) => pins::replay(deps, id, &pinned)?,
        None => {
            let own = open_own(tx, deps, id).await?;
            let (unit, workspace) = (run.run.business_unit_id, run.run.workspace_id);
            let (pinned, values) = pins::pin(tx, deps, unit, workspace, id, own).await?;
            pin_variables(tx, id, &pinned).await?;
            values
        }
    };
    Ok(values.into_iter().map(for_executor).collect())
}

fn for_executor(variable: RunVariable) -> Variable {
    Variable {
        key: variable.key,
        value: variable.value.as_str().to_owned(),
        is_secret: variable.is_secret,
        is_hcl: variable.is_hcl,
    }
}

/// Refuses variables that a run cannot have of its own.
pub(super) fn check_own(own: &[RunVariable]) -> Result<(), RunError> {
    let invalid = |field: String, reason: &str| Err(RunError::Invalid { field, reason: reason.into() });
    if own.len() > OWN_MAX {
        return invalid("variables".into(), "at most 200");
    }
    let mut keys = std::collections::BTreeSet::new();
    for variable in own {
        let field = format!("variables.{}", variable.key);
        let value = || variables::check_value(variable.value.as_str(), variable.is_hcl);
        if let Err(reason) = variables::check_key(&variable.key).and_then(|()| value()) {
            return invalid(field, reason);
        }
        if !keys.insert(&variable.key) {
            return invalid(field, "given twice");
        }
    }
    Ok(())
}

/// Seals the run's own variables for its row.
pub(super) fn seal_own(deps: &Deps, run: RunId, own: &[RunVariable]) -> Result<Option<String>, RunError> {
    if own.is_empty() {
        return Ok(None);
    }
    let text =
        zeroize::Zeroizing::new(serde_json::to_string(own).expect("plain strings and booleans are JSON"));
    Ok(Some(deps.keys.seal(Domain::Variables, place(run), &text)?))
}

/// The run's own variables.
pub(super) async fn open_own(
    query: &impl Query,
    deps: &Deps,
    run: RunId,
) -> Result<Vec<RunVariable>, RunError> {
    let Some(sealed) = sealed_variables(query, run).await? else { return Ok(Vec::new()) };
    let text = match deps.keys.open(Domain::Variables, place(run), &sealed) {
        Ok(text) => text,
        Err(SealError::Unreadable(reason)) => return Err(VariableError::Lost(reason).into()),
        Err(error @ SealError::Key(_)) => return Err(error.into()),
    };
    serde_json::from_str(&text).map_err(|_| VariableError::Lost("it is not a list of variables").into())
}

fn place(run: RunId) -> Place {
    Place { table: "runs", column: "variables_sealed", row: run.0 }
}

const SEALED_VARIABLES: &str = "SELECT variables_sealed FROM runs WHERE id = $1";

/// The run's own variables, sealed. Not among the columns of a run: they may be long, and lists have no use for them.
async fn sealed_variables(query: &impl Query, id: RunId) -> Result<Option<String>, DbError> {
    Ok(query.query_one(SEALED_VARIABLES, &[&id]).await?.get(0))
}

const REMOVED_AT: &str = "SELECT variables_removed_at FROM runs WHERE id = $1";

/// When the values were removed; `None` while there are any, or if there never were.
pub(super) async fn removed_at(query: &impl Query, id: RunId) -> Result<Option<DateTime<Utc>>, DbError> {
    Ok(query.query_one(REMOVED_AT, &[&id]).await?.get(0))
}

const PINNED_VARIABLES: &str = "SELECT pinned_variables, pinned_variables_sealed FROM runs WHERE id = $1";

/// What the run was pinned with; `None` before it has begun.
async fn pinned_variables(query: &impl Query, id: RunId) -> Result<Option<PinnedVariables>, DbError> {
    let row = query.query_one(PINNED_VARIABLES, &[&id]).await?;
    let Some(pins) = row.get::<_, Option<serde_json::Value>>("pinned_variables") else { return Ok(None) };
    let pins = serde_json::from_value(pins)
        .map_err(|_| DbError::Row("runs.pinned_variables has an unknown shape".into()))?;
    Ok(Some(PinnedVariables { pins, sealed: row.get("pinned_variables_sealed") }))
}

// What is pinned stays: a second writer changes nothing.
const PIN_VARIABLES: &str = "
    UPDATE runs SET pinned_variables = $2, pinned_variables_sealed = $3
    WHERE id = $1 AND pinned_variables IS NULL";

/// Pins what the run gets.
async fn pin_variables(query: &impl Query, id: RunId, pinned: &PinnedVariables) -> Result<(), DbError> {
    query.execute(PIN_VARIABLES, &[&id, &serde_json::json!(pinned.pins), &pinned.sealed]).await?;
    Ok(())
}
