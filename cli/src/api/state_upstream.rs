//! The state's own protocol, as the person or key that is signed in.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_state_proxy::{Away, Call, Pauses, Refusal, Upstream, is_passing};
use reqwest::{Response, StatusCode};
use url::Url;

use super::client::Client;
use super::problem::ApiError;

/// With the pauses between them about ten seconds.
const TRIES: u32 = 7;
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The way to the state of one workspace. Its tokens are renewed as they run out: an apply may take hours.
#[derive(Debug)]
pub struct StateUpstream {
    client: Arc<Client>,
    path: String,
}

impl StateUpstream {
    /// To the workspace of this id.
    pub fn new(client: Arc<Client>, workspace_id: &str) -> Self {
        Self { client, path: state_path(workspace_id) }
    }

    /// The state's address.
    pub fn address(&self) -> String {
        format!("{}{}", self.client.server, self.path)
    }

    async fn attempt(&self, call: &Call, token: &str) -> Result<Response, reqwest::Error> {
        let address = format!("{}{}", self.address(), call.path);
        let mut request = self.client.http.request(call.method.clone(), address).bearer_auth(token);
        if let Some(unit) = &self.client.business_unit {
            request = request.header("X-Business-Unit", unit);
        }
        call.fill(request).send().await
    }

    /// `Err`: signed out for good, or no answer yet.
    async fn renew(&self, token: &str) -> Result<(), Result<Refusal, Away>> {
        let Err(error) = self.client.renew(token).await else { return Ok(()) };
        Err(match error.downcast_ref::<ApiError>() {
            Some(ApiError::SignedOut { .. }) => Ok(signed_out(&error)),
            _ => Err(Away(error.to_string())),
        })
    }
}

fn state_path(workspace_id: &str) -> String {
    format!("/api/v1/state/{workspace_id}")
}

fn signed_out(error: &dyn std::fmt::Display) -> Refusal {
    Refusal { status: StatusCode::UNAUTHORIZED, body: error.to_string().into() }
}

#[async_trait]
impl Upstream for StateUpstream {
    async fn send(&self, call: &Call) -> Result<Result<Response, Refusal>, Away> {
        let mut pauses = Pauses::up_to(PAUSE_MAX);
        let mut is_renewed = false;
        let mut away = Away(String::new());
        for attempt in 1..=TRIES {
            let token = match self.client.access_token() {
                Ok(token) => token,
                Err(error) => return Ok(Err(signed_out(&error))),
            };
            match self.attempt(call, &token).await {
                Ok(response) if response.status().is_success() || response.status().is_redirection() => {
                    return Ok(Ok(response));
                }
                Ok(response)
                    if response.status() == StatusCode::UNAUTHORIZED
                        && !is_renewed
                        && self.client.is_renewable() =>
                {
                    match self.renew(&token).await {
                        Ok(()) => {
                            is_renewed = true;
                            continue;
                        }
                        Err(Ok(refusal)) => return Ok(Err(refusal)),
                        Err(Err(later)) => away = later,
                    }
                }
                Ok(response) if !is_passing(response.status()) => {
                    let status = response.status();
                    return Ok(Err(Refusal { status, body: response.bytes().await.unwrap_or_default() }));
                }
                Ok(response) => away = Away(format!("{} answers {}", self.client.server, response.status())),
                Err(error) => {
                    away = Away(ApiError::unreachable(&self.client.server.to_string(), &error).to_string());
                }
            }
            if attempt < TRIES {
                pauses.pause().await;
            }
        }
        Err(away)
    }

    fn http(&self) -> &reqwest::Client {
        &self.client.http
    }

    fn trusts(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.client.server.may_redirect_to(&url))
    }
}
