//! Who waits for a state's lock.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::protocol::RunPhase;
use plumbline_core::tfstates::LockInfo;
use plumbline_core::tfstates::service;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::state_client::{Backend, lock_info};

impl Backend {
    async fn shown(&self) -> Value {
        let (status, lock) = self.api("GET", &format!("workspaces/{}/state-lock", self.workspace)).await;
        assert_eq!(status, StatusCode::OK, "{lock}");
        lock
    }
}

fn ids(lock: &Value) -> Vec<&str> {
    lock["waiters"].as_array().unwrap().iter().map(|waiter| waiter["lock_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn clients_that_ask_again_and_again_are_shown_until_they_get_the_lock_or_give_up() {
    let backend = Backend::start().await;
    assert_eq!(backend.lock("holder").await.0, StatusCode::OK);
    // One that gives up at once is nobody who waits.
    assert_eq!(backend.lock("once").await.0, StatusCode::LOCKED);
    for pause in [1, 2, 4] {
        for waiter in ["first", "second"] {
            assert_eq!(backend.lock(waiter).await.0, StatusCode::LOCKED);
        }
        backend.plane.advance(Duration::from_secs(pause)).await;
    }
    let lock = backend.shown().await;
    assert_eq!(ids(&lock), ["first", "second"], "{lock}");
    let waiter = &lock["waiters"][0];
    assert_eq!((&waiter["tries"], &waiter["who"]), (&json!(3), &json!("somebody@somewhere")), "{lock}");
    assert_eq!(
        (&lock["who"], &lock["operation"]),
        (&json!("somebody@somewhere"), &json!("OperationTypeApply"))
    );

    assert_eq!(backend.unlock("holder").await.0, StatusCode::OK);
    assert_eq!(backend.lock("first").await.0, StatusCode::OK);
    assert_eq!(ids(&backend.shown().await), ["second"]);
    backend.plane.advance(Duration::from_secs(60)).await;
    assert_eq!(ids(&backend.shown().await), Vec::<&str>::new());
}

#[tokio::test]
async fn a_crowd_of_waiters_takes_a_bounded_place() {
    let backend = Backend::start().await;
    assert_eq!(backend.lock("holder").await.0, StatusCode::OK);
    for _ in 0..2 {
        for n in 0..30 {
            assert_eq!(backend.lock(&format!("w-{n:02}")).await.0, StatusCode::LOCKED);
        }
    }
    assert_eq!(ids(&backend.shown().await).len(), 20);
    backend.plane.advance(Duration::from_secs(60)).await;
    for _ in 0..2 {
        assert_eq!(backend.lock("later").await.0, StatusCode::LOCKED);
    }
    assert_eq!(ids(&backend.shown().await), ["later"], "who gave up makes room");
}

#[tokio::test]
async fn the_lock_of_a_run_leads_to_the_run() {
    let backend = Backend::start().await;
    let apply = backend.executor(RunPhase::Apply).await;
    let info = LockInfo::parse(lock_info("l-1").as_bytes()).unwrap();
    let callback = backend.plane.as_function(Function::Callback);
    service::lock(&callback, &apply, backend.workspace, &info).await.unwrap();
    let lock = backend.shown().await;
    let url = lock["run_url"].as_str().unwrap();
    assert!(url.ends_with(&format!("/api/v1/runs/{}", lock["run_id"].as_str().unwrap())), "{lock}");
}
