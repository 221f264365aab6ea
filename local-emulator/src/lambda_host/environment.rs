//! One process of a function, and the runtime API that it polls.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Path as PathOf, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use http::StatusCode;
use nix::sys::signal::Signal;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::home::random_word;
use crate::ports::send_at_once;
use crate::processes;

const STOP_PATIENCE: Duration = Duration::from_secs(2);
const MEMORY_MEGABYTES: &str = "512";
/// Answers are checked against the gateway's limit later; this one only bounds memory.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Where an answer goes, or what the function said went wrong.
type AnswerSender = oneshot::Sender<Result<Bytes, String>>;

/// An event on its way to the process, and where its answer goes.
struct Invocation {
    id: String,
    event: Vec<u8>,
    answer: AnswerSender,
}

/// What the runtime API shares with its environment.
struct Exchange {
    function: &'static str,
    timeout: Duration,
    inbox: Mutex<mpsc::Receiver<Invocation>>,
    /// The invocation that the process has, if it has one.
    current: std::sync::Mutex<Option<(String, AnswerSender)>>,
}

/// One process and its runtime API.
#[derive(Debug)]
pub(super) struct Environment {
    process: Child,
    invocations: mpsc::Sender<Invocation>,
    timeout: Duration,
    api: JoinHandle<()>,
}

impl Environment {
    /// Starts the process.
    pub(super) async fn start(
        function: &'static str,
        program: &Path,
        variables: &[(String, String)],
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (invocations, inbox) = mpsc::channel(1);
        let exchange =
            Exchange { function, timeout, inbox: Mutex::new(inbox), current: std::sync::Mutex::default() };
        let router = runtime_api(Arc::new(exchange));
        let api = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener.tap_io(send_at_once), router).await {
                tracing::error!(function, error = %error, "the runtime API ended");
            }
        });
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", function)
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", MEMORY_MEGABYTES)
            .env("AWS_LAMBDA_LOG_GROUP_NAME", function)
            .env("AWS_LAMBDA_LOG_STREAM_NAME", function)
            .env("AWS_REGION", crate::object_store::REGION)
            .stdin(Stdio::null())
            // Our own standard output is for what people asked for.
            .stdout(std::io::stderr());
        match processes::spawn(command, Signal::SIGTERM).await {
            Ok(process) => Ok(Self { process, invocations, timeout, api }),
            Err(error) => {
                api.abort();
                Err(error).with_context(|| format!("cannot run {}", program.display()))
            }
        }
    }

    /// Hands over one event and waits for the answer, the end of the process, or the end of the time.
    pub(super) async fn invoke(&mut self, event: Vec<u8>) -> Result<Bytes, String> {
        let (answer, answered) = oneshot::channel();
        let invocation = Invocation { id: random_word(), event, answer };
        self.invocations.send(invocation).await.map_err(|_| "its runtime API has ended".to_owned())?;
        tokio::select! {
            answered = answered => answered.unwrap_or_else(|_| Err("it dropped the invocation".into())),
            status = self.process.wait() => match status {
                Ok(status) => Err(format!("its process ended with {status}")),
                Err(error) => Err(format!("its process cannot be watched: {error}")),
            },
            () = tokio::time::sleep(self.timeout) => {
                // As on AWS: what outlives its time is killed, and the next event gets a fresh process.
                processes::signal_group(&self.process, Signal::SIGKILL);
                let _ = self.process.wait().await;
                Err(format!("it did not answer within {} s", self.timeout.as_secs()))
            }
        }
    }

    /// Whether the process can take another event.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Ends the process.
    pub(super) async fn stop(mut self) {
        if let Err(error) = processes::stop(&mut self.process, &[(Signal::SIGTERM, STOP_PATIENCE)]).await {
            tracing::warn!(error = %error, "a function's process cannot be stopped");
        }
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        processes::signal_group(&self.process, Signal::SIGKILL);
        self.api.abort();
    }
}

fn runtime_api(exchange: Arc<Exchange>) -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/response", post(answered))
        .route("/2018-06-01/runtime/invocation/{id}/error", post(failed))
        .route("/2018-06-01/runtime/init/error", post(init_failed))
        .layer(axum::extract::DefaultBodyLimit::max(ANSWER_BYTES_MAX))
        .with_state(exchange)
}

async fn next(State(exchange): State<Arc<Exchange>>) -> Response {
    let Some(invocation) = exchange.inbox.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let deadline = chrono::Utc::now() + exchange.timeout;
    let headers = [
        ("lambda-runtime-aws-request-id", invocation.id.clone()),
        ("lambda-runtime-deadline-ms", deadline.timestamp_millis().to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            format!("arn:aws:lambda:us-east-1:000000000000:function:{}", exchange.function),
        ),
        ("lambda-runtime-trace-id", "Root=1-00000000-000000000000000000000000;Sampled=0".to_owned()),
        ("content-type", "application/json".to_owned()),
    ];
    *exchange.current.lock().expect("no holder panics") = Some((invocation.id, invocation.answer));
    (axum::response::AppendHeaders(headers), invocation.event).into_response()
}

async fn answered(
    State(exchange): State<Arc<Exchange>>,
    PathOf(id): PathOf<String>,
    body: Bytes,
) -> StatusCode {
    settle(&exchange, &id, Ok(body))
}

async fn failed(
    State(exchange): State<Arc<Exchange>>,
    PathOf(id): PathOf<String>,
    body: Bytes,
) -> StatusCode {
    settle(&exchange, &id, Err(String::from_utf8_lossy(&body).into_owned()))
}

async fn init_failed(State(exchange): State<Arc<Exchange>>, body: Bytes) -> StatusCode {
    tracing::error!(function = exchange.function, error = %String::from_utf8_lossy(&body), "a function cannot start");
    StatusCode::ACCEPTED
}

fn settle(exchange: &Exchange, id: &str, outcome: Result<Bytes, String>) -> StatusCode {
    let current = exchange.current.lock().expect("no holder panics").take();
    match current {
        Some((current, answer)) if current == id => {
            // Nobody waits any more when the gateway gave up: nothing to do.
            let _ = answer.send(outcome);
            StatusCode::ACCEPTED
        }
        _ => StatusCode::BAD_REQUEST,
    }
}
