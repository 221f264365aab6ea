//! The worker's own program behind a runtime API that gives it one wake-up.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use http::StatusCode;

use super::stage::Stage;

/// Killed when dropped.
pub struct WorkerProgram {
    child: Child,
}

impl WorkerProgram {
    /// Starts it. It claims and launches what is due, as after a message from the queue.
    pub async fn start(stage: &Stage) -> Self {
        let deps = &stage.plane.deps;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, runtime_api()).await.unwrap() });
        let repositories = deps.local_repos_root.as_ref().unwrap().to_string();
        let child = Command::new(plumbline_tests::bin("plumbline-worker"))
            .envs(deps.keys.export())
            .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "worker")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "worker")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "worker")
            .env("DATABASE_URL", &stage.plane.database_url)
            .env("PLUMBLINE_PUBLIC_URL", &stage.url)
            .env("PLUMBLINE_BLOBS", format!("file://{}", stage.objects().display()))
            // Never called: runs are no short tasks.
            .env("PLUMBLINE_OUTBOUND_FUNCTION", "outbound")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "none")
            .env("AWS_SECRET_ACCESS_KEY", "none")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("PLUMBLINE_LAUNCHER", "local")
            .env("PLUMBLINE_EXECUTOR_PROGRAM", plumbline_tests::bin("executor-task"))
            .env("PLUMBLINE_EXECUTOR_DIRECTORY", stage.executors())
            .env("PLUMBLINE_LOCAL_REPOS_ROOT", repositories)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child }
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for WorkerProgram {
    fn drop(&mut self) {
        // After `kill` there is nobody left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives one invocation and then none.
pub fn runtime_api() -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/{answer}", post(|| async { StatusCode::ACCEPTED }))
        .with_state(Arc::new(AtomicBool::new(false)))
}

async fn next(State(given): State<Arc<AtomicBool>>) -> axum::response::Response {
    if given.swap(true, Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    let deadline = chrono::Utc::now().timestamp_millis() + 120_000;
    let headers = [
        ("lambda-runtime-aws-request-id", "one".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:worker".to_owned(),
        ),
    ];
    (headers, "{}").into_response()
}
