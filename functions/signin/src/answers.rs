//! What somebody gets, wherever they came from: a browser goes on to a page of ours or to the command line that waits, a
//! program gets a problem document.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use plumbline_api::problem::Problem;
use plumbline_core::oidc_logins::Cli;

use crate::FINISH;

const KIND: &str = "urn:plumbline:problem:";

/// Who asks, as far as the form of the answer goes.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// Our own address, without a trailing slash.
    pub public_url: String,
    /// Whether it shows pages.
    pub is_browser: bool,
    /// The command line that waits for an answer.
    pub cli: Option<Cli>,
}

impl Asker {
    pub(crate) fn new(public_url: &str, headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let is_browser =
            accepts.flat_map(|line| line.split(',')).any(|one| one.trim().starts_with("text/html"));
        Self { public_url: public_url.to_owned(), is_browser, cli: None }
    }

    /// Hands over a one-time code: in a fragment, which no server sees, or to a port of the person's own machine.
    pub(crate) fn hand_over(&self, code: &str) -> Response {
        match &self.cli {
            Some(cli) => redirect(&cli.callback("code", code)),
            None => redirect(&format!("{}{FINISH}#code={code}", self.public_url)),
        }
    }

    /// Says why not.
    pub(crate) fn refuse(&self, problem: Problem) -> Response {
        let slug = problem.kind.strip_prefix(KIND).unwrap_or("internal");
        match &self.cli {
            Some(cli) => redirect(&cli.callback("error", slug)),
            None if self.is_browser => redirect(&format!("{}{FINISH}#error={slug}", self.public_url)),
            None => private(problem.into_response()),
        }
    }
}

/// Sends somebody on, and keeps the address to ourselves.
pub(crate) fn redirect(to: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    match HeaderValue::from_str(to) {
        Ok(place) => response.headers_mut().insert(header::LOCATION, place),
        // The provider's document or a setting holds what no header can.
        Err(error) => return Problem::internal(&error).into_response(),
    };
    private(response)
}

/// Nobody keeps it, and nobody learns where somebody came from.
pub(crate) fn private(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
