//! Cloning: branches, commits, credentials, and what must not be reachable.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use plumbline_core::git_credentials::GitSecret;
use plumbline_core::protocol::{FailureKind, GitCredential};
use tokio::io::AsyncWriteExt as _;

use super::world::{World, git, open_directory};

const STACK: (&str, &str) = ("main.tf", "resource \"terraform_data\" \"one\" {}\n");

async fn error_of(world: &World) -> String {
    let finished = world.run().await;
    let told = finished.fake.told();
    told.failed.as_ref().map_or_else(|| panic!("it worked"), |failed| failed.error.clone())
}

#[tokio::test]
async fn strange_branch_names_are_names_and_not_options() {
    let mut world = World::with(&[STACK]);
    for branch in ["feature/with/slashes", "-leading-dash", "--upload-pack=x", "ünïcode"] {
        git(&world.repo(), &["update-ref", &format!("refs/heads/{branch}"), "HEAD"]);
        world.bundle.source.branch = branch.into();
        let planned = world.run().await;
        assert!(planned.fake.told().plan_done.is_some(), "{branch}: {}", planned.fake.all_logs());
    }
    for branch in ["a..b", "a b", "../x", ""] {
        world.bundle.source.branch = branch.into();
        assert!(error_of(&world).await.contains("not a valid branch name"), "{branch}");
    }
}

#[tokio::test]
async fn a_branch_that_is_not_there_may_come_and_says_so() {
    let mut world = World::with(&[STACK]);
    world.bundle.source.branch = "absent".into();
    let finished = world.run().await;
    assert_eq!(finished.fake.told().failed.as_ref().map(|failed| failed.kind), Some(FailureKind::Transient));
    assert!(finished.fake.log_of("Git Clone").contains("absent"));
}

#[tokio::test]
async fn working_directories_stay_in_the_repository() {
    let mut world = World::with(&[STACK, ("stacks/a/main.tf", STACK.1)]);
    std::os::unix::fs::symlink("/etc", world.repo().join("escape")).unwrap();
    world.commit(&[]);
    world.bundle.source.working_dir = "stacks/a".into();
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
    for bad in ["../..", "/etc", "escape", "stacks/../../x", ".git"] {
        world.bundle.source.working_dir = bad.into();
        assert!(error_of(&world).await.contains("working directory"), "{bad}");
    }
}

#[tokio::test]
async fn only_allowed_places_are_cloned() {
    let mut world = World::with(&[STACK]);
    let outside = World::with(&[STACK]);
    for bad in [outside.repo().display().to_string(), "ext::sh -c id".into(), "git://127.0.0.1/x".into()] {
        world.bundle.source.repo_url = bad.clone();
        assert!(error_of(&world).await.contains("repository"), "{bad}");
    }
}

/// Git's own smart HTTP server behind a password.
#[derive(Clone)]
pub(super) struct Forge {
    root: std::path::PathBuf,
    /// Who gets in.
    wanted: &'static str,
    pub(super) host: String,
    pub(super) asked: Arc<Mutex<Vec<String>>>,
    /// Paths that were asked for with a login.
    pub(super) tried: Arc<Mutex<Vec<String>>>,
    /// Where `/moved/…` has gone.
    pub(super) moved_to: Arc<Mutex<String>>,
}

/// Who gets into a [`Forge`], unless a test says otherwise.
pub(super) const LOGIN: &str = "bot:s3cret-s3cret";

/// The credential of a repository.
pub(super) fn token(host: &str, password: &str) -> GitCredential {
    GitCredential {
        host: host.into(),
        path_prefix: String::new(),
        secret: GitSecret::Token { username: "bot".into(), token: password.into() },
    }
}

