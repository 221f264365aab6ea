//! What stands before the functions: AWS's limits, enforced here so that nothing works on a laptop only.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{Method, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use plumbline_api::problem::Problem;

use crate::lambda_host::events;
use crate::options::GatewayMode;

/// Largest body that API Gateway takes.
const BODY_BYTES_MAX: usize = 10_000_000;
/// Largest serialised event, and largest serialised answer, of a function.
const PAYLOAD_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Request line and headers together.
const HEAD_BYTES_MAX: usize = 10_240;
/// How long API Gateway waits for a function.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The methods that its routes know.
const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Puts the gateway before the functions' routes.
pub(crate) fn guard(functions: Router, mode: GatewayMode) -> Router {
    match mode {
        GatewayMode::Aws => guard_within(functions, ANSWER_TIMEOUT),
        GatewayMode::Open => functions,
    }
}

fn guard_within(functions: Router, timeout: Duration) -> Router {
    functions.layer(from_fn_with_state(timeout, enforce))
}

async fn enforce(State(timeout): State<Duration>, request: Request, next: Next) -> Response {
    match pass(timeout, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn pass(timeout: Duration, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    if !METHODS.contains(&parts.method) {
        return Err(method_not_routed(&parts.method));
    }
    if head_bytes(&parts) > HEAD_BYTES_MAX {
        return Err(Problem::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "headers-too-large",
            "Headers too large",
            format!("Request line and headers may have {HEAD_BYTES_MAX} bytes together."),
        ));
    }
    let body = read(body, BODY_BYTES_MAX).await?;
    // The peer's address replaces what a client claims, as behind API Gateway.
    if let Some(ConnectInfo(peer)) = parts.extensions.get::<ConnectInfo<SocketAddr>>()
        && let Ok(address) = peer.ip().to_string().parse()
    {
        parts.headers.insert("x-forwarded-for", address);
    }
    // Six bytes is the most that JSON makes of one.
    if body.len() > PAYLOAD_BYTES_MAX / 8 && events::request_event(&parts, &body).len() > PAYLOAD_BYTES_MAX {
        return Err(too_large(format!(
            "The request is larger than {PAYLOAD_BYTES_MAX} bytes once it is wrapped for a function."
        )));
    }
    let request = Request::from_parts(parts, Body::from(body));
    let Ok(response) = tokio::time::timeout(timeout, next.run(request)).await else {
        tracing::error!("a function did not answer within {} s", timeout.as_secs());
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "gateway-timeout",
            "No answer in time",
            format!("The function did not answer within {} s.", timeout.as_secs()),
        ));
    };
    check_answer(response).await
}

async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(too_large(format!("A request body may have {bytes_max} bytes.")))
        }
        Err(error) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "malformed-request",
            "Malformed request",
            format!("The request's body broke off: {error}"),
        )),
    }
}

/// Answers that a function could not have given on AWS are defects of ours: said loudly, and not sent.
async fn check_answer(response: Response) -> Result<Response, Problem> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| Problem::internal(&error))?.to_bytes();
    let large = body.len() > PAYLOAD_BYTES_MAX / 8;
    if large && events::response_payload_bytes(&parts, &body) > PAYLOAD_BYTES_MAX {
        tracing::error!(
            status = parts.status.as_u16(),
            body_bytes = body.len(),
            "DEFECT: an answer is larger than a function may give; it would fail on AWS"
        );
        return Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Internal error",
            "The answer is larger than a function may give.",
        ));
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn head_bytes(parts: &http::request::Parts) -> usize {
    // "GET /path HTTP/1.1\r\n", then "name: value\r\n" each.
    let line = parts.method.as_str().len() + parts.uri.to_string().len() + " ".len() + " HTTP/1.1\r\n".len();
    line + parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>()
}

fn method_not_routed(method: &Method) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-routed",
        "The gateway does not route this method",
        format!(
            "API Gateway knows seven methods, and {method} is not one of them. In a Terraform http backend set \
             lock_method = \"POST\", unlock_method = \"DELETE\" and update_method = \"PUT\"."
        ),
    )
}

fn too_large(detail: String) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Body too large", detail)
}

/// Whether a content type travels as text in an event; everything else is base64.
pub(crate) fn is_text(headers: &http::HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence.starts_with("text/")
        || ["application/json", "application/javascript", "application/xml"].contains(&essence.as_str())
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    async fn status(router: Router, request: Request) -> StatusCode {
        router.oneshot(request).await.expect("routers do not fail").status()
    }

    fn get_request(path: &str) -> Request {
        Request::get(path).body(Body::empty()).expect("a request")
    }

    #[tokio::test]
    async fn a_function_that_does_not_answer_in_time_is_given_up() {
        // What API Gateway's documentation says; waiting for it would cost half a minute.
        assert_eq!(ANSWER_TIMEOUT, Duration::from_secs(30));
        let never = Router::new().route("/", get(std::future::pending::<StatusCode>));
        let guarded = guard_within(never, Duration::from_millis(5));
        assert_eq!(status(guarded, get_request("/")).await, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn a_body_has_10_megabytes_to_the_byte() {
        let read = async |bytes: usize| read(Body::from(vec![b'a'; bytes]), BODY_BYTES_MAX).await.is_ok();
        assert!(read(10_000_000).await);
        assert!(!read(10_000_001).await);
    }

    /// AWS counts the event, not the body: 6 MiB with everything that is wrapped around it.
    #[tokio::test]
    async fn an_event_and_an_answer_have_6_mebibytes_to_the_byte() {
        const EVENT_BYTES_MAX: usize = 6_291_456;
        let post = |bytes: usize| {
            let request = Request::post("/").header(header::CONTENT_TYPE, "text/plain");
            request.body(Body::from("a".repeat(bytes))).expect("a request")
        };
        let (parts, _) = post(0).into_parts();
        let around = events::request_event(&parts, &Bytes::from_static(b"a")).len() - 1;
        let functions = Router::new().route("/", axum::routing::post(|| async { StatusCode::OK }));
        let guarded = guard(functions, GatewayMode::Aws);
        let fits = EVENT_BYTES_MAX - around;
        assert_eq!(status(guarded.clone(), post(fits)).await, StatusCode::OK);
        assert_eq!(status(guarded, post(fits + 1)).await, StatusCode::PAYLOAD_TOO_LARGE);

        let (parts, _) = "a".into_response().into_parts();
        let around = events::response_payload_bytes(&parts, &Bytes::from_static(b"a")) - 1;
        let fits = EVENT_BYTES_MAX - around;
        let answers = Router::new()
            .route("/fits", get(move || async move { "a".repeat(fits) }))
            .route("/too-large", get(move || async move { "a".repeat(fits + 1) }));
        let guarded = guard(answers, GatewayMode::Aws);
        assert_eq!(status(guarded.clone(), get_request("/fits")).await, StatusCode::OK);
        assert_eq!(status(guarded, get_request("/too-large")).await, StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[tokio::test]
    async fn an_answer_that_a_function_could_not_give_is_not_sent() {
        let large = Router::new()
            .route("/text", get(|| async { "a".repeat(PAYLOAD_BYTES_MAX - 1024) }))
            .route("/escaped", get(|| async { "\"".repeat(PAYLOAD_BYTES_MAX - 1024) }))
            .route("/binary", get(|| async { Bytes::from(vec![0_u8; 5 << 20]) }));
        let guarded = guard(large, GatewayMode::Aws);
        assert_eq!(status(guarded.clone(), get_request("/text")).await, StatusCode::OK);
        assert_eq!(status(guarded.clone(), get_request("/escaped")).await, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(status(guarded, get_request("/binary")).await, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
