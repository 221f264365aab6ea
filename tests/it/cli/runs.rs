//! Runs: triggering, following, exit codes, logs.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::{FakeServer, Plumb, Reply, ran};

pub(super) const RUN: &str = "0190f3c2-0000-7000-8000-0000000000d1";
const WORKSPACE: &str = "0190f3c2-0000-7000-8000-0000000000b1";

/// A run as the server shows it.
pub(super) fn run(command: &str, status: &str) -> Value {
    let planned = !matches!(status, "pending" | "planning");
    let summary = json!({ "add": 2, "change": 1, "destroy": 0, "outputs": 1 });
    json!({ "id": RUN, "workspace_id": WORKSPACE, "command": command, "status": status, "branch": "main",
            "plan_summary": if planned { summary } else { Value::Null },
            "has_changes": if planned { json!(true) } else { Value::Null },
            "approval_digest": "ab".repeat(32), "error": (status == "failed").then_some("the provider said no") })
}

/// A server where one run of a command goes through these statuses.
pub(super) async fn server_with(command: &str, statuses: &[&str]) -> FakeServer {
    let server = FakeServer::start().await;
    server.on("POST", "/runs", [Reply::status(201, &run(command, "pending"))]);
    server.on(
        "GET",
        &format!("/runs/{RUN}"),
        statuses.iter().map(|status| Reply::json(&run(command, status))),
    );
    server.on("GET", &format!("/runs/{RUN}/steps"), [Reply::json(&json!({ "items": [] }))]);
    let changes = json!([{ "address": "terraform_data.web[\"a\"]", "actions": ["create"] },
                         { "address": "terraform_data.old", "actions": ["delete", "create"] },
                         { "address": "terraform_data.same", "actions": ["no-op"] }]);
    let plan = json!({ "summary": {}, "resource_changes": changes, "text": "Terraform will perform…" });
    server.on("GET", &format!("/runs/{RUN}/plan"), [Reply::json(&plan)]);
    server
}

#[tokio::test]
async fn an_apply_that_waits_for_approval_shows_the_plan_and_exits_with_3() {
    let server = server_with("apply", &["pending", "planning", "awaiting_approval"]).await;
    let plumb = Plumb::signed_in(&server).await;

    let ran = plumb.run(&["run", "apply", WORKSPACE, "--message", "more"]).await;

    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        ran.stdout.starts_with("Plan: 2 to add, 1 to change, 0 to destroy, 1 outputs to change.\n"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("    + terraform_data.web[\"a\"]\n"), "{ran:?}");
    assert!(ran.stdout.contains("  -/+ terraform_data.old\n"), "{ran:?}");
    assert!(!ran.stdout.contains("terraform_data.same"), "{ran:?}");
    assert!(ran.stdout.contains(&format!("plumb approve {RUN}")), "{ran:?}");
}

#[tokio::test]
async fn the_exit_code_says_how_a_run_ended() {
    for (command, status, code) in [
        ("plan", "planned", 0),
        ("apply", "applied", 0),
        ("destroy", "awaiting_approval", 3),
        ("apply", "failed", 1),
        ("apply", "cancelled", 1),
    ] {
        let server = server_with(command, &[status]).await;
        let plumb = Plumb::signed_in(&server).await;

        let ran = plumb.run(&["run", command, WORKSPACE, "--json"]).await;

        assert_eq!(ran.code, code, "{command} {status}: {ran:?}");
        assert_eq!(ran.json()["status"], status, "one document, the run at its end");
        assert_eq!(server.asked("POST", "/runs")[0].body["allow_destroy"], command == "destroy");
    }
}

#[tokio::test]
async fn a_trigger_carries_its_options_and_a_key_of_its_own() {
    let server = server_with("plan", &["planned"]).await;
    let plumb = Plumb::signed_in(&server).await;
    let mut command = plumb.command(&[
        "run",
        "plan",
        WORKSPACE,
        "--no-wait",
        "--branch",
        "feature/x",
        "--var",
        "size=3=3",
        "--secret-var",
        "PIN",
        "--idempotency-key",
        "build-17",
    ]);

    let ran = ran(command.env("PIN", "1234").output().await.expect("plumb ends"));

    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains(RUN) && !ran.stdout.contains("1234"), "{ran:?}");
    let asked = &server.asked("POST", "/runs")[0];
    assert_eq!(asked.header("idempotency-key"), Some("build-17"));
    let variables = json!([{ "key": "size", "value": "3=3", "is_secret": false },
                           { "key": "PIN", "value": "1234", "is_secret": true }]);
    assert_eq!(asked.body["variables"], variables);
    assert_eq!(asked.body["branch"], "feature/x");
    assert!(server.asked("GET", &format!("/runs/{RUN}")).is_empty(), "it did not wait");
}

#[tokio::test]
async fn a_secret_is_never_taken_from_the_command_line() {
    let server = server_with("plan", &["planned"]).await;
    let plumb = Plumb::signed_in(&server).await;

    let ran = plumb.run(&["run", "plan", WORKSPACE, "--secret-var", "PIN=1234"]).await;

    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("export PIN") && !ran.stderr.contains("1234"), "{ran:?}");
    assert!(server.asked("POST", "/runs").is_empty());
}

