//! Short tasks by a call of the function `outbound`: a small server speaks the one call of Lambda that the worker makes.

use std::sync::{Arc, Mutex};

use aws_sdk_ecs::config::{Credentials, Region};
use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use plumbline_core::tasks::{FailedAttempt, TaskClass, TaskKind};
use plumbline_lambda::{Function, config_loader};
use plumbline_worker::{InvokedOutbound, Outbound};
use serde_json::{Value, json};

use super::desk::{enqueue_one, unit};
use crate::plane::TestPlane;

const PATH: &str = "/2015-03-31/functions/outbound/invocations";
const NO_ANSWER: &str = "the function that does short tasks gave no answer";

/// Status, the kind of error that the platform saw, answer.
type Canned = (StatusCode, Option<&'static str>, String);

#[derive(Default)]
struct Platform {
    answer: Option<Canned>,
    requests: Vec<(String, Value)>,
}

type Shared = Arc<Mutex<Platform>>;

async fn answer(State(platform): State<Shared>, uri: Uri, body: String) -> Response {
    let mut platform = platform.lock().unwrap();
    platform.requests.push((uri.path().to_owned(), serde_json::from_str(&body).unwrap()));
    let (status, error, answer) = platform.answer.clone().unwrap();
    let mut response = (status, answer).into_response();
    if let Some(error) = error {
        response.headers_mut().insert("x-amz-function-error", error.parse().unwrap());
    }
    response
}

async fn outbound(endpoint: &str) -> InvokedOutbound {
    let config = config_loader()
        .credentials_provider(Credentials::new("test", "test", None, None, "a test"))
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .load()
        .await;
    InvokedOutbound::new(Function::new(&config, "outbound"))
}

#[tokio::test]
async fn what_the_called_function_answers_is_the_answer_of_the_attempt() {
    let platform = Shared::default();
    let router = Router::new().fallback(answer).with_state(Arc::clone(&platform));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let outbound = outbound(&url).await;
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    let task = plane.claim_one(TaskClass::Short).await;

    let retry = |why: &str| Err(FailedAttempt::Retry(why.to_owned()));
    let ok = StatusCode::OK;
    for (canned, expected) in [
        ((ok, None, json!({ "done": { "branches": [] } }).to_string()), Ok(json!({ "branches": [] }))),
        ((ok, None, json!({ "retry": "away" }).to_string()), retry("away")),
        (
            (ok, None, json!({ "permanent": "gone" }).to_string()),
            Err(FailedAttempt::Permanent("gone".into())),
        ),
        // What a crashed function said may quote anything, and is not handed on.
        ((ok, Some("Unhandled"), json!({ "errorMessage": "hunter2" }).to_string()), retry(NO_ANSWER)),
        ((ok, None, "no JSON".to_owned()), retry(NO_ANSWER)),
        ((StatusCode::INTERNAL_SERVER_ERROR, None, "{}".to_owned()), retry(NO_ANSWER)),
        // The function was not run, so the attempt does not count.
        (
            (StatusCode::TOO_MANY_REQUESTS, None, "{}".to_owned()),
            Err(FailedAttempt::NotBegun("the function that does short tasks is busy".into())),
        ),
    ] {
        platform.lock().unwrap().answer = Some(canned.clone());
        assert_eq!(outbound.handle(&plane.deps, &task).await, expected, "{canned:?}");
        let sent = std::mem::take(&mut platform.lock().unwrap().requests);
        let reference = json!({ "task_id": task.lease.task_id, "lease_token": task.lease.token });
        assert_eq!(sent, [(PATH.to_owned(), reference)], "once, and nothing but the attempt's name");
    }
}

#[tokio::test]
async fn a_platform_that_is_away_is_a_reason_to_try_again() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    let task = plane.claim_one(TaskClass::Short).await;
    let answer = outbound("http://127.0.0.1:9").await.handle(&plane.deps, &task).await;
    assert_eq!(answer, Err(FailedAttempt::Retry(NO_ANSWER.into())));
}
