//! Git's smart HTTP: `git http-backend` as a CGI program, for the demo and the tests.
//!
//! It serves every repository below one directory, also for pushing, to whoever reaches loopback. With a user and a
//! password it asks for them, to test credentials.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::ports::send_at_once;

/// Largest pack that may be pushed.
const PUSH_BYTES_MAX: usize = 64 << 20;

/// What is served, and to whom.
#[derive(Clone)]
pub struct GitServer {
    /// Bare repositories lie below it.
    pub root: PathBuf,
    /// User name and password; `None` lets everybody in.
    pub credentials: Option<(String, String)>,
}

impl std::fmt::Debug for GitServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitServer").field("root", &self.root).finish_non_exhaustive()
    }
}

impl GitServer {
    /// Serves until the future `stop` resolves.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let root = std::fs::canonicalize(&self.root)
            .with_context(|| format!("there is no directory {}", self.root.display()))?;
        let server = Arc::new(Self { root, ..self });
        let router = Router::new().fallback(answer).with_state(server);
        let listener = listener.tap_io(send_at_once);
        axum::serve(listener, router).with_graceful_shutdown(stop).await.context("the Git server failed")
    }

    fn lets_in(&self, request: &Request) -> bool {
        let Some((user, password)) = &self.credentials else { return true };
        let expected = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        request
            .headers()
            .get(header::AUTHORIZATION)
            .is_some_and(|given| given.as_bytes() == expected.as_bytes())
    }
}

async fn answer(State(server): State<Arc<GitServer>>, request: Request) -> Response {
    if !server.lets_in(&request) {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")];
        return (StatusCode::UNAUTHORIZED, challenge).into_response();
    }
    match run_backend(&server.root, request).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!("git http-backend: {error:#}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn run_backend(root: &Path, request: Request) -> anyhow::Result<Response> {
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, PUSH_BYTES_MAX).collect().await else {
        return Ok(StatusCode::PAYLOAD_TOO_LARGE.into_response());
    };
    let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_PROTOCOL", text(HeaderName::from_static("git-protocol")))
        .env("PATH_INFO", parts.uri.path())
        .env("QUERY_STRING", parts.uri.query().unwrap_or(""))
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("CONTENT_TYPE", text(header::CONTENT_TYPE))
        .env("HTTP_CONTENT_ENCODING", text(header::CONTENT_ENCODING))
        // Pushing is allowed to whom the server calls by a name.
        .env("REMOTE_USER", "local")
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("cannot run git")?;
    let mut input = backend.stdin.take().context("git has no input")?;
    let sent = body.to_bytes();
    // Both at once: git may answer before it has read everything.
    let (written, output) = tokio::join!(
        async move {
            let outcome = input.write_all(&sent).await;
            drop(input);
            outcome
        },
        backend.wait_with_output()
    );
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    parse(output?.stdout.into())
}

/// A CGI answer: headers, an empty line, the body. The status is a header.
fn parse(output: Bytes) -> anyhow::Result<Response> {
    let (end, gap) = find_gap(&output).context("git answered without headers")?;
    let mut response = Response::new(Body::from(output.slice(end + gap..)));
    for line in std::str::from_utf8(&output[..end])?.lines() {
        let (name, value) = line.split_once(':').context("git answered with a malformed header")?;
        if name.eq_ignore_ascii_case("status") {
            let code = value.trim().split(' ').next().unwrap_or_default();
            *response.status_mut() = code.parse()?;
        } else {
            response
                .headers_mut()
                .append(HeaderName::try_from(name.trim())?, HeaderValue::try_from(value.trim())?);
        }
    }
    Ok(response)
}

fn find_gap(output: &[u8]) -> Option<(usize, usize)> {
    output
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| (at, 4))
        .or_else(|| output.windows(2).position(|window| window == b"\n\n").map(|at| (at, 2)))
}