async fn serve(State(forge): State<Forge>, headers: HeaderMap, request: Request) -> Response {
    let uri = request.uri().clone();
    forge.asked.lock().unwrap().push(uri.to_string());
    if headers.contains_key(header::AUTHORIZATION) {
        forge.tried.lock().unwrap().push(uri.path().to_owned());
    }
    if let Some(rest) = uri.path().strip_prefix("/moved") {
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let to = format!("{}{rest}{query}", forge.moved_to.lock().unwrap());
        return (StatusCode::FOUND, [(header::LOCATION, to)]).into_response();
    }
    let wanted = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(forge.wanted));
    if headers.get(header::AUTHORIZATION).is_none_or(|given| given.as_bytes() != wanted.as_bytes()) {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")])
            .into_response();
    }
    let text =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let method = request.method().to_string();
    let body: Bytes = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let mut child = tokio::process::Command::new("git")
        .args(["-c", "safe.directory=*", "http-backend"])
        .env("GIT_PROJECT_ROOT", &forge.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", method)
        .env("CONTENT_TYPE", text("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", text("content-encoding"))
        .env("GIT_PROTOCOL", text("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&body).await.unwrap();
    let output = child.wait_with_output().await.unwrap().stdout;
    let split = output.windows(4).position(|window| window == b"\r\n\r\n").expect("CGI headers");
    let head = String::from_utf8_lossy(&output[..split]).into_owned();
    let kind =
        head.lines().find_map(|line| line.strip_prefix("Content-Type: ")).unwrap_or("text/plain").to_owned();
    ([(header::CONTENT_TYPE, kind)], Body::from(output[split + 4..].to_vec())).into_response()
}

impl Forge {
    /// Serves the repository of this world, and sends the world there.
    pub(super) async fn serve(world: &mut World) -> Self {
        Self::serve_to(world, LOGIN).await
    }

    /// The same for somebody else.
    pub(super) async fn serve_to(world: &mut World, wanted: &'static str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        world.bundle.source.repo_url = format!("http://{host}/stack/.git");
        let forge = Self {
            root: world.repo().parent().unwrap().to_owned(),
            wanted,
            host,
            asked: Arc::default(),
            tried: Arc::default(),
            moved_to: Arc::default(),
        };
        let router = Router::new().fallback(serve).with_state(forge.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        forge
    }
}

/// A `git` that notes its own environment and, in git's own words, the arguments of every program that it starts.
fn watch_git(world: &mut World) -> tempfile::TempDir {
    let notes = open_directory();
    let path = std::env::var("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|part| part.join("git")).find(|git| git.is_file()).unwrap();
    let script = format!(
        "#!/bin/sh\nenv >> {0}/environment\nGIT_TRACE2_REDACT=0 GIT_TRACE2_EVENT={0}/arguments exec {1} \"$@\"\n",
        notes.path().display(),
        git.display()
    );
    let watched = notes.path().join("git");
    std::fs::write(&watched, script).unwrap();
    std::fs::set_permissions(&watched, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.environment.push(("PATH".into(), format!("{}:{path}", notes.path().display())));
    notes
}

#[tokio::test]
async fn a_credential_reaches_git_and_nothing_else() {
    let mut world = World::with(&[STACK]);
    let forge = Forge::serve(&mut world).await;
    let notes = watch_git(&mut world);
    world.bundle.source.credentials = vec![token(&forge.host, "s3cret-s3cret")];
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
    assert!(!planned.fake.all_logs().contains("s3cret") && !world.executor_log().contains("s3cret"));
    assert!(forge.asked.lock().unwrap().iter().all(|url| !url.contains("s3cret")));

    let noted = |name: &str| std::fs::read_to_string(notes.path().join(name)).unwrap();
    let (arguments, environment) = (noted("arguments"), noted("environment"));
    for seen in ["\"fetch\"", "remote-http", "executor-task", &world.bundle.source.repo_url] {
        assert!(arguments.contains(seen), "{seen} is not in {arguments}");
    }
    assert!(environment.contains("GIT_ASKPASS=") && !environment.contains("s3cret"), "{environment}");
    assert!(!arguments.contains("s3cret"), "{arguments}");
}

#[tokio::test]
async fn a_repository_that_asks_for_a_login_fails_at_once_and_for_good_instead_of_waiting() {
    let mut world = World::with(&[STACK]);
    let forge = Forge::serve(&mut world).await;
    let wrong = token(&forge.host, "guessed");
    for (credential, says) in [
        (None, "the repository asks for a login, and this run has none"),
        (Some(wrong), "the repository refused the login of this run"),
    ] {
        for commit in [None, Some("c0ffee".repeat(7)[..40].to_owned())] {
            world.bundle.source.credentials = credential.clone().into_iter().collect();
            world.bundle.source.commit = commit;
            forge.asked.lock().unwrap().clear();
            let finished = world.run().await;
            let failed = finished.fake.told().failed.clone().expect("a report");
            // A prompt would have lasted until the limit of the attempt, and ended as `TimedOut`.
            assert_eq!((failed.kind, failed.error.as_str()), (FailureKind::Permanent, says));
            assert!(finished.fake.log_of("Git Clone").contains("fatal: "), "git's own words are in the log");
            let asked = forge.asked.lock().unwrap().len();
            assert!(asked <= 3, "it went away after a refusal: {asked}");
            let tried = std::mem::take(&mut *forge.tried.lock().unwrap()).len();
            assert_eq!(tried, usize::from(credential.is_some()), "a wrong password is tried once");
        }
    }
}
