//! `Idempotency-Key` for routes that create something.
//!
//! ```ignore
//! async fn create(State(deps): State<Deps>, Caller(ctx): Caller, once: Once<NewRun>) -> Result<Response, Problem> {
//!     let response = once
//!         .answer(&deps, &ctx, async |tx, new| {
//!             let run = runs::service::create(&deps, tx, &ctx, new).await?;
//!             Ok(Created::at(format!("/api/v1/runs/{}", run.id), RunView::from(run)))
//!         })
//!         .await?;
//!     deps.waker.wake(Duration::ZERO).await; // after the commit; a replay wakes once too often, which costs nothing
//!     Ok(response)
//! }
//! ```
//!
//! The closure runs in one transaction that also holds the stored answer: both commit or neither does. A refusal rolls
//! back and is not stored. Without the header the closure simply runs.

use axum::extract::{FromRequest, OriginalUri, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use plumbline_core::db::Tx;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::idempotency::{self, Answer, Begun, Key};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::body::{decode, invalid_field, read};
use crate::problem::Problem;

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Longest key, in characters.
const KEY_CHARACTERS_MAX: usize = 255;

/// The JSON body of a request that creates something, with its idempotency key. Takes the place of `Body`.
#[derive(Debug)]
pub struct Once<T> {
    body: T,
    key: Option<String>,
    request: Sha256Digest,
}

/// The same for a request whose path says everything: it has no body to decode.
#[derive(Debug)]
pub struct OnceByPath(pub Once<()>);

impl FromRequest<Deps> for OnceByPath {
    type Rejection = Problem;

    async fn from_request(request: Request, deps: &Deps) -> Result<Self, Problem> {
        let (key, target) = (key_in(&request)?, target_of(&request));
        Ok(Self(Once { body: (), key, request: fingerprint(deps, target.as_bytes())? }))
    }
}

/// Something that was created, or will be.
#[derive(Debug)]
pub struct Created<T> {
    status: StatusCode,
    location: String,
    body: T,
    /// What a repetition is told instead of the body.
    remembered: Option<T>,
}

impl<T: Serialize> Created<T> {
    /// 201: it is there.
    pub fn at(location: String, body: T) -> Self {
        Self { status: StatusCode::CREATED, location, body, remembered: None }
    }

    /// 202: a task will make it; `location` says how it goes on.
    pub fn later(location: String, body: T) -> Self {
        Self { status: StatusCode::ACCEPTED, location, body, remembered: None }
    }

    /// Keeps another body for repetitions: answers are kept in clear, and what is sealed elsewhere does not belong there.
    #[must_use]
    pub fn remembered_as(mut self, body: T) -> Self {
        self.remembered = Some(body);
        self
    }

    fn answer(&self) -> Result<Answer, Problem> {
        self.answer_with(&self.body)
    }

    fn remembered(&self) -> Result<Answer, Problem> {
        self.answer_with(self.remembered.as_ref().unwrap_or(&self.body))
    }

    fn answer_with(&self, body: &T) -> Result<Answer, Problem> {
        Ok(Answer {
            status: self.status.as_u16(),
            location: Some(self.location.clone()),
            body: serde_json::to_value(body).map_err(|error| Problem::internal(&error))?,
        })
    }
}

impl<T: DeserializeOwned> FromRequest<Deps> for Once<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, deps: &Deps) -> Result<Self, Problem> {
        let (key, target) = (key_in(&request)?, target_of(&request));
        let bytes = read(request, deps.limits.body_bytes_max).await?;
        let body = decode(&bytes)?;
        Ok(Self { body, key, request: fingerprint(deps, &[target.as_bytes(), &bytes].concat())? })
    }
}

fn fingerprint(deps: &Deps, request: &[u8]) -> Result<Sha256Digest, Problem> {
    idempotency::service::fingerprint(&deps.keys, request).map_err(|error| Problem::internal(&error))
}

fn key_in(request: &Request) -> Result<Option<String>, Problem> {
    request.headers().get(&IDEMPOTENCY_KEY).map(key_of).transpose()
}

/// What a key stands for, body aside.
fn target_of(request: &Request) -> String {
    let uri = request.extensions().get::<OriginalUri>().map_or(request.uri(), |original| &original.0);
    format!("{} {}\n", request.method(), uri)
}

fn key_of(value: &HeaderValue) -> Result<String, Problem> {
    let key = value.to_str().unwrap_or_default().trim();
    if (1..=KEY_CHARACTERS_MAX).contains(&key.len()) {
        Ok(key.to_owned())
    } else {
        Err(invalid_field("Idempotency-Key", "must be 1 to 255 visible ASCII characters"))
    }
}

impl<T> Once<T> {
    /// What was sent, for what must be done before the transaction is open.
    pub fn body(&self) -> &T {
        &self.body
    }

    /// Executes the request, or gives the answer of the first one with its key.
    pub async fn answer<U, F>(self, deps: &Deps, ctx: &Ctx, work: F) -> Result<Response, Problem>
    where
        U: Serialize,
        F: AsyncFnOnce(&Tx<'_>, T) -> Result<Created<U>, Problem>,
    {
        let Self { body, key, request } = self;
        let key = key.map(|key| Key { principal: idempotency::principal(ctx), key, request });
        let (answer, replayed) = deps
            .db
            .transaction(async |tx| {
                let Some(key) = &key else {
                    return Ok::<_, Problem>((work(tx, body).await?.answer()?, false));
                };
                match idempotency::service::begin(tx, key, deps.limits.idempotency_age).await? {
                    Begun::Replay(answer) => Ok((answer, true)),
                    Begun::First => {
                        let created = work(tx, body).await?;
                        idempotency::service::store(tx, key, &created.remembered()?).await?;
                        Ok((created.answer()?, false))
                    }
                }
            })
            .await?;
        Ok(respond(answer, replayed))
    }
}

fn respond(answer: Answer, replayed: bool) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, axum::Json(answer.body)).into_response();
    let location = answer.location.and_then(|location| HeaderValue::from_str(&location).ok());
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if replayed {
        response.headers_mut().insert(&REPLAYED, HeaderValue::from_static("true"));
    }
    response
}
