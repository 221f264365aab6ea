//! The executor's side of the protocol, answered from memory: enough for one attempt at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, OriginalUri, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post, put};
use axum::{Json, Router};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::*;
use serde_json::{Value, json};

/// What the executor told us.
#[derive(Default)]
pub(crate) struct Told {
    /// Who traded first.
    pub(crate) nonce: Option<String>,
    /// What came with the ticket.
    pub(crate) identity: Option<IdentityProof>,
    /// Reports in order.
    pub(crate) steps: Vec<(i16, StepReport)>,
    /// Logs by position.
    pub(crate) logs: BTreeMap<i16, Vec<u8>>,
    /// Committed artifacts by kind.
    pub(crate) artifacts: BTreeMap<String, Bytes>,
    pub(crate) plan_done: Option<PlanDone>,
    pub(crate) apply_begun: bool,
    /// What it told of resources, in order.
    pub(crate) touched: Vec<TouchedResource>,
    pub(crate) apply_done: bool,
    pub(crate) failed: Option<AttemptFailed>,
    /// Accepted states in order.
    pub(crate) states: Vec<Bytes>,
    /// Sizes of the states that came in a request of ours, not through the object store.
    pub(crate) inline_states: Vec<usize>,
    pub(crate) lock: Option<String>,
    pub(crate) unlocks: usize,
    pub(crate) heartbeats: usize,
    /// Tokens that it asked for, in order.
    pub(crate) identity_tokens: Vec<(TokenFor, String)>,
    /// Calls with no or a wrong token.
    pub(crate) strangers: usize,
    pub(crate) objects: BTreeMap<String, Bytes>,
    begun: BTreeMap<String, UploadBegin>,
}

/// A running server.
#[derive(Clone)]
pub(crate) struct FakeCallback {
    pub(crate) told: Arc<Mutex<Told>>,
    pub(crate) bundle: Arc<Mutex<Bundle>>,
    /// 503 to everything.
    pub(crate) is_away: Arc<AtomicBool>,
    pub(crate) cancels: Arc<AtomicBool>,
    pub(crate) is_lease_lost: Arc<AtomicBool>,
    pub(crate) refuses_states: Arc<AtomicBool>,
    pub(crate) refuses_tokens: Arc<AtomicBool>,
    /// Bytes of log that were received.
    pub(crate) log_bytes: Arc<AtomicU64>,
    pub(crate) url: String,
}

impl FakeCallback {
    pub(crate) async fn start(bundle: Bundle) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fake = Self {
            told: Arc::default(),
            bundle: Arc::new(Mutex::new(bundle)),
            is_away: Arc::default(),
            cancels: Arc::default(),
            is_lease_lost: Arc::default(),
            refuses_states: Arc::default(),
            refuses_tokens: Arc::default(),
            log_bytes: Arc::default(),
            url: format!("http://{}", listener.local_addr().unwrap()),
        };
        let protocol = Router::new()
            .route("/heartbeat", post(heartbeat))
            .route("/identity-token", post(identity_token))
            .route("/steps/{position}", put(step))
            .route("/steps/{position}/log", put(log))
            .route("/artifacts", post(begin))
            .route("/artifacts/{kind}", get(artifact))
            .route("/artifacts/{kind}/commit", post(commit))
            .route("/plan/complete", post(plan_complete))
            .route("/apply/begin", post(apply_begin))
            .route("/apply/touched", post(apply_touched))
            .route("/apply/complete", post(apply_complete))
            .route("/fail", post(fail))
            .route("/state", get(read_state).put(write_state))
            .route("/state/lock", post(lock).delete(unlock))
            .route("/state/uploads", post(begin_state))
            .route("/state/uploads/{id}/commit", post(commit_state))
            .layer(axum::middleware::from_fn_with_state(fake.clone(), check_token))
            .route("/trade", post(trade));
        let router = Router::new()
            .nest("/executor/v1", protocol)
            .route("/objects/{*key}", any(object))
            .layer(axum::middleware::from_fn_with_state(fake.clone(), outage))
            .layer(DefaultBodyLimit::disable())
            .with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        fake
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    /// The log of the step with this name.
    pub(crate) fn log_of(&self, name: &str) -> String {
        let bundle = self.bundle.lock().unwrap();
        let position = bundle.steps.iter().find(|step| step.name == name).expect("the step exists").position;
        String::from_utf8_lossy(self.told().logs.get(&position).map_or(&[][..], Vec::as_slice)).into_owned()
    }

