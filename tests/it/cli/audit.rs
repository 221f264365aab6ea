//! Audit, locks, state history and tasks.

use serde_json::json;

use super::server::{FakeServer, Plumb, Reply};

const ID: &str = "0190f3c2-0000-7000-8000-0000000000b1";

#[tokio::test]
async fn verify_fails_when_a_chain_is_broken() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let whole = json!({ "ok": true, "chains": 2, "entries": 40, "broken": [] });
    let broken = json!({ "ok": false, "chains": 2, "entries": 40,
                         "broken": [{ "chain_id": ID, "sequence": 7, "reason": "hash" }] });
    server.on("GET", "/audit/verify", [Reply::json(&whole), Reply::json(&broken)]);

    let first = plumb.run(&["audit", "verify"]).await;
    let second = plumb.run(&["audit", "verify"]).await;

    assert_eq!((first.code, second.code), (0, 1));
    assert_eq!(first.stdout, "The audit log is whole: 40 entries in 2 chains.\n");
    assert!(second.stdout.contains(ID), "{second:?}");
}

#[tokio::test]
async fn a_checkpoint_that_does_not_hold_is_named() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let faults =
        json!([{ "sequence": 3, "reason": "the checkpoint is forged: its signature does not hold" }]);
    let verdict = json!({ "ok": false, "chains": 1, "entries": 4, "broken": [],
                          "checkpoint": { "sequence": 3, "ok": false, "faults": faults } });
    server.on("GET", "/audit/verify", [Reply::json(&verdict)]);
    let ran = plumb.run(&["audit", "verify"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("checkpoint") && ran.stdout.contains("forged"), "{ran:?}");
}

#[tokio::test]
async fn a_rekey_is_followed_until_it_has_ended() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let job = |status: &str, resealed: i64, unreadable: i64| {
        let column = json!({ "table": "runs", "column": "variables_sealed", "resealed": resealed, "remaining": unreadable,
                             "unreadable": unreadable, "unreadable_rows": if unreadable > 0 { vec![ID] } else { vec![] } });
        json!({ "id": ID, "key_id": "0a1b2c3d", "status": status, "note": null, "columns": [column] })
    };
    server.on("POST", "/admin/rekey", [Reply::status(202, &job("running", 0, 0))]);
    server.on("GET", "/admin/rekey", [Reply::json(&job("running", 5, 0)), Reply::json(&job("done", 9, 0))]);

    let begun = plumb.run(&["admin", "rekey"]).await;
    assert_eq!((begun.code, server.asked("GET", "/admin/rekey").len()), (0, 0), "{begun:?}");
    let followed = plumb.run(&["admin", "rekey", "--follow"]).await;
    assert!(
        followed.code == 0 && followed.stdout.contains("done") && followed.stdout.contains('9'),
        "{followed:?}"
    );
    assert!(
        server.asked("POST", "/admin/rekey").iter().all(|asked| asked.header("idempotency-key").is_some())
    );

    server.on("GET", "/admin/rekey", [Reply::json(&job("failed", 8, 1))]);
    let asked = server.asked("POST", "/admin/rekey").len();
    let failed = plumb.run(&["admin", "rekey", "--status"]).await;
    assert!(failed.code == 1 && failed.stdout.contains(ID), "{failed:?}");
    assert_eq!(server.asked("POST", "/admin/rekey").len(), asked, "looking starts nothing");
}

#[tokio::test]
async fn a_lock_names_its_holder_and_is_broken_only_by_force() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/workspaces/{ID}/state-lock");
    let info = json!({ "Who": "ada@laptop", "Operation": "OperationTypeApply" });
    server.on(
        "GET",
        &path,
        [Reply::json(&json!({ "held": true, "lock_id": "l1", "generation": 3, "info": info }))],
    );
    server.on("DELETE", &path, [Reply::empty(204)]);

    let shown = plumb.run(&["lock", "show", ID]).await;
    let asked = plumb.run(&["lock", "release", ID]).await;
    let forced = plumb.run(&["lock", "release", ID, "--force"]).await;

    assert!(shown.stdout.contains("ada@laptop"), "{shown:?}");
    assert_eq!((shown.code, asked.code, forced.code), (0, 2, 0), "{asked:?} {forced:?}");
    assert_eq!(server.asked("DELETE", &path).len(), 1);
}

#[tokio::test]
async fn a_diff_of_two_state_versions_is_by_address() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let diff = json!({ "from": ID, "to": ID, "added": ["a.new"], "changed": ["a.b"], "removed": ["a.old"],
                       "outputs_changed": ["url"] });
    server.on("GET", &format!("/state-versions/{ID}/diff"), [Reply::json(&diff)]);

    let ran = plumb.run(&["state", "diff", ID, "--against", ID]).await;

    assert_eq!((ran.code, ran.stdout.as_str()), (0, "+ a.new\n~ a.b\n- a.old\n~ output.url\n"));
    assert_eq!(server.asked("GET", &format!("/state-versions/{ID}/diff"))[0].query, format!("against={ID}"));
}

#[tokio::test]
async fn a_dead_task_shows_its_error() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let task = json!({ "id": ID, "kind": "run_plan", "status": "dead", "attempts": 3, "attempts_max": 3,
                       "last_error": "no room" });
    server.on("GET", "/tasks", [Reply::json(&json!({ "items": [task] }))]);

    let ran = plumb.run(&["tasks", "list", "--status", "dead"]).await;

    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("3/3") && ran.stdout.contains("no room"), "{ran:?}");
    assert_eq!(server.asked("GET", "/tasks")[0].query, "status=dead");
}

#[tokio::test]
async fn what_a_lost_apply_left_is_listed_with_commands_to_copy() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let made = json!({ "address": "x_y.a", "resource_id": "i-1", "import_command": "terraform import 'x_y.a' 'i-1'" });
    let unknown = json!({ "address": "x_y.b", "resource_id": null, "import_command": null });
    let found = json!({ "items": [made, unknown], "truncated": false, "is_state_readable": true });
    let nothing = json!({ "items": [], "truncated": false, "is_state_readable": true });
    server.on(
        "GET",
        &format!("/runs/{ID}/unrecorded-resources"),
        [Reply::json(&found), Reply::json(&nothing)],
    );

    let ran = plumb.run(&["run", "unrecorded", ID]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.ends_with("To record those that exist:\nterraform import 'x_y.a' 'i-1'\n"), "{ran:?}");
    assert!(ran.stdout.contains("x_y.b") && ran.stdout.contains("look for it"), "{ran:?}");

    let ran = plumb.run(&["run", "unrecorded", ID]).await;
    assert!(ran.stderr.contains("The state has everything"), "{ran:?}");
}

#[tokio::test]
async fn completions_need_no_server() {
    let plumb = Plumb::new("http://127.0.0.1:9");
    for shell in ["bash", "zsh", "fish"] {
        let ran = plumb.run(&["completions", shell]).await;
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("awaiting") || ran.stdout.contains("approve"), "{shell}");
    }
}
