//! Starting, stopping, being killed, starting again.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use nix::sys::signal::Signal;
use plumbline_core::adapters::LocalLauncher;
use plumbline_emulator::{AlreadyRunning, Emulator, Hosting, Options, PortBusy};
use serde_json::json;

use super::program::{Up, all_gone, command, descendants, eventually, naming, programs, scratch};
use super::session::{Session, client, demo_repository};

#[tokio::test]
async fn an_emulator_answers_and_stops_within_ten_seconds_without_leaving_a_process() {
    let scratch = scratch();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut up = Up::start(&scratch.path().join("home"), &[]).await;
        let ready =
            client().get(format!("{}/api/v1/health/ready", up.facts().url)).send().await.expect("an answer");
        assert_eq!(ready.status(), 200);
        let children = descendants(up.pid());
        assert!(children.len() > 1, "Postgres and its processes: {children:?}");

        let asked = Instant::now();
        up.signal(signal);
        assert_eq!(up.ended().await, Some(0), "{}", up.log());
        assert!(asked.elapsed() < Duration::from_secs(10));
        assert!(all_gone(&children), "{:?} of {children:?}", descendants(1));
    }
}

#[tokio::test]
async fn an_emulator_that_was_killed_leaves_no_process_and_starts_again() {
    let scratch = scratch();
    let home = scratch.path().join("home");
    let mut up = Up::start(&home, &[]).await;
    let children = descendants(up.pid());
    up.signal(Signal::SIGKILL);
    up.ended().await;
    eventually("its children are gone", || all_gone(&children)).await;

    let again = Up::start(&home, &[]).await;
    Session::sign_in(&again.facts()).await;
}

#[tokio::test]
async fn a_second_start_on_a_directory_is_refused_and_names_the_process() {
    let scratch = scratch();
    let emulator = Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts");
    let error =
        Emulator::start(Options::scratch(scratch.path(), programs())).await.err().expect("it is refused");
    let refused = error.downcast_ref::<AlreadyRunning>().expect("the reason");
    assert_eq!(refused.pid, std::process::id().to_string());

    emulator.stop().await.expect("it stops");
    let emulator =
        Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it is free again");
    emulator.stop().await.expect("it stops");
}

#[tokio::test]
async fn a_busy_port_is_an_error_that_names_the_flag() {
    let busy = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = busy.local_addr().expect("bound").port();
    let scratch = scratch();
    let with = |change: fn(&mut Options, u16)| {
        let mut options = Options::scratch(scratch.path(), programs());
        change(&mut options, port);
        options
    };
    for (options, flag) in [
        (with(|options, port| options.port = port), "--port"),
        (with(|options, port| options.store_port = port), "--store-port"),
        (with(|options, port| options.postgres_port = port), "--pg-port"),
    ] {
        let error = Emulator::start(options).await.err().expect("it is refused");
        assert_eq!(error.downcast_ref::<PortBusy>().expect("the reason").flag, flag);
        assert!(error.to_string().contains(flag), "{error}");
    }
}

#[tokio::test]
async fn a_restart_finds_what_the_first_run_kept() {
    let scratch = scratch();
    let first = Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts");
    let password = first.new_password.clone().expect("the admin is new");
    assert_eq!(std::fs::read_to_string(first.password_file()).expect("kept").trim(), password);
    first.deps.blobs.put("kept/object", Bytes::from_static(b"bytes"), "text/plain").await.expect("stored");
    first.stop().await.expect("it stops");

    let second =
        Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts again");
    assert_eq!(second.new_password, None, "the admin is no new one");
    Session::sign_in(&second.facts).await;
    assert_eq!(second.deps.blobs.get("kept/object").await.expect("kept"), Bytes::from_static(b"bytes"));
    second.stop().await.expect("it stops");
}

