//! Tokens of our own issuer for the attempt that calls.

use axum::Json;
use axum::extract::State;
use plumbline_api::body::Body;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::issuer_keys::tokens;
use plumbline_core::protocol::{IdentityToken, IdentityTokenRequest};

use crate::caller::Attempt;

pub(crate) async fn issue(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Body(request): Body<IdentityTokenRequest>,
) -> Result<Json<IdentityToken>, Problem> {
    Ok(Json(tokens::issue(&deps, &caller, request.wanted).await?))
}
