//! Uploads, and what an apply downloads.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use plumbline_api::body::{Body, Path};
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::protocol::{ArtifactKind, UploadAnswer, UploadBegin};
use plumbline_core::runs::artifacts;

use crate::caller::Attempt;
use crate::problem::of_run;

pub(crate) async fn begin(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Body(upload): Body<UploadBegin>,
) -> Result<Json<UploadAnswer>, Problem> {
    let request = artifacts::begin(&deps, &caller, &upload).await.map_err(of_run)?;
    Ok(Json(UploadAnswer { request }))
}

pub(crate) async fn commit(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Path(kind): Path<ArtifactKind>,
) -> Result<StatusCode, Problem> {
    artifacts::commit(&deps, &caller, kind).await.map_err(of_run)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn read(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Path(kind): Path<ArtifactKind>,
) -> Result<Json<UploadAnswer>, Problem> {
    let request = artifacts::for_apply(&deps, &caller, kind).await.map_err(of_run)?;
    Ok(Json(UploadAnswer { request }))
}
