//! A state backend in memory, as somebody might write one in an afternoon: right, or with one defect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, OriginalUri, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::store::state_client::md5_of;

/// What a server does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Nothing.
    None,
    LockIsNotIdempotent,
    LockAnswers201,
    LockIgnoresTheHolder,
    HolderIsWrapped,
    WriteIgnoresTheId,
    WriteIgnoresTheLock,
    WriteIsRedirected,
    WriteIsNotIdempotent,
    WriteIgnoresContentMd5,
    WriteIgnoresTheSerial,
    WriteIgnoresTheLineage,
    UnlockForgets,
    UnlockIgnoresTheId,
    ForceUnlockDoesNothing,
    BodyIsReencoded,
}

#[derive(Default)]
struct Stored {
    body: Option<Bytes>,
    lock: Option<(String, Bytes)>,
    last_lock: Option<String>,
}

#[derive(Clone)]
struct Server {
    defect: Defect,
    states: Arc<Mutex<HashMap<String, Stored>>>,
}

/// The template of its addresses.
pub async fn serve(defect: Defect) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let template = format!("http://{}/state/{{}}", listener.local_addr().unwrap());
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    let server = Server { defect, states: Arc::default() };
    let router = Router::new().fallback(handle).with_state(server).layer(DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, router).await });
    template
}

async fn handle(
    State(server): State<Server>,
    method: axum::http::Method,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut states = server.states.lock().unwrap();
    let state = states.entry(uri.path().trim_end_matches("/moved").to_owned()).or_default();
    match method.as_str() {
        "GET" => server.read(state),
        "POST" if server.defect == Defect::WriteIsRedirected && !uri.path().ends_with("/moved") => {
            (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, format!("{}/moved", uri.path()))])
                .into_response()
        }
        "POST" => server.write(state, uri.query(), &headers, body),
        "LOCK" => server.lock(state, body),
        "UNLOCK" => server.unlock(state, &body),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

fn id_of(info: &[u8]) -> String {
    let info: Value = serde_json::from_slice(info).unwrap_or_default();
    info["ID"].as_str().unwrap_or_default().to_owned()
}

impl Server {
    fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn read(&self, state: &Stored) -> Response {
        let Some(body) = &state.body else { return StatusCode::NO_CONTENT.into_response() };
        let md5 = [("content-md5", md5_of(body))];
        if self.has(Defect::BodyIsReencoded) {
            let text = String::from_utf8_lossy(body).replace(|letter: char| !letter.is_ascii(), "?");
            return (md5, text).into_response();
        }
        (md5, body.clone()).into_response()
    }

    fn write(&self, state: &mut Stored, query: Option<&str>, headers: &HeaderMap, body: Bytes) -> Response {
        let digest = headers.get("content-md5").and_then(|digest| digest.to_str().ok());
        if digest != Some(&md5_of(&body)) && !self.has(Defect::WriteIgnoresContentMd5) {
            return StatusCode::BAD_REQUEST.into_response();
        }
        let Ok(new) = serde_json::from_slice::<Value>(&body) else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        let is_same = state.body.as_ref() == Some(&body) && !self.has(Defect::WriteIsNotIdempotent);
        if is_same {
            return StatusCode::OK.into_response();
        }
        let id = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
            .find(|(name, _)| name == "ID")
            .map(|(_, id)| id.into_owned());
        match (&state.lock, id) {
            (Some((holder, _)), Some(id)) if *holder == id => {}
            (_, Some(_)) if self.has(Defect::WriteIgnoresTheId) => {}
            (_, Some(_)) => return StatusCode::CONFLICT.into_response(),
            (Some(_), None) if self.has(Defect::WriteIgnoresTheLock) => {}
            (Some((_, info)), None) => return (StatusCode::LOCKED, info.clone()).into_response(),
            (None, None) => {}
        }
        if let Some(old) = &state.body {
            let old: Value = serde_json::from_slice(old).unwrap();
            let rises = new["serial"].as_i64() > old["serial"].as_i64();
            let is_foreign = new["lineage"] != old["lineage"];
            if (!rises && !self.has(Defect::WriteIgnoresTheSerial))
                || (is_foreign && !self.has(Defect::WriteIgnoresTheLineage))
            {
                return StatusCode::CONFLICT.into_response();
            }
        }
        state.body = Some(body);
        StatusCode::OK.into_response()
    }

    fn lock(&self, state: &mut Stored, body: Bytes) -> Response {
        let id = id_of(&body);
        match &state.lock {
            Some((holder, _)) if *holder == id && !self.has(Defect::LockIsNotIdempotent) => {}
            Some((_, info)) if self.has(Defect::HolderIsWrapped) => {
                let holder: Value = serde_json::from_slice(info).unwrap();
                return (StatusCode::LOCKED, axum::Json(json!({ "detail": holder }))).into_response();
            }
            Some((_, info)) if !self.has(Defect::LockIgnoresTheHolder) => {
                return (StatusCode::LOCKED, info.clone()).into_response();
            }
            _ => state.lock = Some((id, body)),
        }
        if self.has(Defect::LockAnswers201) { StatusCode::CREATED } else { StatusCode::OK }.into_response()
    }

    fn unlock(&self, state: &mut Stored, body: &[u8]) -> Response {
        let id = id_of(body);
        match &state.lock {
            Some(_) if body.is_empty() => {
                if !self.has(Defect::ForceUnlockDoesNothing) {
                    state.lock = None;
                }
            }
            Some((holder, _)) if *holder == id || self.has(Defect::UnlockIgnoresTheId) => {
                (state.lock, state.last_lock) = (None, Some(id));
            }
            None if state.last_lock.as_ref() == Some(&id) && !self.has(Defect::UnlockForgets) => {}
            None if self.has(Defect::UnlockForgets) => return StatusCode::NOT_FOUND.into_response(),
            Some(_) | None => return StatusCode::CONFLICT.into_response(),
        }
        StatusCode::OK.into_response()
    }
}
