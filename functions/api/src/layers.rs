//! What happens to every request before and after its route: a request id, one log line, panics turned into problem
//! documents, and problem documents for paths and methods that do not exist.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use plumbline_core::ids::IdSource;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::problem::Problem;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Puts a function's routes behind what all of them share.
pub fn wrap(router: Router) -> Router {
    router.fallback(no_such_path).method_not_allowed_fallback(no_such_method).layer(from_fn(observe))
}

async fn no_such_path() -> Problem {
    Problem::not_found("path")
}

async fn no_such_method(method: Method) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "Wrong method",
        format!("This path does not know {method}; the header Allow says what it knows."),
    )
}

async fn observe(request: Request, next: Next) -> Response {
    let id: Uuid = IdSource.mint();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let span = tracing::info_span!(
        "request",
        request.id = %id,
        http.method = %request.method(),
        // The pattern, never the path itself: what a caller makes up must not become a field's value.
        http.route = route.as_deref().unwrap_or("none"),
    );
    async move {
        let begun = Instant::now();
        let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => panicked(&*panic).into_response(),
        };
        let id = HeaderValue::from_str(&id.to_string()).expect("a UUID is visible ASCII");
        response.headers_mut().insert(&REQUEST_ID, id);
        tracing::info!(
            http.status = response.status().as_u16(),
            duration.milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "request answered"
        );
        response
    }
    .instrument(span)
    .await
}

/// The panic's place and message are logged by the panic hook; this ties them to the request.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Problem {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!(panic = message, "request failed by a panic");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error", "")
}
