//! Memory of the functions' own programs while they look into a state of 120 MB.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::{get, post};
use http::StatusCode;
use plumbline_core::db::Query as _;
use plumbline_core::ports::BlobStore as _;
use plumbline_core::secrets::Keyring;
use plumbline_runtime::Function;
use plumbline_s3::{Keys, S3Store};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

use super::object_stores;
use super::state_client::{Backend, state};
use crate::plane::TestPlane;

const PATIENCE: Duration = Duration::from_secs(180);
const STATE_BYTES: usize = 120 << 20;
pub(super) const RESIDENT_KILOBYTES_MAX: u64 = 80 << 10;

/// A function's program that is invoked with one event after the other. Killed when dropped.
pub(super) struct Program {
    child: Child,
    events: mpsc::Sender<Vec<u8>>,
    answers: mpsc::Receiver<Bytes>,
}

struct Exchange {
    events: Mutex<mpsc::Receiver<Vec<u8>>>,
    answers: mpsc::Sender<Bytes>,
}

impl Program {
    async fn start(function: Function, name: &str, plane: &TestPlane, store_url: &str) -> Self {
        Self::start_with(function, name, plane, store_url, ("test-key", "test-secret")).await
    }

    /// With other keys of the store.
    pub(super) async fn start_with(
        function: Function,
        name: &str,
        plane: &TestPlane,
        store_url: &str,
        (key, secret): (&str, &str),
    ) -> Self {
        let (events, inbox) = mpsc::channel(1);
        let (outbox, answers) = mpsc::channel(1);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/{answer}", post(answered))
            .with_state(Arc::new(Exchange { events: Mutex::new(inbox), answers: outbox }));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let keys: &Keyring = &plane.deps.keys;
        let mut child = Command::new(plumbline_tests::bin(name));
        child.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        child.envs(function.keys(keys).export());
        for (variable, value) in [
            ("AWS_LAMBDA_RUNTIME_API", address.to_string().as_str()),
            ("AWS_LAMBDA_FUNCTION_NAME", name),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", name),
            ("AWS_LAMBDA_LOG_STREAM_NAME", name),
            ("DATABASE_URL", &plane.database_url),
            ("PLUMBLINE_PUBLIC_URL", "http://127.0.0.1:9"),
            ("PLUMBLINE_BLOBS", "s3://plumbline"),
            ("PLUMBLINE_WAKER", "none"),
            ("PLUMBLINE_LAUNCHER", "local"),
            ("PLUMBLINE_OUTBOUND_FUNCTION", "outbound"),
            ("PLUMBLINE_EXECUTOR_PROGRAM", &plumbline_tests::bin("executor-task").display().to_string()),
            ("PLUMBLINE_EXECUTOR_DIRECTORY", "/nowhere"),
            ("AWS_ENDPOINT_URL_S3", store_url),
            ("PLUMBLINE_STATE_S3_ENDPOINT", store_url),
            ("AWS_ACCESS_KEY_ID", key),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ] {
            child.env(variable, value);
        }
        let child = child.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        Self { child, events, answers }
    }

    async fn invoke(&mut self, event: &Value) -> Value {
        self.events.send(serde_json::to_vec(event).unwrap()).await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.answers.recv()).await.expect("an answer in time");
        serde_json::from_slice(&answer.expect("an answer")).unwrap_or(Value::Null)
    }

    pub(super) async fn call(&mut self, method: &str, path: &str, token: &str) -> Value {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
            "headers": { "authorization": format!("Bearer {token}"), "content-type": "application/json",
                         "host": "127.0.0.1" },
            "requestContext": {
                "accountId": "0", "apiId": "0", "domainName": "127.0.0.1", "domainPrefix": "0", "requestId": "1",
                "routeKey": "$default", "stage": "$default", "time": "01/Jan/2026:00:00:00 +0000",
                "timeEpoch": 1_767_225_600_000_u64,
                "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1",
                          "userAgent": "test" },
            },
            "body": if method == "POST" { json!("{}") } else { Value::Null }, "isBase64Encoded": false,
        });
        let answer = self.invoke(&event).await;
        let status = answer["statusCode"].as_u64().expect("a status");
        assert!((200..300).contains(&status), "{method} {path}: {answer}");
        serde_json::from_str(answer["body"].as_str().unwrap()).unwrap()
    }

    /// The most that was resident at any time, in kilobytes.
    pub(super) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn next(State(exchange): State<Arc<Exchange>>) -> Response {
    let Some(event) = exchange.events.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let deadline = chrono::Utc::now() + PATIENCE;
    let arn = "arn:aws:lambda:us-east-1:000000000000:function:test".to_owned();
    let headers = [
        ("lambda-runtime-aws-request-id", "1".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.timestamp_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", arn),
    ];
    (AppendHeaders(headers), event).into_response()
}

async fn answered(State(exchange): State<Arc<Exchange>>, body: Bytes) -> StatusCode {
    // Nobody listens any more when the program is being dropped.
    let _ = exchange.answers.send(body).await;
    StatusCode::ACCEPTED
}

/// Thirty thousand resources of some four kilobytes, and one value of eight megabytes.
fn large(serial: i64) -> Vec<u8> {
    let filler = "Lorem ipsum ".repeat(300);
    let mut body = format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":{serial},"lineage":"l","outputs":{{"u":{{"value":"v","type":"string"}}}},"resources":["#
    );
    let huge = "y".repeat(8 << 20);
    body.push_str(&format!(
        r#"{{"mode":"managed","type":"t","name":"huge","provider":"p","instances":[{{"attributes":{{"id":"h","v":"{huge}"}}}}]}}"#
    ));
    let mut number = 0;
    while body.len() < STATE_BYTES {
        body.push_str(&format!(
            r#",{{"mode":"managed","type":"t","name":"n{number}","provider":"p","instances":[{{"attributes":{{"id":"i-{number}","v":"{filler}","serial":{}}}}}]}}"#,
            if number % 1_000 == 0 { serial } else { 0 }
        ));
        number += 1;
    }
    body.push_str("]}");
    body.into_bytes()
}

