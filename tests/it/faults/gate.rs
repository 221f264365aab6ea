//! What stands between executors and the control plane: holds exactly one request, before it is served or with its
//! answer in hand.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::watch;

use super::stage::PATIENCE;

/// Which side of the serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The control plane never sees the request.
    Before,
    /// Its effect is committed; the sender does not learn of it.
    After,
}

/// The request to hold.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Its method.
    pub method: &'static str,
    /// The end of its path.
    pub path_end: &'static str,
    /// A step report's status.
    pub step_status: Option<&'static str>,
    /// Where it is held.
    pub side: Side,
}

impl Wanted {
    fn fits(&self, method: &Method, path: &str, body: &[u8]) -> bool {
        let status = || serde_json::from_slice::<Value>(body).ok()?["status"].as_str().map(str::to_owned);
        method.as_str() == self.method
            && path.ends_with(self.path_end)
            && self.step_status.is_none_or(|wanted| status().as_deref() == Some(wanted))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Holding,
    Released,
}

struct Armed {
    wanted: Wanted,
    stage: watch::Sender<Stage>,
}

/// Cheap to clone. Lets everything through unless it is armed; one arming holds one request.
#[derive(Clone, Default)]
pub struct Gate {
    armed: Arc<Mutex<Option<Armed>>>,
    to_lose: Arc<Mutex<Vec<Wanted>>>,
    answers: Arc<Mutex<Vec<(String, StatusCode)>>>,
}

/// The one request that an armed gate holds.
pub struct Hold(watch::Receiver<Stage>, watch::Sender<Stage>);

impl Hold {
    /// Resolves when the request is there and held.
    pub async fn reached(&mut self) {
        let holding = self.0.wait_for(|stage| *stage == Stage::Holding);
        tokio::time::timeout(PATIENCE, holding).await.expect("the point is reached").expect("the gate lives");
    }

    /// Lets it go on.
    pub fn release(&self) {
        self.1.send_replace(Stage::Released);
    }
}

impl Gate {
    /// Holds the next request that fits.
    pub fn arm(&self, wanted: Wanted) -> Hold {
        let (stage, seen) = watch::channel(Stage::Waiting);
        *self.armed.lock().unwrap() = Some(Armed { wanted, stage: stage.clone() });
        Hold(seen, stage)
    }

    /// Serves the next request that fits and loses its answer: the sender sees that something on the way has failed.
    pub fn lose_answer_of(&self, wanted: Wanted) {
        self.to_lose.lock().unwrap().push(wanted);
    }

    /// How many answers are still to be lost.
    pub fn left_to_lose(&self) -> usize {
        self.to_lose.lock().unwrap().len()
    }

    /// What was answered so far: method with path, and status.
    pub fn answers(&self) -> Vec<(String, StatusCode)> {
        self.answers.lock().unwrap().clone()
    }

    fn take_if_fits(&self, method: &Method, path: &str, body: &[u8]) -> Option<Armed> {
        let mut armed = self.armed.lock().unwrap();
        armed.take_if(|armed| armed.wanted.fits(method, path, body))
    }

    fn is_to_lose(&self, method: &Method, path: &str, body: &[u8]) -> bool {
        let mut to_lose = self.to_lose.lock().unwrap();
        let found = to_lose.iter().position(|wanted| wanted.fits(method, path, body));
        found.is_some_and(|index| {
            to_lose.swap_remove(index);
            true
        })
    }
}

/// The middleware.
pub async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    // The sender may have died half-way.
    let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST.into_response() };
    let body = body.to_bytes();
    let name = format!("{} {}", parts.method, parts.uri.path());
    let held = gate.take_if_fits(&parts.method, parts.uri.path(), &body);
    let is_to_lose = gate.is_to_lose(&parts.method, parts.uri.path(), &body);
    let request = Request::from_parts(parts, Body::from(body));
    let answer = match held {
        None if is_to_lose => {
            next.run(request).await;
            StatusCode::BAD_GATEWAY.into_response()
        }
        None => next.run(request).await,
        Some(Armed { wanted: Wanted { side: Side::Before, .. }, stage }) => {
            hold(&stage).await;
            next.run(request).await
        }
        Some(Armed { wanted: Wanted { side: Side::After, .. }, stage }) => {
            let answer = next.run(request).await;
            hold(&stage).await;
            answer
        }
    };
    gate.answers.lock().unwrap().push((name, answer.status()));
    answer
}

/// Waits for the release. When the sender is killed meanwhile, the server drops this with its connection.
async fn hold(stage: &watch::Sender<Stage>) {
    stage.send_replace(Stage::Holding);
    let mut seen = stage.subscribe();
    let _ = seen.wait_for(|stage| *stage == Stage::Released).await;
}
