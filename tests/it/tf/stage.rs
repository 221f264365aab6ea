//! A person at their machine, and a server that can go away.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::Value;
use tokio::process::Command;

use crate::cli::server::{Ran, ran};
pub(crate) use crate::executor::world::{PATIENCE, eventually};
use crate::plane::TestPlane;
use crate::store::object_stores::{self, Store};
use crate::store::state_client::Backend;
pub use crate::store::terraform_client::APPLY;
use crate::store::terraform_client::is_there;

pub const MODULE: &str = r#"
variable "value" { default = "one" }
resource "terraform_data" "one" { input = var.value }
output "value" { value = terraform_data.one.output }
"#;

/// The person's machine and the server.
pub struct Stage {
    pub backend: Arc<Backend>,
    pub url: String,
    pub directory: tempfile::TempDir,
    pub config: tempfile::TempDir,
    is_away: Arc<AtomicBool>,
    in_vain: Arc<AtomicUsize>,
    _store: Store,
}

#[derive(Clone)]
struct Served {
    backend: Arc<Backend>,
    is_away: Arc<AtomicBool>,
    in_vain: Arc<AtomicUsize>,
}

impl Stage {
    /// `None`, with the reason printed, where there is no terraform.
    pub async fn start(module: &str) -> Option<Self> {
        if !is_there().await {
            return None;
        }
        let store = object_stores::s3s_fs().await;
        let mut plane = TestPlane::start().await;
        plane.deps.blobs = store.blobs.clone();
        let backend = Arc::new(Backend::on(plane).await);
        let is_away = Arc::new(AtomicBool::new(false));
        let in_vain = Arc::new(AtomicUsize::new(0));
        let served = Served {
            backend: Arc::clone(&backend),
            is_away: Arc::clone(&is_away),
            in_vain: Arc::clone(&in_vain),
        };
        let router = Router::new().fallback(serve).with_state(served);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("main.tf"), module).unwrap();
        let config = tempfile::tempdir().unwrap();
        Some(Self { backend, url, directory, config, is_away, in_vain, _store: store })
    }

    /// From now on the server answers nobody, or everybody.
    pub fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Waits until this many requests have come while the server was away.
    pub async fn was_asked_in_vain(&self, times: usize) {
        eventually("it was asked in vain", || self.in_vain.load(Ordering::SeqCst) >= times).await;
    }

    pub fn workspace(&self) -> String {
        self.backend.workspace.to_string()
    }

    /// `plumb` in the person's directory, not started yet.
    pub fn plumb(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb-under-test"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("PLUMB_CONFIG_DIR", self.config.path())
            .env("PLUMB_SERVER", &self.url)
            .env("PLUMB_BUSINESS_UNIT", "default")
            .env("PLUMB_WORKSPACE", self.workspace())
            .env("PLUMB_API_KEY", &self.backend.token)
            .env("TF_IN_AUTOMATION", "1")
            .env("CHECKPOINT_DISABLE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.plumb(arguments).output().await.unwrap())
    }

    /// `plumb tf -- …`
    pub async fn tf(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["tf", "--"], arguments].concat()).await
    }

    pub async fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.tf(arguments).await;
        assert_eq!(ran.code, 0, "{arguments:?}\n{}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// What lies in the person's directory beside what terraform puts there.
    pub fn overrides(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.directory.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("override")).collect()
    }

    /// States that wait for the server.
    pub fn spooled(&self) -> Vec<PathBuf> {
        let Ok(calls) = std::fs::read_dir(self.config.path().join("spool")) else { return Vec::new() };
        let files = calls.flat_map(|call| std::fs::read_dir(call.unwrap().path()).unwrap());
        let files = files.map(|file| file.unwrap().path());
        files.filter(|path| name(path).starts_with("state-") && name(path).ends_with(".json")).collect()
    }

    /// The directories of calls.
    pub fn calls(&self) -> usize {
        std::fs::read_dir(self.config.path().join("spool")).map_or(0, Iterator::count)
    }

    pub async fn lock(&self) -> Value {
        let (status, lock) =
            self.backend.api("GET", &format!("workspaces/{}/state-lock", self.backend.workspace)).await;
        assert_eq!(status, StatusCode::OK, "{lock}");
        lock
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

async fn serve(State(served): State<Served>, request: Request) -> Response {
    if served.is_away.load(Ordering::SeqCst) {
        served.in_vain.fetch_add(1, Ordering::SeqCst);
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    served.backend.plane.send(request).await
}
