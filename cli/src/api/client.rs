//! The connection to one server: its HTTP client, the session, and the business unit that calls are made for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::problem::ApiError;
use super::routes::{self, Route};
use super::server::Server;
use super::{Call, Document};
use crate::session::{Session, SessionStore};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two bytes of an answer; the server gives up on a request after 30 seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A client of one server.
pub struct Client {
    pub(super) http: reqwest::Client,
    pub(super) server: Server,
    pub(super) business_unit: Option<String>,
    pub(super) quiet: bool,
    store: SessionStore,
    session: Mutex<Option<Session>>,
    /// Sent instead of a session's token.
    api_key: Mutex<Option<String>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A pair of tokens from the server.
#[derive(Deserialize)]
struct TokenPair {
    access_token: String,
    refresh_token: String,
}

impl Client {
    /// A client with the session stored for this server, if there is one.
    pub fn new(
        server: Server,
        business_unit: Option<String>,
        store: SessionStore,
        api_key: Option<String>,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("plumb/", env!("CARGO_PKG_VERSION")))
            // A redirect is followed by hand, so that the token never goes to another host.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT);
        if server.is_loopback() {
            builder = builder.no_proxy();
        }
        let api_key = match api_key {
            Some(key) => Some(key),
            None => store.find_key(&server)?,
        };
        let session = if api_key.is_some() { None } else { store.find(&server)? };
        Ok(Self {
            http: builder.build()?,
            server,
            business_unit,
            quiet,
            store,
            session: Mutex::new(session),
            api_key: Mutex::new(api_key),
        })
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Begins a declared call.
    pub fn call<const N: usize>(&self, route: Route<N>, values: [&str; N]) -> Call<'_> {
        Call::new(self, route.method(), route.path(values))
    }

    /// Begins a declared call that needs no session.
    pub fn anonymous_call<const N: usize>(&self, route: Route<N>, values: [&str; N]) -> Call<'_> {
        self.call(route, values).anonymous()
    }

    /// Signs in and stores the session.
    pub async fn sign_in(&self, email: &str, password: &str) -> anyhow::Result<()> {
        let body = json!({ "email": email, "password": password });
        let answer = self.call(routes::SIGN_IN, []).anonymous().body(body).send().await?;
        self.keep(&answer, email)?;
        self.store.set_current(&self.server)
    }

    /// Trades the one-time code that a browser brought, and stores the session. Whose it is is not known yet.
    pub async fn sign_in_with_code(&self, code: &str, secret: &str) -> anyhow::Result<()> {
        let body = json!({ "code": code, "cli_secret": secret });
        let answer = self.call(routes::TRADE_CODE, []).anonymous().body(body).send().await?;
        self.keep(&answer, "")?;
        self.store.set_current(&self.server)
    }

    /// Writes into the stored session whose it is.
    pub fn name_session(&self, email: &str) -> anyhow::Result<()> {
        let mut session = guard(&self.session);
        match session.as_mut() {
            Some(session) if session.email != email => {
                email.clone_into(&mut session.email);
                self.store.save(&self.server, session)
            }
            _ => Ok(()),
        }
    }

    /// Stores a key that the server accepts, instead of a session.
    pub async fn sign_in_with_key(&self, key: &str) -> anyhow::Result<()> {
        *guard(&self.session) = None;
        *guard(&self.api_key) = Some(key.to_owned());
        // The least that any key may do.
        self.call(routes::LIST_WORKSPACES, []).query("limit", Some(1)).send().await?;
        self.store.save_key(&self.server, key)?;
        self.store.set_current(&self.server)
    }

    /// Sets the password of whoever was invited.
    pub async fn accept_invite(&self, token: &str, password: &str) -> anyhow::Result<()> {
        let body = json!({ "token": token, "password": password });
        self.call(routes::ACCEPT_INVITE, []).anonymous().body(body).send().await?;
        Ok(())
    }

    /// Forgets the session here, and ends it, or all of them, at the server. `false`: there was none.
    pub async fn sign_out(&self, everywhere: bool) -> anyhow::Result<bool> {
        if guard(&self.session).is_none() {
            // A key is not ended by the machine that forgets it: others may use it.
            return self.store.remove(&self.server);
        }
        let route = if everywhere { routes::SIGN_OUT_EVERYWHERE } else { routes::SIGN_OUT };
        let ended = self.call(route, []).send().await;
        // Whatever the server said: the person wants no session on this machine.
        self.store.remove(&self.server)?;
        match ended.map_err(|error| error.downcast::<ApiError>()) {
            Ok(_) | Err(Ok(ApiError::SignedOut { .. })) => Ok(true),
            Err(Ok(error)) => Err(error.into()),
            Err(Err(error)) => Err(error),
        }
    }

    /// The unit that calls are made for, if one was named.
    pub fn business_unit(&self) -> Option<&str> {
        self.business_unit.as_deref()
    }

    /// What is sent as the proof of who calls. Never printed unless the person asks for it.
    pub fn credential(&self) -> anyhow::Result<String> {
        Ok(self.access_token()?)
    }

    /// The token to send.
    pub(super) fn access_token(&self) -> Result<String, ApiError> {
        if let Some(key) = &*guard(&self.api_key) {
            return Ok(key.clone());
        }
        match &*guard(&self.session) {
            Some(session) => Ok(session.access_token.clone()),
            None => Err(self.signed_out()),
        }
    }

    /// Whether a refused token may be replaced: a session's may, an API key may not.
    pub(super) fn is_renewable(&self) -> bool {
        guard(&self.api_key).is_none()
    }

    /// Replaces an access token that the server refused, once for all processes that share the session: a refresh
    /// token works once, and using it twice ends the session.
    pub(super) async fn renew(&self, refused: &str) -> anyhow::Result<()> {
        let _guard = self.store.lock(&self.server).await?;
        let Some(stored) = self.store.find(&self.server)? else { return Err(self.signed_out().into()) };
        if stored.access_token != refused {
            *guard(&self.session) = Some(stored);
            return Ok(());
        }
        let body = json!({ "refresh_token": stored.refresh_token });
        let answer = self.call(routes::REFRESH_SESSION, []).anonymous().body(body).send().await;
        match answer {
            Ok(answer) => self.keep(&answer, &stored.email),
            Err(error) => match error.downcast_ref::<ApiError>() {
                Some(ApiError::Problem(problem)) if matches!(problem.status, 400..=403) => {
                    self.store.remove(&self.server)?;
                    Err(self.signed_out().into())
                }
                _ => Err(error),
            },
        }
    }

    fn keep(&self, answer: &Document, email: &str) -> anyhow::Result<()> {
        let pair: TokenPair = answer.read()?;
        let session = Session {
            server: self.server.to_string(),
            email: email.into(),
            access_token: pair.access_token,
            refresh_token: pair.refresh_token,
        };
        self.store.save(&self.server, &session)?;
        *guard(&self.session) = Some(session);
        *guard(&self.api_key) = None;
        Ok(())
    }

    fn signed_out(&self) -> ApiError {
        ApiError::SignedOut { server: self.server.to_string() }
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
