//! Real repositories, served by Git's own `http-backend` behind a login.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use base64::Engine as _;
use http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use tokio::io::AsyncWriteExt as _;

/// A repository with one commit on `main`, and one on `feature/a`.
pub(super) struct Repository {
    directory: tempfile::TempDir,
}

fn git(directory: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@plumbline.test", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Repository {
    /// Commits the files and serves them from `root()`/infra.git.
    pub(super) fn with(files: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let work = directory.path().join("work");
        std::fs::create_dir(&work).expect("a directory");
        git(&work, &["init", "--quiet"]);
        for file in files {
            let path = work.join(file);
            std::fs::create_dir_all(path.parent().expect("it is below the work tree")).expect("a directory");
            std::fs::write(path, "# nothing\n").expect("a file");
        }
        git(&work, &["add", "."]);
        git(&work, &["commit", "--quiet", "-m", "Begin"]);
        git(&work, &["branch", "feature/a"]);
        std::fs::create_dir(directory.path().join("served")).expect("a directory");
        git(directory.path(), &["clone", "--quiet", "--bare", "work", "served/infra.git"]);
        let served = directory.path().join("served/infra.git");
        git(&served, &["config", "uploadpack.allowFilter", "true"]);
        Self { directory }
    }

    /// The directory that is served.
    pub(super) fn root(&self) -> PathBuf {
        self.directory.path().join("served")
    }
}

/// A server that wants a login for every repository.
pub(super) struct GitServer {
    /// The address of the repository.
    pub(super) url: String,
    /// Logins that came, as `user:password`.
    pub(super) logins: Arc<Mutex<BTreeSet<String>>>,
    /// Requests that came with a login.
    pub(super) tries: Arc<AtomicUsize>,
    /// Command lines of all processes while it answered.
    pub(super) command_lines: Arc<Mutex<String>>,
    /// Where `/moved/…` has gone; empty is here.
    pub(super) moved_to: Arc<Mutex<String>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Clone)]
struct Served {
    root: PathBuf,
    login: Option<&'static str>,
    logins: Arc<Mutex<BTreeSet<String>>>,
    tries: Arc<AtomicUsize>,
    command_lines: Arc<Mutex<String>>,
    moved_to: Arc<Mutex<String>>,
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GitServer {
    /// Serves the repository; `login` is `user:password`.
    pub(super) async fn serve(repository: &Repository, login: Option<&'static str>) -> Self {
        Self::serve_below(repository.root(), login).await
    }

    /// Serves what lies below a directory; the address is that of `infra.git`.
    pub(super) async fn serve_below(root: PathBuf, login: Option<&'static str>) -> Self {
        let served = Served {
            root,
            login,
            logins: Arc::default(),
            tries: Arc::default(),
            command_lines: Arc::default(),
            moved_to: Arc::default(),
        };
        let (logins, command_lines) = (Arc::clone(&served.logins), Arc::clone(&served.command_lines));
        let (tries, moved_to) = (Arc::clone(&served.tries), Arc::clone(&served.moved_to));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/infra.git", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(answer).with_state(served);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { url, logins, tries, command_lines, moved_to, task }
    }
}

async fn answer(
    State(served): State<Served>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    served.command_lines.lock().expect("unpoisoned").push_str(&all_command_lines());
    if headers.contains_key(header::AUTHORIZATION) {
        served.tries.fetch_add(1, Ordering::SeqCst);
    }
    if uri.path().starts_with("/moved/") {
        let elsewhere = served.moved_to.lock().expect("unpoisoned").clone();
        let to = elsewhere + &uri.to_string().replacen("/moved", "", 1);
        return Response::builder()
            .status(301)
            .header(header::LOCATION, to)
            .body(Body::empty())
            .expect("the test is set up right");
    }
    if let Some(login) = served.login {
        let came = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let came = came.and_then(|value| value.strip_prefix("Basic ")).map(|text| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
            String::from_utf8(bytes).expect("text")
        });
        let right = came.as_deref() == Some(login);
        served.logins.lock().expect("unpoisoned").extend(came);
        if !right {
            let refused = Response::builder().status(StatusCode::UNAUTHORIZED);
            return refused
                .header(header::WWW_AUTHENTICATE, "Basic realm=git")
                .body(Body::empty())
                .expect("the test is set up right");
        }
    }
    backend(&served.root, &method, &uri, &headers, &body).await
}

async fn backend(
    root: &Path,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> Response<Body> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("REQUEST_METHOD", method.as_str())
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", text("content-type"))
        .env("HTTP_CONTENT_ENCODING", text("content-encoding"))
        .env("HTTP_GIT_PROTOCOL", text("git-protocol"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git http-backend runs");
    child.stdin.take().expect("piped").write_all(body).await.expect("it reads");
    let output = child.wait_with_output().await.expect("it ends").stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("headers");
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").expect("a header");
        response = match name {
            "Status" => response.status(&value[..3]),
            _ => response.header(name, value),
        };
    }
    response.body(Body::from(output[end + 4..].to_vec())).expect("a response")
}

/// What `ps` would show.
fn all_command_lines() -> String {
    let mut lines = String::new();
    for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
        if let Ok(line) = std::fs::read(process.path().join("cmdline")) {
            lines.push_str(&String::from_utf8_lossy(&line));
            lines.push('\n');
        }
    }
    lines
}
