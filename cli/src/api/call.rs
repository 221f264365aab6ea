//! One call: what is sent, when it may be sent again, and what comes back.

use std::time::Duration;

use reqwest::{Response, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use super::Document;
use super::client::Client;
use super::problem::{ApiError, retry_after};
use super::routes::Method;

const ATTEMPTS_MAX: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A call under construction.
#[derive(Debug)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call<'c> {
    pub(super) client: &'c Client,
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
    idempotency_key: Option<String>,
    etag: Option<String>,
    anonymous: bool,
}

impl<'c> Call<'c> {
    pub(super) fn new(client: &'c Client, method: Method, path: String) -> Self {
        Self {
            client,
            method,
            path,
            query: Vec::new(),
            body: None,
            idempotency_key: None,
            etag: None,
            anonymous: false,
        }
    }

    /// A query parameter; `None` leaves it out.
    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// The JSON body.
    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Says that the call creates something: the server answers the same key once, so the call may be repeated.
    /// Without a key of the person's own a fresh one is made.
    pub fn creates(mut self, key: Option<String>) -> Self {
        self.idempotency_key = Some(key.unwrap_or_else(|| Uuid::new_v4().to_string()));
        self
    }

    /// Edits only the version of the thing that this document is.
    pub fn if_match(mut self, document: &Document) -> Self {
        self.etag = document.etag().map(str::to_owned);
        self
    }

    /// Needs no session.
    pub(super) fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Sends it and reads the answer.
    pub async fn send(self) -> anyhow::Result<Document> {
        let response = self.open().await?;
        if response.status().is_redirection() {
            let server = self.client.server.to_string();
            return Err(ApiError::NotPlumbline { server, status: response.status().as_u16() }.into());
        }
        let etag = response.headers().get(reqwest::header::ETAG);
        let etag = etag.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        Ok(Document::new(text, etag))
    }

    /// Sends it until there is an answer that is a success or a redirect. Boxed: renewing the session is a call too.
    pub(super) fn open(&self) -> futures::future::BoxFuture<'_, anyhow::Result<Response>> {
        Box::pin(async move {
            let mut renewed = false;
            let mut attempt = 1;
            loop {
                let token = if self.anonymous { None } else { Some(self.client.access_token()?) };
                let pause = match self.attempt(token.as_deref()).await {
                    Ok(response)
                        if response.status() == StatusCode::UNAUTHORIZED
                            && !renewed
                            && self.client.is_renewable() =>
                    {
                        let Some(token) = token else { return Err(self.refused(response).await) };
                        self.client.renew(&token).await?;
                        renewed = true;
                        continue;
                    }
                    Ok(response) if response.status().is_success() || response.status().is_redirection() => {
                        return Ok(response);
                    }
                    Ok(response) => match self.pause_after(&response, attempt) {
                        Some(pause) => pause,
                        None => return Err(self.refused(response).await),
                    },
                    // A connection that was never made has carried nothing to the server.
                    Err(error) if attempt < ATTEMPTS_MAX && (self.repeatable() || error.is_connect()) => {
                        backoff(attempt)
                    }
                    Err(error) => return Err(self.unreachable(&error).into()),
                };
                if attempt == 1 && !self.client.quiet {
                    eprintln!("{} does not answer at the moment; trying again", self.client.server);
                }
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
        })
    }

    async fn attempt(&self, token: Option<&str>) -> Result<Response, reqwest::Error> {
        let method = match self.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        let address = format!("{}{}", self.client.server, self.path);
        let address = match url::Url::parse_with_params(&address, &self.query) {
            Ok(mut url) => {
                if self.query.is_empty() {
                    url.set_query(None);
                }
                url.to_string()
            }
            Err(_) => address,
        };
        let mut request = self.client.http.request(method, address);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(unit) = self.client.business_unit.as_deref().filter(|_| !self.anonymous) {
            request = request.header("X-Business-Unit", unit);
        }
        if let Some(key) = &self.idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(etag) = &self.etag {
            request = request.header(reqwest::header::IF_MATCH, etag);
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        request.send().await
    }

    /// Whether sending it twice does it once.
    fn repeatable(&self) -> bool {
        matches!(self.method, Method::Get) || self.idempotency_key.is_some()
    }

    /// How long until trying again makes sense; `None` if it does not.
    fn pause_after(&self, response: &Response, attempt: u32) -> Option<Duration> {
        let passes = match response.status() {
            StatusCode::TOO_MANY_REQUESTS => true,
            StatusCode::SERVICE_UNAVAILABLE => self.repeatable(),
            // The first sending of the same key is still under way: its answer will be ours.
            StatusCode::CONFLICT => self.idempotency_key.is_some() && retry_after(response).is_some(),
            _ => false,
        };
        let asked = retry_after(response).unwrap_or_else(|| backoff(attempt));
        (passes && attempt < ATTEMPTS_MAX && asked <= LONGEST_PAUSE).then_some(asked)
    }

    async fn refused(&self, response: Response) -> anyhow::Error {
        ApiError::of(&self.client.server.to_string(), response).await.into()
    }

    pub(super) fn unreachable(&self, error: &reqwest::Error) -> ApiError {
        ApiError::unreachable(&self.client.server.to_string(), error)
    }
}

fn backoff(attempt: u32) -> Duration {
    FIRST_PAUSE * 2_u32.pow(attempt - 1)
}