#[tokio::test]
async fn a_start_without_a_root_key_that_still_seals_something_is_refused_until_it_is_given_up() {
    let scratch = scratch();
    let start = async || Emulator::start(Options::scratch(scratch.path(), programs())).await;
    let first = start().await.expect("it starts");
    Session::sign_in(&first.facts).await;
    let name = first.deps.keys.key_id().to_owned();
    first.stop().await.expect("it stops");

    let (root, old) = (scratch.path().join("root-key"), scratch.path().join("old"));
    std::fs::rename(&root, &old).expect("moved");
    let refused = start().await.err().expect("the secret of access tokens opens no more").to_string();
    assert!(refused.contains(&format!("jwt_secrets.sealed under {name}")), "{refused}");

    std::fs::write(scratch.path().join("root-key.lost"), format!("{name}\n")).expect("written");
    let given_up = start().await.expect("it starts without");
    Session::sign_in(&given_up.facts).await;
    given_up.stop().await.expect("it stops");
}

#[tokio::test]
async fn secrets_can_be_read_by_their_owner_alone() {
    let scratch = scratch();
    let emulator = Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts");
    let mode = |name: &str| {
        let meta =
            std::fs::metadata(scratch.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        meta.permissions().mode() & 0o777
    };
    for secret in
        ["admin-password", "root-key", "store-key-id", "store-secret", "postgres-password", "emulator.json"]
    {
        assert_eq!(mode(secret), 0o600, "{secret}");
    }
    for private in ["objects", "executors", "postgres"] {
        assert_eq!(mode(private), 0o700, "{private}");
    }
    emulator.stop().await.expect("it stops");
}

#[tokio::test]
async fn a_start_that_fails_leaves_nothing_behind() {
    let scratch = scratch();
    let nowhere = Options::scratch(scratch.path(), scratch.path());
    let error = Emulator::start(nowhere).await.err().expect("executor-task is missing");
    assert!(error.to_string().contains("executor-task"), "{error}");
    let left = naming(scratch.path());
    assert!(all_gone(&left), "{left:?}");

    let emulator =
        Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("the directory is free");
    emulator.stop().await.expect("it stops");
}

#[tokio::test]
async fn status_and_stop_find_what_runs_on_a_directory() {
    let scratch = scratch();
    let home = scratch.path().join("home");
    let text = home.to_str().expect("UTF-8").to_owned();
    let run = async |verb: &str| {
        let mut order = command(&[verb, "--dir", &text]);
        tokio::task::spawn_blocking(move || order.output().expect("it runs")).await.expect("it ends")
    };
    assert_eq!(run("status").await.status.code(), Some(1), "nothing runs yet");

    let mut up = Up::start(&home, &[]).await;
    let status = run("status").await;
    assert!(status.status.success());
    assert!(String::from_utf8_lossy(&status.stdout).contains(&up.facts().url));

    // The child is ours to wait for, so `stop` sees the lock go and not the process.
    assert!(run("stop").await.status.success());
    assert_eq!(up.ended().await, Some(0));
    assert_eq!(run("status").await.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_the_executors_whoever_launched_them() {
    for hosting in [Hosting::Process, Hosting::Lambda] {
        let scratch = scratch();
        let home = scratch.path().join("home");
        let options = Options { hosting, ..Options::scratch(&home, programs()) };
        let emulator = Emulator::start(options).await.expect("it starts");
        let repository = demo_repository(scratch.path()).await;
        let session = Session::sign_in(&emulator.facts).await;
        let workspaces = session.import(&repository.url).await;
        let run = session.post("runs", json!({ "workspace_id": workspaces[0], "command": "plan" })).await;
        session.run(run["id"].as_str().expect("an id"), "planning").await;

        let executors = LocalLauncher::new(programs().join("executor-task"), home.join("executors"), vec![]);
        assert_eq!(executors.running().len(), 1, "{hosting:?}");
        emulator.stop().await.expect("it stops");
        eventually("the executor is gone", || executors.running().is_empty()).await;
    }
}

#[tokio::test]
async fn a_second_start_uses_the_cluster_that_exists() {
    let scratch = scratch();
    let made_at = || {
        let meta = std::fs::metadata(scratch.path().join("postgres/data/PG_VERSION")).expect("a cluster");
        (std::os::unix::fs::MetadataExt::ino(&meta), meta.modified().expect("a time"))
    };
    let first = Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts");
    let made = made_at();
    first.stop().await.expect("it stops");
    let second =
        Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts again");
    // Making one is most of a first start; how long a start takes is for `make bench`.
    assert_eq!(made_at(), made);
    second.stop().await.expect("it stops");
}
