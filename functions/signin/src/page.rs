//! Where a browser ends its sign-in until there is a web console: a page that trades the code, says who one is now, and
//! signs out again, since nothing here would use the session.

use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::answers::private;

const SCRIPT: &str = include_str!("finish.js");
const STYLE: &str =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}";

static PAGE: LazyLock<String> = LazyLock::new(|| {
    [
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Plumbline: sign-in</title>\n<style>",
        STYLE,
        "</style>\n<h1>Plumbline</h1>\n<p id=\"said\">This page needs JavaScript.</p>\n<script>",
        SCRIPT,
        "</script>\n</html>\n",
    ]
    .concat()
});

/// Only this very script and style, which talk to nobody but us.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    HeaderValue::from_str(&policy).expect("words and base64 are visible ASCII")
});

pub(crate) async fn finish() -> Response {
    let mut response = private(Html(PAGE.as_str()).into_response());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    response
}
