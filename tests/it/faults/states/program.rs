//! The state function's own program behind a runtime API, killed and started again in the middle of calls.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use plumbline_core::secrets::Domain;
use plumbline_runtime::Function;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::servers::{Draft, Reply};
use crate::plane::TestPlane;

type Invocation = (Vec<u8>, oneshot::Sender<Bytes>);

/// One process after the other.
pub struct Program {
    exchange: Arc<Exchange>,
    events: mpsc::Sender<Invocation>,
    address: String,
    variables: Vec<(String, String)>,
    /// `None` while it is killed.
    child: Mutex<Option<Child>>,
}

struct Exchange {
    inbox: Mutex<mpsc::Receiver<Invocation>>,
    current: std::sync::Mutex<Option<oneshot::Sender<Bytes>>>,
}

impl Program {
    pub async fn start(plane: &TestPlane, objects: &std::path::Path) -> Self {
        let (events, inbox) = mpsc::channel(1);
        let exchange = Arc::new(Exchange { inbox: Mutex::new(inbox), current: std::sync::Mutex::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/{answer}", post(answered))
            .with_state(exchange.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let (_, rest) = plane.database_url.split_once('@').unwrap();
        let own = [
            ("DATABASE_URL", format!("postgres://{}:for%20tests%20only@{rest}", Function::Tfstate.role())),
            ("PLUMBLINE_PUBLIC_URL", "http://127.0.0.1:9".into()),
            ("PLUMBLINE_BLOBS", format!("file://{}", objects.display())),
            ("PLUMBLINE_LIMIT_INLINE_READ_BYTES_MAX", plane.deps.limits.inline_read_bytes_max.to_string()),
            ("AWS_LAMBDA_FUNCTION_NAME", "tfstate".into()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".into()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".into()),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "tfstate".into()),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "tfstate".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_EC2_METADATA_DISABLED", "true".into()),
        ];
        let mut variables = Function::Tfstate.keys(&plane.deps.keys).export();
        variables.extend(plane.deps.keys.only(&[Domain::Blobs]).export());
        variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let program = Self { exchange, events, address, variables, child: Mutex::default() };
        program.kill_and_start_again().await;
        program
    }

    /// SIGKILL, whatever it is doing.
    pub async fn kill_and_start_again(&self) {
        let mut child = self.child.lock().await;
        if let Some(mut old) = child.take() {
            old.kill().unwrap();
            old.wait().unwrap();
        }
        // Whoever waits for the dead one's answer gets none.
        drop(self.exchange.current.lock().unwrap().take());
        let started = Command::new(plumbline_tests::bin("plumbline-tfstate"))
            .envs(self.variables.iter().cloned())
            .env("AWS_LAMBDA_RUNTIME_API", &self.address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        *child = Some(started.unwrap());
    }

    /// Its answer; `None` if it was killed meanwhile.
    pub async fn call(&self, draft: &Draft) -> Option<Reply> {
        let (sender, answer) = oneshot::channel();
        self.events.send((event(draft), sender)).await.ok()?;
        let answer: Value = serde_json::from_slice(&answer.await.ok()?).ok()?;
        let status = u16::try_from(answer["statusCode"].as_u64()?).ok()?;
        let text = answer["body"].as_str().unwrap_or_default();
        let body = match answer["isBase64Encoded"] == json!(true) {
            true => STANDARD.decode(text).ok()?.into(),
            false => Bytes::from(text.to_owned()),
        };
        let location = answer["headers"]["location"].as_str().map(str::to_owned);
        Some(Reply { status, location, body })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.get_mut().take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn next(State(exchange): State<Arc<Exchange>>) -> Response {
    let Some((event, answer)) = exchange.inbox.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    *exchange.current.lock().unwrap() = Some(answer);
    let deadline = chrono::Utc::now().timestamp_millis() + 60_000;
    let headers = [
        ("lambda-runtime-aws-request-id", "1".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:tfstate".into(),
        ),
        ("content-type", "application/json".into()),
    ];
    (AppendHeaders(headers), event).into_response()
}

async fn answered(State(exchange): State<Arc<Exchange>>, body: Bytes) -> StatusCode {
    if let Some(waiting) = exchange.current.lock().unwrap().take() {
        // Whoever asked may have gone away.
        let _ = waiting.send(body);
    }
    StatusCode::ACCEPTED
}

/// As API Gateway's HTTP API hands a request over.
fn event(draft: &Draft) -> Vec<u8> {
    let (path, query) = draft.uri.split_once('?').unwrap_or((&draft.uri, ""));
    let mut headers = json!({ "host": "localhost", "content-type": "application/json" });
    headers["authorization"] = json!(draft.authorization);
    if let Some(md5) = &draft.content_md5 {
        headers["content-md5"] = json!(md5);
    }
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "headers": headers,
        "requestContext": {
            "accountId": "000000000000", "apiId": "test", "domainName": "localhost", "domainPrefix": "test",
            "http": { "method": draft.method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1",
                      "userAgent": "test" },
            "requestId": "1", "routeKey": "$default", "stage": "$default", "time": "01/Jan/1970:00:00:00 +0000",
            "timeEpoch": 0,
        },
        "body": STANDARD.encode(&draft.body),
        "isBase64Encoded": true,
    })
    .to_string()
    .into_bytes()
}
