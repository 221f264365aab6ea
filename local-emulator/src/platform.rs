//! What functions ask of AWS itself, beside the object store: a message to the queue, and a call of another function.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use plumbline_core::adapters::InProcessWaker;
use plumbline_core::ports::Waker as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::home::random_word;
use crate::lambda_host::FunctionHost;
use crate::ports::send_at_once;

/// The function that others call.
const CALL: &str = "/2015-03-31/functions/outbound/invocations";

/// Answers until it is aborted.
pub(crate) fn serve(listener: TcpListener, waker: InProcessWaker, outbound: FunctionHost) -> JoinHandle<()> {
    let queue = Router::new().fallback(receive).with_state(waker);
    let functions = Router::new().route(CALL, post(call)).with_state(outbound);
    let router = functions.fallback_service(queue);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener.tap_io(send_at_once), router).await {
            tracing::error!(error = %error, "the queue ended");
        }
    })
}

/// The one call of SQS that functions make: a message is a wake-up, whatever it says.
async fn receive(State(waker): State<InProcessWaker>, headers: HeaderMap, message: Bytes) -> Response {
    // The SDK names a content type of its own, which an extractor for JSON would refuse.
    let message = serde_json::from_slice::<Value>(&message);
    let (Ok(message), Some("AmazonSQS.SendMessage")) =
        (message, headers.get("x-amz-target").and_then(|target| target.to_str().ok()))
    else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let delay = message.get("DelaySeconds").and_then(Value::as_u64).unwrap_or(0);
    waker.wake(Duration::from_secs(delay)).await;
    let answer = json!({ "MessageId": random_word(), "MD5OfMessageBody": "" });
    ([("content-type", "application/x-amz-json-1.0")], answer.to_string()).into_response()
}

/// A call that waits for the answer. What goes wrong in the function is a header, as on AWS.
async fn call(State(outbound): State<FunctionHost>, event: Bytes) -> Response {
    match outbound.invoke(event.to_vec()).await {
        Ok(answer) => answer.into_response(),
        Err(error) => {
            let answer = json!({ "errorType": "Unhandled", "errorMessage": error.to_string() });
            ([("x-amz-function-error", "Unhandled")], answer.to_string()).into_response()
        }
    }
}
