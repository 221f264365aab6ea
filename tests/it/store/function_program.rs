//! A function's own program behind a runtime API that invokes it once.

use std::process::{Child, Command, Stdio};

use plumbline_runtime::Function;

use crate::faults::worker_program::runtime_api;
use crate::plane::TestPlane;

/// Killed when dropped.
pub struct FunctionProgram {
    child: Child,
    _directory: tempfile::TempDir,
}

impl FunctionProgram {
    /// Starts the reconciler: one tick.
    pub async fn reconciler(plane: &TestPlane) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, runtime_api()).await.unwrap() });
        let directory = tempfile::tempdir().unwrap();
        let keys = Function::Reconciler.keys(&plane.deps.keys).export();
        // Objects in a directory need this key, too.
        let blobs = plane.deps.keys.only(&[plumbline_core::secrets::Domain::Blobs]).export();
        let child = Command::new(plumbline_tests::bin("plumbline-reconciler"))
            .envs(keys)
            .envs(blobs)
            .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "reconciler")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "reconciler")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "reconciler")
            .env("DATABASE_URL", &plane.database_url)
            .env("PLUMBLINE_PUBLIC_URL", "http://127.0.0.1:9")
            .env("PLUMBLINE_BLOBS", format!("file://{}", directory.path().display()))
            .env("PLUMBLINE_OUTBOUND_FUNCTION", "outbound")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "none")
            .env("AWS_SECRET_ACCESS_KEY", "none")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("PLUMBLINE_LAUNCHER", "local")
            .env("PLUMBLINE_EXECUTOR_PROGRAM", plumbline_tests::bin("executor-task"))
            .env("PLUMBLINE_EXECUTOR_DIRECTORY", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, _directory: directory }
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for FunctionProgram {
    fn drop(&mut self) {
        // After `kill` there is nobody left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
