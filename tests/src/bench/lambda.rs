//! One process of a function behind a runtime API, to see how fast it starts and what it takes.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use plumbline_core::secrets::Keyring;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(60);

/// A started function. Killed when dropped.
pub(crate) struct Function {
    child: Child,
    began: Instant,
    events: mpsc::Sender<Vec<u8>>,
    answers: mpsc::Receiver<(Instant, Bytes)>,
    api: JoinHandle<()>,
}

struct Exchange {
    events: Mutex<mpsc::Receiver<Vec<u8>>>,
    answers: mpsc::Sender<(Instant, Bytes)>,
}

impl Function {
    /// Starts a function's program with the variables that it gets on AWS, on the database that the URL names.
    pub(crate) async fn start(program: &str, server: &Server, database_url: &str) -> anyhow::Result<Self> {
        let (events, inbox) = mpsc::channel(1);
        let (outbox, answers) = mpsc::channel(1);
        let exchange = Arc::new(Exchange { events: Mutex::new(inbox), answers: outbox });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(answered))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(exchange);
        let api = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        let mut command = Command::new(plumbline_tests::bin(program));
        command.env_clear().envs(variables(server, database_url)?);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("AWS_LAMBDA_RUNTIME_API", address.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let child = command.spawn().with_context(|| format!("{program} cannot be run"))?;
        Ok(Self { child, began, events, answers, api })
    }

    /// Hands over an event and gives the answer with the time since the process was started.
    pub(crate) async fn invoke(&mut self, event: &Value) -> anyhow::Result<(Duration, Value)> {
        self.events.send(serde_json::to_vec(event)?).await?;
        let answer = tokio::time::timeout(PATIENCE, self.answers.recv()).await;
        let (at, body) =
            answer.context("the function does not answer")?.context("its runtime API has ended")?;
        Ok((at - self.began, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.api.abort();
    }
}

async fn next(State(exchange): State<Arc<Exchange>>) -> Response {
    let Some(event) = exchange.events.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let deadline = chrono::Utc::now() + Duration::from_secs(60);
    let headers = [
        ("lambda-runtime-aws-request-id", "1".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.timestamp_millis().to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:bench".to_owned(),
        ),
        ("content-type", "application/json".to_owned()),
    ];
    (AppendHeaders(headers), event).into_response()
}

async fn answered(State(exchange): State<Arc<Exchange>>, body: Bytes) -> StatusCode {
    // Nobody may listen any more when the function is being dropped.
    let _ = exchange.answers.send((Instant::now(), body)).await;
    StatusCode::ACCEPTED
}

fn variables(server: &Server, database_url: &str) -> anyhow::Result<Vec<(String, String)>> {
    let secret = |name: &str| -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(server.home().join(name))?.trim().to_owned())
    };
    let mut variables = Keyring::from_root(&secret("root-key")?)?.export();
    let own = [
        ("DATABASE_URL", database_url.to_owned()),
        ("PLUMBLINE_PUBLIC_URL", server.facts.url.clone()),
        ("PLUMBLINE_BLOBS", "s3://plumbline".to_owned()),
        ("PLUMBLINE_WAKER", "none".to_owned()),
        ("PLUMBLINE_LAUNCHER", "local".to_owned()),
        ("PLUMBLINE_OUTBOUND_FUNCTION", "bench".to_owned()),
        ("PLUMBLINE_EXECUTOR_PROGRAM", plumbline_tests::bin("executor-task").display().to_string()),
        ("PLUMBLINE_EXECUTOR_DIRECTORY", server.home().join("executors").display().to_string()),
        ("AWS_ENDPOINT_URL_S3", server.facts.store_url.clone()),
        ("AWS_ACCESS_KEY_ID", secret("store-key-id")?),
        ("AWS_SECRET_ACCESS_KEY", secret("store-secret")?),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ("AWS_LAMBDA_FUNCTION_NAME", "bench".to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "bench".to_owned()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "bench".to_owned()),
        ("PLUMBLINE_LOG", "warn".to_owned()),
    ];
    variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Ok(variables)
}

/// A request as API Gateway's HTTP API hands it over.
pub(crate) fn request(method: &str, path_and_query: &str, token: &str, body: &[u8]) -> Value {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
        "headers": {
            "host": "localhost", "content-type": "application/json", "authorization": format!("Bearer {token}"),
            "x-business-unit": "default",
        },
        "requestContext": {
            "accountId": "000000000000", "apiId": "bench", "domainName": "localhost", "domainPrefix": "bench",
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1",
                      "userAgent": "bench" },
            "requestId": "1", "routeKey": "$default", "stage": "$default", "time": "01/Jan/1970:00:00:00 +0000",
            "timeEpoch": 0,
        },
        "body": base64::engine::general_purpose::STANDARD.encode(body),
        "isBase64Encoded": true,
    })
}

/// Refuses anything but a success.
pub(crate) fn expect_success(answer: &Value) -> anyhow::Result<()> {
    let status = answer["statusCode"].as_u64().unwrap_or(0);
    ensure!((200..300).contains(&status), "the function answered {answer}");
    Ok(())
}
