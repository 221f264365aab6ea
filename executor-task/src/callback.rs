//! The client of `callback`. Every call is repeated while `callback` is away, until it answers or the attempt's
//! time is over; what it answers for good is a result.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::Utc;
use plumbline_core::protocol::{Bundle, HeartbeatAnswer, LogAnswer, StepReport, TradeRequest, VERSION};
use plumbline_state_proxy::{Away, Call, Pauses, Upstream, is_passing};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::error::StepError;
use crate::identity;
use crate::settings::Settings;

/// Longest pause between two tries.
pub(crate) const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);
/// One small call.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// An answer that will not change by asking again.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: StatusCode,
    /// The last part of the problem's type, if it was a problem document.
    pub(crate) slug: String,
    /// The body as it came.
    pub(crate) body: Bytes,
}

impl Refusal {
    /// Whether this attempt owns nothing any more.
    pub(crate) fn is_fence(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED || self.slug == "lease-lost"
    }

    fn into_error(self, what: &str) -> StepError {
        let text: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        let message = format!("{what} was refused with {}: {text}", self.status);
        if self.is_fence() || self.slug == "stale-plan" {
            StepError::Fenced(message)
        } else if self.slug == "lease-not-live" {
            // Asked to stop, or renewed too late: another attempt is not refused for it.
            StepError::Transient(message)
        } else {
            StepError::Permanent(message)
        }
    }
}

/// Talks to `callback` for one attempt. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Callback {
    http: reqwest::Client,
    base: Arc<str>,
    token: Arc<str>,
    deadline: Instant,
}

/// Trades the ticket. The nonce lives in memory only: repeating the call is the same trade, and nobody else can
/// repeat it.
pub(crate) async fn trade(settings: &Settings, patience: Duration) -> Result<(Callback, Bundle), StepError> {
    let nonce = hex::encode(rand::random::<[u8; 32]>());
    let deadline = Instant::now() + patience;
    let credentials = match &settings.task_role {
        Some(role) => Some(identity::credentials(role, deadline).await?),
        None => None,
    };
    let mut callback = Callback {
        http: client(&settings.callback_url)?,
        base: format!("{}/executor/v1", settings.callback_url).into(),
        token: "".into(),
        deadline,
    };
    let answer = callback
        .send(|| {
            let request = TradeRequest {
                protocol: VERSION,
                ticket: settings.ticket.clone(),
                nonce: nonce.clone(),
                // Signed anew at every try: AWS refuses a signature that is some minutes old.
                identity: credentials.as_ref().map(|own| own.prove(&settings.ticket, Utc::now())),
            };
            callback.request(Method::POST, "trade").json(&request).timeout(CALL_TIMEOUT)
        })
        .await?;
    let bundle: Bundle = decode("trade", answer).await?;
    callback.token = bundle.token.clone().into();
    callback.deadline = Instant::now() + Duration::from_secs(bundle.lease.wall_clock_seconds);
    Ok((callback, bundle))
}

fn client(base: &str) -> Result<reqwest::Client, StepError> {
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("plumbline-executor/", env!("CARGO_PKG_VERSION")));
    let host = url::Url::parse(base).ok().and_then(|url| url.host_str().map(str::to_owned));
    if matches!(host.as_deref(), Some("127.0.0.1" | "localhost" | "[::1]")) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| StepError::Permanent(format!("no HTTP client: {error}")))
}

