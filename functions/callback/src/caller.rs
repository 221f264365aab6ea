//! Which attempt calls.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::executors::{self, ExecutorCaller};

use crate::problem::of_executor;

/// The attempt behind the bearer token.
#[derive(Clone, Debug)]
pub(crate) struct Attempt(pub(crate) ExecutorCaller);

impl FromRequestParts<Deps> for Attempt {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, deps: &Deps) -> Result<Self, Problem> {
        let token = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| of_executor(executors::ExecutorError::Token))?;
        executors::service::authenticate(deps, token).await.map(Self).map_err(of_executor)
    }
}