    /// All logs, for what must appear nowhere.
    pub(crate) fn all_logs(&self) -> String {
        self.told().logs.values().map(|log| String::from_utf8_lossy(log).into_owned()).collect()
    }

    fn presigned(&self, method: &str, key: &str) -> Presigned {
        Presigned {
            method: method.into(),
            url: format!("{}/objects/{key}", self.url),
            headers: BTreeMap::new(),
        }
    }
}

fn problem(status: StatusCode, slug: &str) -> Response {
    (status, Json(json!({"type": format!("urn:plumbline:problem:{slug}")}))).into_response()
}

async fn outage(State(fake): State<FakeCallback>, request: Request, next: Next) -> Response {
    if fake.is_away.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

async fn check_token(State(fake): State<FakeCallback>, request: Request, next: Next) -> Response {
    let wanted = format!("Bearer {}", fake.bundle.lock().unwrap().token);
    if request.headers().get(header::AUTHORIZATION).is_none_or(|given| given.as_bytes() != wanted.as_bytes())
    {
        fake.told().strangers += 1;
        return problem(StatusCode::UNAUTHORIZED, "unauthenticated");
    }
    let is_state = request.uri().path().contains("/state");
    if fake.is_lease_lost.load(Ordering::SeqCst) && !is_state {
        return problem(StatusCode::CONFLICT, "lease-lost");
    }
    next.run(request).await
}

async fn trade(State(fake): State<FakeCallback>, Json(request): Json<TradeRequest>) -> Response {
    let mut told = fake.told();
    if told.nonce.get_or_insert_with(|| request.nonce.clone()) != &request.nonce {
        return problem(StatusCode::CONFLICT, "ticket-used");
    }
    told.identity = request.identity;
    Json(fake.bundle.lock().unwrap().clone()).into_response()
}

async fn heartbeat(State(fake): State<FakeCallback>) -> Json<HeartbeatAnswer> {
    fake.told().heartbeats += 1;
    let cancel = if fake.cancels.load(Ordering::SeqCst) { CancelMode::Interrupt } else { CancelMode::No };
    Json(HeartbeatAnswer { lease_seconds: 60, cancel })
}

/// Its tokens are over soon.
async fn identity_token(
    State(fake): State<FakeCallback>,
    Json(request): Json<IdentityTokenRequest>,
) -> Response {
    if fake.refuses_tokens.load(Ordering::SeqCst) {
        return problem(StatusCode::CONFLICT, "lease-not-live");
    }
    let mut told = fake.told();
    let token = format!("eyJhunter2.{:?}.{}", request.wanted, told.identity_tokens.len());
    told.identity_tokens.push((request.wanted, token.clone()));
    Json(IdentityToken { token, expires_in_seconds: 1 }).into_response()
}

async fn step(
    State(fake): State<FakeCallback>,
    Path(position): Path<i16>,
    Json(report): Json<StepReport>,
) -> StatusCode {
    fake.told().steps.push((position, report));
    StatusCode::NO_CONTENT
}

async fn log(
    State(fake): State<FakeCallback>,
    Path(position): Path<i16>,
    Query(query): Query<BTreeMap<String, u64>>,
    chunk: Bytes,
) -> Response {
    assert!(chunk.len() <= 256 << 10, "a chunk of {} bytes", chunk.len());
    let mut told = fake.told();
    let log = told.logs.entry(position).or_default();
    if query["offset"] == log.len() as u64 {
        log.extend_from_slice(&chunk);
        fake.log_bytes.fetch_add(chunk.len() as u64, Ordering::SeqCst);
    }
    Json(LogAnswer { next_offset: log.len() as u64 }).into_response()
}

async fn begin(State(fake): State<FakeCallback>, Json(begin): Json<UploadBegin>) -> Json<UploadAnswer> {
    let kind = begin.kind.as_str();
    fake.told().begun.insert(kind.into(), begin);
    Json(UploadAnswer { request: fake.presigned("PUT", kind) })
}

async fn commit(State(fake): State<FakeCallback>, Path(kind): Path<String>) -> StatusCode {
    let mut told = fake.told();
    let bytes = told.objects.get(&kind).cloned().expect("uploaded before");
    assert_eq!(told.begun[&kind].sha256, Sha256Digest::of(&bytes));
    told.artifacts.insert(kind, bytes);
    StatusCode::NO_CONTENT
}

async fn artifact(State(fake): State<FakeCallback>, Path(kind): Path<String>) -> Response {
    if fake.told().artifacts.contains_key(&kind) {
        Json(UploadAnswer { request: fake.presigned("GET", &kind) }).into_response()
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

async fn object(
    State(fake): State<FakeCallback>,
    method: Method,
    Path(key): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert!(!headers.contains_key(header::AUTHORIZATION), "signed URLs get no token");
    if method == Method::PUT {
        assert_eq!(headers[header::CONTENT_LENGTH], body.len().to_string());
        fake.told().objects.insert(key, body);
        return StatusCode::OK.into_response();
    }
    match fake.told().objects.get(&key) {
        Some(bytes) => bytes.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn plan_complete(State(fake): State<FakeCallback>, Json(done): Json<PlanDone>) -> StatusCode {
    fake.told().plan_done = Some(done);
    StatusCode::NO_CONTENT
}

async fn apply_begin(State(fake): State<FakeCallback>, Json(begun): Json<ApplyBegun>) -> Response {
    let mut told = fake.told();
    if told.plan_done.as_ref().is_some_and(|done| done.plan_sha256 == begun.plan_sha256) {
        told.apply_begun = true;
        StatusCode::NO_CONTENT.into_response()
    } else {
        problem(StatusCode::CONFLICT, "stale-plan")
    }
}

async fn apply_touched(State(fake): State<FakeCallback>, Json(report): Json<TouchedReport>) -> StatusCode {
    fake.told().touched.extend(report.resources);
    StatusCode::NO_CONTENT
}

async fn apply_complete(State(fake): State<FakeCallback>, Json(_): Json<ApplyDone>) -> StatusCode {
    fake.told().apply_done = true;
    StatusCode::NO_CONTENT
}

async fn fail(State(fake): State<FakeCallback>, Json(failed): Json<AttemptFailed>) -> StatusCode {
    fake.told().failed = Some(failed);
    StatusCode::NO_CONTENT
}

async fn read_state(State(fake): State<FakeCallback>) -> Response {
    match fake.told().states.last() {
        Some(state) => state.clone().into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn write_state(
    State(fake): State<FakeCallback>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert!(headers.contains_key("content-md5"));
    let mut told = fake.told();
    told.inline_states.push(body.len());
    let id = uri.query().unwrap_or_default().trim_start_matches("ID=").to_owned();
    if fake.refuses_states.load(Ordering::SeqCst) || told.lock.as_ref() != Some(&id) {
        return problem(StatusCode::CONFLICT, "state-lock-lost");
    }
    told.states.push(body);
    StatusCode::OK.into_response()
}

fn lock_id(info: &Value) -> String {
    info["ID"].as_str().unwrap_or_default().to_owned()
}

async fn lock(State(fake): State<FakeCallback>, Json(info): Json<Value>) -> Response {
    let mut told = fake.told();
    if told.lock.get_or_insert_with(|| lock_id(&info)) != &lock_id(&info) {
        return StatusCode::LOCKED.into_response();
    }
    StatusCode::OK.into_response()
}

async fn unlock(State(fake): State<FakeCallback>, Json(info): Json<Value>) -> Response {
    let mut told = fake.told();
    if told.lock == Some(lock_id(&info)) {
        told.lock = None;
        told.unlocks += 1;
    }
    StatusCode::OK.into_response()
}

async fn begin_state(State(fake): State<FakeCallback>, Json(begin): Json<StateUploadBegin>) -> Response {
    assert_eq!(fake.told().lock, begin.lock_id);
    let id = uuid::Uuid::now_v7();
    let request = fake.presigned("PUT", &format!("state/{id}"));
    Json(StateUploadAnswer { upload_id: id.into(), request }).into_response()
}

async fn commit_state(State(fake): State<FakeCallback>, Path(id): Path<String>) -> Json<StateUploadCommit> {
    let mut told = fake.told();
    let bytes = told.objects[&format!("state/{id}")].clone();
    told.states.push(bytes);
    Json(StateUploadCommit::Accepted)
}