impl Callback {
    /// A request with the attempt's token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}/{path}", self.base));
        if self.token.is_empty() { request } else { request.bearer_auth(&self.token) }
    }

    /// The plain client, for signed URLs: they get no token.
    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Sends what `make` builds until there is an answer that is neither 5xx, 408 nor 429.
    pub(crate) async fn send(
        &self,
        make: impl Fn() -> RequestBuilder,
    ) -> Result<Result<Response, Refusal>, StepError> {
        let mut pauses = Pauses::up_to(RETRY_PAUSE_MAX);
        loop {
            match make().send().await {
                Ok(response) if response.status().is_success() || response.status().is_redirection() => {
                    return Ok(Ok(response));
                }
                Ok(response) if !is_passing(response.status()) => return Ok(Err(refusal(response).await)),
                Ok(response) => {
                    tracing::warn!(status = %response.status(), "callback is not well, trying again")
                }
                Err(error) => tracing::warn!(error = %error.without_url(), "callback is away, trying again"),
            }
            if pauses.would_pass(self.deadline) {
                return Err(StepError::Transient("the control plane could not be reached".into()));
            }
            pauses.pause().await;
        }
    }

    /// One JSON call.
    pub(crate) async fn post<B: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<A, StepError> {
        let answer = self.send(|| self.request(Method::POST, path).json(body).timeout(CALL_TIMEOUT)).await?;
        decode(path, answer).await
    }

    /// One JSON call whose answer says nothing.
    pub(crate) async fn tell<B: Serialize>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<(), StepError> {
        let answer =
            self.send(|| self.request(method.clone(), path).json(body).timeout(CALL_TIMEOUT)).await?;
        answer.map(drop).map_err(|refusal| refusal.into_error(path))
    }

    /// `GET` of JSON; `None` for 404.
    pub(crate) async fn find<A: DeserializeOwned>(&self, path: &str) -> Result<Option<A>, StepError> {
        match self.send(|| self.request(Method::GET, path).timeout(CALL_TIMEOUT)).await? {
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => Ok(None),
            answer => decode(path, answer).await.map(Some),
        }
    }

    /// Reports where a step stands.
    pub(crate) async fn report(&self, position: i16, report: &StepReport) -> Result<(), StepError> {
        self.tell(Method::PUT, &format!("steps/{position}"), report).await
    }

    /// Sends a piece of log and returns where the next one begins.
    pub(crate) async fn append_log(
        &self,
        position: i16,
        offset: u64,
        chunk: Bytes,
    ) -> Result<u64, StepError> {
        let path = format!("steps/{position}/log?offset={offset}");
        let make = || {
            self.request(Method::PUT, &path)
                .header("content-type", "application/octet-stream")
                .body(chunk.clone())
                .timeout(CALL_TIMEOUT)
        };
        match self.send(make).await? {
            // A gap: a chunk was lost on the way. The answer says where to go on.
            Err(refusal) if refusal.slug == "log-gap" => serde_json::from_slice::<LogAnswer>(&refusal.body)
                .map(|answer| answer.next_offset)
                .map_err(|_| StepError::Permanent("the log offset was refused".into())),
            answer => decode::<LogAnswer>("log", answer).await.map(|answer| answer.next_offset),
        }
    }

    /// One try; the next beat comes anyway.
    pub(crate) async fn heartbeat(&self, timeout: Duration) -> Result<HeartbeatAnswer, HeartbeatError> {
        let request = self.request(Method::POST, "heartbeat").timeout(timeout);
        let response =
            request.send().await.map_err(|error| HeartbeatError::Away(error.without_url().to_string()))?;
        if response.status().is_success() {
            return response
                .json()
                .await
                .map_err(|error| HeartbeatError::Away(error.without_url().to_string()));
        }
        let refusal = refusal(response).await;
        if refusal.is_fence() {
            Err(HeartbeatError::Fenced)
        } else {
            Err(HeartbeatError::Away(refusal.status.to_string()))
        }
    }
}

/// The state of the run's workspace.
#[async_trait]
impl Upstream for Callback {
    async fn send(&self, call: &Call) -> Result<Result<Response, plumbline_state_proxy::Refusal>, Away> {
        let path = format!("state{}", call.path);
        let answer = Self::send(self, || call.fill(self.request(call.method.clone(), &path))).await;
        answer
            .map(|answer| {
                answer.map_err(|Refusal { status, body, .. }| plumbline_state_proxy::Refusal { status, body })
            })
            .map_err(|error| Away(error.to_string()))
    }

    fn http(&self) -> &reqwest::Client {
        self.http()
    }

    /// The operator decides where the platform keeps its objects.
    fn trusts(&self, _: &str) -> bool {
        true
    }
}

/// Why there was no heartbeat.
pub(crate) enum HeartbeatError {
    /// Another attempt owns the task, or the token is void.
    Fenced,
    /// No answer: go on.
    Away(String),
}

async fn decode<A: DeserializeOwned>(what: &str, answer: Result<Response, Refusal>) -> Result<A, StepError> {
    let response = answer.map_err(|refusal| refusal.into_error(what))?;
    response.json().await.map_err(|error| {
        StepError::Transient(format!("{what} gave an answer that cannot be read: {}", error.without_url()))
    })
}

async fn refusal(response: Response) -> Refusal {
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    let slug = serde_json::from_slice::<serde_json::Value>(&body)
        .ok()
        .and_then(|problem| Some(problem.get("type")?.as_str()?.rsplit(':').next()?.to_owned()))
        .unwrap_or_default();
    Refusal { status, slug, body }
}
