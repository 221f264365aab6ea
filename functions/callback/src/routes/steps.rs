//! Steps and their logs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use plumbline_api::body::{Body, Path, Query, Raw};
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::protocol::{LogAnswer, StepReport};
use plumbline_core::runs::{logs, steps};
use serde::Deserialize;

use crate::caller::Attempt;
use crate::problem::of_run;

/// Where a chunk begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offset {
    offset: u64,
}

pub(crate) async fn report(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Path(position): Path<i16>,
    Body(report): Body<StepReport>,
) -> Result<StatusCode, Problem> {
    steps::report(&deps, &caller, position, &report).await.map_err(of_run)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn append_log(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Path(position): Path<i16>,
    Query(at): Query<Offset>,
    Raw(chunk): Raw,
) -> Result<Json<LogAnswer>, Problem> {
    let offset = i64::try_from(at.offset).unwrap_or(i64::MAX / 2);
    let next = logs::append(&deps, &caller, position, offset, &chunk).await.map_err(of_run)?;
    Ok(Json(LogAnswer { next_offset: u64::try_from(next).unwrap_or(0) }))
}
