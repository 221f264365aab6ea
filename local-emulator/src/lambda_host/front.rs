//! From HTTP to events and back: what API Gateway does before a function.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http_body_util::BodyExt as _;
use plumbline_api::problem::Problem;

use super::{FunctionHost, events};

/// A router that hands every request to the function.
pub(crate) fn front(function: FunctionHost) -> Router {
    Router::new().fallback(pass).with_state(function)
}

async fn pass(State(function): State<FunctionHost>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => {
            let problem = Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed-request",
                "Malformed request",
                format!("The request's body broke off: {error}"),
            );
            return problem.into_response();
        }
    };
    let answer = match function.invoke(events::request_event(&parts, &body)).await {
        Ok(answer) => answer,
        Err(error) => return Problem::internal(&error).into_response(),
    };
    events::response(&answer).unwrap_or_else(|reason| {
        Problem::internal(&std::io::Error::other(format!("a function's answer is malformed: {reason}")))
            .into_response()
    })
}