#[tokio::test]
async fn a_state_of_120_megabytes_is_compared_rolled_back_and_indexed_in_80_megabytes() {
    const NEXT: &str = "
        WITH version AS (
            INSERT INTO state_versions (id, business_unit_id, workspace_id, serial, lineage, generation, md5, sha256,
                                        size_bytes, key)
            SELECT $3, $1, $2, $4, 'l', 0, decode(md5('x'), 'hex'), sha256('x'), $5, $6 RETURNING id
        )
        UPDATE tfstates SET head_version_id = $3, head_serial = $4, head_size_bytes = $5, head_key = $6,
            head_resource_count = NULL
        WHERE workspace_id = $2";
    let _ = rustls::crypto::ring::default_provider().install_default();
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("plumbline")).unwrap();
    let store_url = object_stores::serve_s3s(scratch.path().to_owned()).await;
    let blobs = S3Store::with_keys(&Keys {
        endpoint: store_url.clone(),
        region: "us-east-1".into(),
        bucket: "plumbline".into(),
        access_key_id: "test-key".into(),
        secret_access_key: "test-secret".into(),
    });
    let mut plane = TestPlane::start().await;
    plane.deps.blobs = Arc::new(blobs.clone());
    let backend = Backend::on(plane).await;
    assert_eq!(backend.write(None, &state(1, "l", "a")).await.0, StatusCode::OK);
    let conn = backend.plane.db().conn().await.unwrap();
    let mut ids = Vec::new();
    for serial in 2..4_i64 {
        // As if an executor had uploaded it.
        let (body, key) = (large(serial), format!("states/large-{serial}.tfstate"));
        let (id, size) = (uuid::Uuid::now_v7(), i64::try_from(body.len()).unwrap());
        blobs.put(&key, body.into(), "application/json").await.unwrap();
        conn.execute(NEXT, &[&backend.unit, &backend.workspace, &id, &serial, &size, &key]).await.unwrap();
        ids.push(id);
    }
    let mut api = Program::start(Function::Api, "plumbline-api", &backend.plane, &store_url).await;
    let token = &backend.token;
    let outputs = api.call("GET", &format!("/api/v1/state-versions/{}/outputs", ids[1]), token).await;
    assert_eq!(outputs["items"][0]["value"], "v");
    let diff = api.call("GET", &format!("/api/v1/state-versions/{}/diff", ids[1]), token).await;
    assert!(diff["changed"].as_array().unwrap().len() > 20 && diff["added"] == json!([]), "{diff}");
    let back = api.call("POST", &format!("/api/v1/state-versions/{}/rollback", ids[0]), token).await;
    assert_eq!(back["serial"], 4);
    let peak = api.peak();
    eprintln!("api: outputs, diff and rollback of 120 MB, at most {} MB resident", peak >> 10);
    assert!(peak <= RESIDENT_KILOBYTES_MAX, "{peak} kB");

    let key: String = conn.query_one("SELECT head_key FROM tfstates", &[]).await.unwrap().get(0);
    let (old, new) = (large(2), blobs.get(&key).await.unwrap());
    let old = String::from_utf8(old).unwrap().replacen("\"serial\":2,", "\"serial\":4,", 1);
    assert!(new == old.as_bytes(), "every byte but those of the serial is as it was");

    let mut worker =
        Program::start(Function::Reconciler, "plumbline-reconciler", &backend.plane, &store_url).await;
    worker.invoke(&json!({})).await;
    let indexed: i64 = conn.query_one("SELECT count(*) FROM resources", &[]).await.unwrap().get(0);
    let counted = &backend.versions().await[0]["resource_count"];
    let peak = worker.peak();
    eprintln!("reconciler: {indexed} resources of 120 MB indexed, at most {} MB resident", peak >> 10);
    assert_eq!(counted.as_i64(), Some(indexed));
    assert!(indexed > 25_000, "{indexed}");
    assert!(peak <= RESIDENT_KILOBYTES_MAX, "{peak} kB");
}