fn step(status: &str, bytes: usize) -> Value {
    json!({ "items": [{ "position": 1, "phase": "plan", "name": "init", "attempt": 1, "status": status,
                        "log_bytes": bytes, "duration_seconds": 4 }] })
}

fn chunk(offset: usize, text: &str, complete: bool) -> Reply {
    Reply::json(&json!({ "position": 1, "offset": offset, "next_offset": offset + text.len(), "text": text,
                         "complete": complete }))
}

/// One step whose log grows while the run is watched.
async fn server_with_growing_log() -> FakeServer {
    let server = server_with("plan", &["planning", "planning", "planned"]).await;
    let steps = [("running", 6), ("running", 6), ("succeeded", 22)];
    let steps = steps.map(|(status, bytes)| Reply::json(&step(status, bytes)));
    server.on("GET", &format!("/runs/{RUN}/steps"), steps);
    let path = format!("/runs/{RUN}/logs");
    server.on(
        "GET",
        &path,
        [chunk(0, "one\ntw", false), chunk(6, "", false), chunk(6, "o\nthree\u{1b}[2J\n", true)],
    );
    server
}

#[tokio::test]
async fn followed_logs_are_read_by_offset_and_each_byte_once() {
    let server = server_with_growing_log().await;
    let plumb = Plumb::signed_in(&server).await;

    let ran = plumb.run(&["run", "logs", RUN, "--follow"]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "one\ntwo\nthree\u{1b}[2J\n", "a pipe gets the log as it is");
    let asked = server.asked("GET", &format!("/runs/{RUN}/logs"));
    let offsets: Vec<&str> = asked.iter().map(|asked| asked.query.as_str()).collect();
    assert_eq!(offsets, ["position=1&offset=0", "position=1&offset=6", "position=1&offset=6"]);
}

#[tokio::test]
async fn a_followed_run_shows_steps_and_harmless_logs_on_stderr_and_the_answer_on_stdout() {
    let server = server_with_growing_log().await;
    let plumb = Plumb::signed_in(&server).await;

    let ran = plumb.run(&["run", "plan", WORKSPACE]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    let log = "• plan init\n  │ one\n  │ two\n  │ three[2J\n✓ plan init (4 s)\n";
    assert!(ran.stderr.contains(log), "{ran:?}");
    assert!(ran.stdout.starts_with("Plan: ") && !ran.stdout.contains("three"), "{ran:?}");
}

#[tokio::test]
async fn quiet_means_nothing_on_stderr() {
    let server = server_with_growing_log().await;
    let plumb = Plumb::signed_in(&server).await;

    let ran = plumb.run(&["run", "plan", WORKSPACE, "--quiet"]).await;

    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[tokio::test]
async fn the_log_of_one_step_is_printed_byte_for_byte() {
    let server = server_with("plan", &["planned"]).await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/runs/{RUN}/logs");
    server.on("GET", &path, [chunk(0, "first\n", false), chunk(6, "second", true)]);

    let ran = plumb.run(&["run", "logs", RUN, "--step", "1"]).await;

    assert_eq!((ran.code, ran.stdout.as_str()), (0, "first\nsecond"));
}

#[tokio::test]
async fn ctrl_c_stops_watching_and_says_how_to_go_on() {
    let server = server_with("apply", &["planning"]).await;
    let plumb = Plumb::signed_in(&server).await;
    let child = plumb.command(&["run", "apply", WORKSPACE]).spawn().expect("plumb starts");
    let pid = nix::unistd::Pid::from_raw(child.id().expect("running").try_into().expect("a pid"));
    let watching = async {
        while server.asked("GET", &format!("/runs/{RUN}/steps")).len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), watching).await.expect("it watches the run");

    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("sent");
    let ran = ran(child.wait_with_output().await.expect("plumb ends"));

    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.stderr.contains("goes on at the server"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("plumb run logs {RUN} --follow")), "{ran:?}");
    assert!(ran.stderr.contains(&format!("plumb run cancel {RUN}")), "{ran:?}");
    assert!(server.asked("POST", &format!("/runs/{RUN}/cancel")).is_empty());
}

#[tokio::test]
async fn a_waiting_run_says_for_what_it_waits() {
    let server = server_with("apply", &[]).await;
    let plumb = Plumb::signed_in(&server).await;
    let mut waits = run("apply", "pending");
    waits["waiting"] = json!({ "position": 2, "reason": "another run holds the workspace" });
    let path = format!("/runs/{RUN}");
    server.on(
        "GET",
        &path,
        [Reply::json(&waits), Reply::json(&waits), Reply::json(&run("apply", "applied"))],
    );

    let ran = plumb.run(&["run", "apply", WORKSPACE]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    let said = "waiting: another run holds the workspace (2 runs before this one)";
    assert_eq!(ran.stderr.matches(said).count(), 1, "{ran:?}");
}
