//! The reports that move a run along.

use axum::extract::State;
use axum::http::StatusCode;
use plumbline_api::body::Body;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::protocol::{ApplyBegun, ApplyDone, AttemptFailed, PlanDone, TouchedReport};
use plumbline_core::runs::{reports, touched};

use crate::caller::Attempt;
use crate::problem::of_run;

pub(crate) async fn plan_complete(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Body(done): Body<PlanDone>,
) -> Result<StatusCode, Problem> {
    reports::plan_done(&deps, &caller, &done).await.map_err(of_run)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn apply_begin(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Body(begun): Body<ApplyBegun>,
) -> Result<StatusCode, Problem> {
    reports::begin_apply(&deps, &caller, &begun).await.map_err(of_run)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn apply_touched(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Body(report): Body<TouchedReport>,
) -> Result<StatusCode, Problem> {
    touched::report(&deps, &caller, &report).await.map_err(of_run)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn apply_complete(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Body(done): Body<ApplyDone>,
) -> Result<StatusCode, Problem> {
    reports::apply_done(&deps, &caller, &done).await.map_err(of_run)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn fail(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Body(failed): Body<AttemptFailed>,
) -> Result<StatusCode, Problem> {
    reports::attempt_failed(&deps, &caller, &failed).await.map_err(of_run)?;
    Ok(StatusCode::NO_CONTENT)
}
