//! The state backend: the protocol, the lock, versions, quarantine.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use http::{Request, StatusCode};
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::protocol::RunPhase;
use plumbline_core::tfstates::service::{self, InlineWrite, StateActor};
use plumbline_core::tfstates::{LockInfo, StateError};
use serde_json::{Value, json};

use super::state_client::{Backend, lock_info, md5_of, state};
use crate::plane::slug;

fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or(Value::Null)
}

#[tokio::test]
async fn a_state_is_absent_until_written_and_then_read_back_as_it_came() {
    let backend = Backend::start().await;
    assert_eq!(backend.read().await.0, StatusCode::NO_CONTENT);
    let body = state(1, "l", "a");
    assert_eq!(backend.write(None, &body).await.0, StatusCode::OK);
    let (status, headers, read) = backend.read().await;
    assert_eq!((status, read), (StatusCode::OK, body.clone().into()));
    assert_eq!(headers["content-md5"].to_str().unwrap(), md5_of(body.as_bytes()));
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(backend.audited().await, ["state.write", "state.read"]);
}

#[tokio::test]
async fn a_large_enough_state_is_compressed_for_clients_that_ask() {
    use std::io::Read as _;
    let backend = Backend::start().await;
    let body = state(1, "l", &"x".repeat(20_000));
    backend.write(None, &body).await;
    let request = |coding: &str| {
        Request::get(backend.path())
            .header("authorization", format!("Bearer {}", backend.token))
            .header("accept-encoding", coding)
            .body(Body::empty())
            .unwrap()
    };
    let (_, headers, packed) = backend.raw(request("deflate, gzip;q=0.5")).await;
    assert_eq!(headers["content-encoding"], "gzip");
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(packed.as_ref()).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, body);
    let (_, headers, plain) = backend.raw(request("gzip;q=0")).await;
    assert!(headers.get("content-encoding").is_none());
    assert_eq!(plain, body);
}

#[tokio::test]
async fn repeated_lock_write_and_unlock_of_one_id_succeed() {
    let backend = Backend::start().await;
    for _ in 0..3 {
        assert_eq!(backend.lock("l-1").await.0, StatusCode::OK);
    }
    let body = state(1, "l", "a");
    for _ in 0..3 {
        assert_eq!(backend.write(Some("l-1"), &body).await.0, StatusCode::OK);
    }
    for _ in 0..3 {
        assert_eq!(backend.unlock("l-1").await.0, StatusCode::OK);
    }
    // The write's answer may be lost even after the lock was released.
    assert_eq!(backend.write(Some("l-1"), &body).await.0, StatusCode::OK);
    assert_eq!(backend.versions().await.len(), 1);
    assert_eq!(backend.audited().await, ["state.lock", "state.write", "state.unlock"]);
}

#[tokio::test]
async fn the_twins_of_lock_and_unlock_do_the_same() {
    let backend = Backend::start().await;
    let path = backend.path() + "/lock";
    let call = async |method: &str| backend.send_as(&backend.token, method, &path, lock_info("l-1")).await.0;
    assert_eq!(call("POST").await, StatusCode::OK);
    assert_eq!(backend.lock("l-2").await.0, StatusCode::LOCKED);
    assert_eq!(call("DELETE").await, StatusCode::OK);
    assert_eq!(backend.lock("l-2").await.0, StatusCode::OK);
}

#[tokio::test]
async fn of_32_concurrent_locks_one_wins_and_the_others_see_its_holder() {
    let backend = Arc::new(Backend::start().await);
    let tries: Vec<_> = (0..32)
        .map(|number| {
            let backend = Arc::clone(&backend);
            tokio::spawn(async move { (number, backend.lock(&format!("l-{number}")).await) })
        })
        .collect();
    let (mut winners, mut seen) = (Vec::new(), BTreeSet::new());
    for attempt in tries {
        let (number, (status, _, body)) = attempt.await.unwrap();
        match status {
            StatusCode::OK => winners.push(format!("l-{number}")),
            StatusCode::LOCKED => drop(seen.insert(json_of(&body)["ID"].as_str().unwrap().to_owned())),
            other => panic!("{other}: {body:?}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), winners);
}

#[tokio::test]
async fn first_locks_of_a_workspace_at_once_never_collide_in_the_database() {
    let backend = Backend::start().await;
    for round in 0..40 {
        let ids: Vec<String> = (0..8).map(|number| format!("l-{round}-{number}")).collect();
        let answers = futures::future::join_all(ids.iter().map(|id| backend.lock(id))).await;
        let won = answers.iter().filter(|(status, ..)| *status == StatusCode::OK).count();
        let held = answers.iter().filter(|(status, ..)| *status == StatusCode::LOCKED).count();
        assert_eq!((won, held), (1, 7), "{:?}", answers.iter().map(|answer| answer.0).collect::<Vec<_>>());
        // As if nobody had ever asked for this workspace's state: the next round makes the row again.
        let conn = backend.plane.db().conn().await.unwrap();
        conn.execute("DELETE FROM tfstates", &[]).await.unwrap();
    }
}

#[tokio::test]
async fn a_held_lock_is_answered_with_the_holders_info_and_nothing_else() {
    let backend = Backend::start().await;
    backend.lock("l-1").await;
    let (status, headers, body) = backend.lock("l-2").await;
    assert_eq!((status, body), (StatusCode::LOCKED, lock_info("l-1").into()));
    assert_eq!(headers["content-type"], "application/json");
    // A write that names no lock learns the same.
    let (status, _, body) = backend.write(None, &state(1, "l", "a")).await;
    assert_eq!((status, body), (StatusCode::LOCKED, lock_info("l-1").into()));
    assert_eq!(backend.read().await.0, StatusCode::NO_CONTENT);
    let (_, lock) = backend.api("GET", &format!("workspaces/{}/state-lock", backend.workspace)).await;
    assert_eq!(
        (&lock["held"], &lock["lock_id"], &lock["info"]["Who"]),
        (&json!(true), &json!("l-1"), &json!("somebody@somewhere"))
    );
}

#[tokio::test]
async fn a_write_under_a_lost_lock_is_quarantined_and_can_be_promoted() {
    let backend = Backend::start().await;
    backend.lock("l-1").await;
    backend.write(Some("l-1"), &state(1, "l", "a")).await;
    assert_eq!(backend.send_as(&backend.token, "UNLOCK", &backend.path(), "").await.0, StatusCode::OK);
    backend.lock("l-2").await;
    backend.write(Some("l-2"), &state(2, "l", "b")).await;

    for _ in 0..2 {
        let (status, _, body) = backend.write(Some("l-1"), &state(2, "l", "late")).await;
        assert_eq!((status, slug(&json_of(&body))), (StatusCode::CONFLICT, "state-quarantined"));
    }
    let kept = backend.quarantined().await;
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!((&kept[0]["reason"], &kept[0]["serial"]), (&json!("lost_lock"), &json!(2)));

    let promote = format!("quarantined-states/{}/promote", kept[0]["id"].as_str().unwrap());
    assert_eq!(backend.api("POST", &promote).await.0, StatusCode::LOCKED);
    backend.unlock("l-2").await;
    let (status, version) = backend.api("POST", &promote).await;
    assert_eq!((status, &version["serial"]), (StatusCode::OK, &json!(3)), "{version}");
    let (_, _, read) = backend.read().await;
    assert_eq!(json_of(&read)["outputs"]["value"]["value"], "late");
    let (status, body) = backend.api("POST", &promote).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    assert!(backend.audited().await.contains(&"state.promote".to_owned()));
}

#[tokio::test]
async fn a_quarantined_state_can_be_discarded_once() {
    let backend = Backend::start().await;
    backend.write(Some("never-held"), &state(1, "l", "a")).await;
    let id = backend.quarantined().await[0]["id"].as_str().unwrap().to_owned();
    let (status, decided) = backend.api("POST", &format!("quarantined-states/{id}/discard")).await;
    assert_eq!((status, &decided["resolution"]), (StatusCode::OK, &json!("discarded")));
    assert_eq!(
        backend.api("POST", &format!("quarantined-states/{id}/promote")).await.0,
        StatusCode::CONFLICT
    );
    assert_eq!(backend.read().await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn lineage_must_match_and_the_serial_must_not_fall() {
    let backend = Backend::start().await;
    backend.lock("l-1").await;
    backend.write(Some("l-1"), &state(5, "l", "a")).await;
    for (body, expected) in [
        (state(4, "l", "old"), "state-refused"),
        (state(9, "other", "foreign"), "state-refused"),
        (state(5, "l", "other bytes"), "state-quarantined"),
    ] {
        let (status, _, answer) = backend.write(Some("l-1"), &body).await;
        assert_eq!((status, slug(&json_of(&answer))), (StatusCode::CONFLICT, expected));
    }
    assert_eq!(backend.quarantined().await[0]["reason"], "same_serial");
    assert_eq!(backend.write(Some("l-1"), &state(7, "l", "gaps are fine")).await.0, StatusCode::OK);
    let serials: Vec<_> = backend.versions().await.iter().map(|version| version["serial"].clone()).collect();
    assert_eq!(serials, [7, 5]);
}

#[tokio::test]
async fn another_lineage_is_let_in_once_when_an_admin_says_so() {
    let backend = Backend::start().await;
    backend.write(None, &state(5, "l", "a")).await;
    let accept = format!("workspaces/{}/accept-next-lineage", backend.workspace);
    assert_eq!(backend.api("POST", &accept).await.0, StatusCode::NO_CONTENT);
    assert_eq!(backend.write(None, &state(1, "other", "b")).await.0, StatusCode::OK);
    assert_eq!(backend.write(None, &state(2, "third", "c")).await.0, StatusCode::CONFLICT);
    assert_eq!(backend.audited().await, ["state.write", "state.accept_lineage", "state.write"]);
}

#[tokio::test]
async fn an_empty_unlock_takes_the_lock_away_and_needs_an_admin() {
    let backend = Backend::start().await;
    let operator = backend.plane.user(Role::Operator).await;
    backend.lock("l-1").await;
    let force = async |token: &str| backend.send_as(token, "UNLOCK", &backend.path(), "").await;
    assert_eq!(force(&operator).await.0, StatusCode::FORBIDDEN);
    assert_eq!(force(&backend.token).await.0, StatusCode::OK);
    assert_eq!(force(&backend.token).await.0, StatusCode::CONFLICT);
    // Its holder must not believe that it gave back what was taken.
    assert_eq!(backend.unlock("l-1").await.0, StatusCode::CONFLICT);
    assert_eq!(backend.audited().await, ["state.lock", "state.force_unlock"]);
}

#[tokio::test]
async fn unlocking_another_lock_is_refused() {
    let backend = Backend::start().await;
    assert_eq!(backend.unlock("l-0").await.0, StatusCode::CONFLICT);
    backend.lock("l-1").await;
    assert_eq!(backend.unlock("l-0").await.0, StatusCode::CONFLICT);
    assert_eq!(backend.lock("l-1").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_runs_lock_is_only_its_own_and_is_freed_when_its_executor_has_stopped() {
    let backend = Backend::start().await;
    let (deps, workspace) = (&backend.plane.deps, backend.workspace);
    let apply = backend.executor(RunPhase::Apply).await;
    let other = backend.executor(RunPhase::Apply).await;
    let info = LockInfo::parse(lock_info("run-lock").as_bytes()).unwrap();
    service::lock(deps, &apply, workspace, &info).await.unwrap();
    service::lock(deps, &apply, workspace, &info).await.unwrap();
    let again = service::lock(deps, &other, workspace, &info).await;
    assert!(matches!(again, Err(StateError::Locked { .. })), "{again:?}");

    // A person who read the id from a 423 is still not the run.
    assert_eq!(backend.write(Some("run-lock"), &state(1, "l", "mine")).await.0, StatusCode::CONFLICT);
    assert_eq!(backend.unlock("run-lock").await.0, StatusCode::CONFLICT);
    let (status, _, body) = backend.send_as(&backend.token, "UNLOCK", &backend.path(), "").await;
    assert_eq!(status, StatusCode::CONFLICT, "{body:?}");
    let force = format!("workspaces/{workspace}/state-lock");
    assert_eq!(backend.api("DELETE", &force).await.0, StatusCode::CONFLICT);
    let forced = service::force_unlock(deps, &apply, workspace).await;
    assert!(matches!(forced, Err(StateError::NotForExecutors)));

    let StateActor::Executor { executor_id, .. } = apply else { unreachable!() };
    let conn = backend.plane.db().conn().await.unwrap();
    conn.execute("UPDATE executors SET status = 'stopped' WHERE id = $1", &[&executor_id]).await.unwrap();
    assert!(service::free_lock_of_stopped(&conn, executor_id).await.unwrap());
    assert!(!service::free_lock_of_stopped(&conn, executor_id).await.unwrap());
    drop(conn);
    // What it sends now is kept, and is not the state.
    let body = state(1, "l", "late").into();
    let write = InlineWrite { lock_id: Some("run-lock"), content_md5: None, body };
    let late = service::write_inline(deps, &apply, workspace, &write).await;
    assert!(matches!(late, Err(StateError::Quarantined { .. })), "{late:?}");
}

#[tokio::test]
async fn a_plan_can_neither_write_nor_lock() {
    let backend = Backend::start().await;
    let (deps, workspace) = (&backend.plane.deps, backend.workspace);
    let plan = backend.executor(RunPhase::Plan).await;
    let info = LockInfo::parse(lock_info("l").as_bytes()).unwrap();
    let write = InlineWrite { lock_id: Some("l"), content_md5: None, body: state(1, "l", "a").into() };
    assert!(matches!(service::lock(deps, &plan, workspace, &info).await, Err(StateError::PlanMayNotWrite)));
    assert!(matches!(service::unlock(deps, &plan, workspace, &info).await, Err(StateError::PlanMayNotWrite)));
    let written = service::write_inline(deps, &plan, workspace, &write).await;
    assert!(matches!(written, Err(StateError::PlanMayNotWrite)));
    assert!(backend.quarantined().await.is_empty());
    assert!(service::read(deps, &plan, workspace).await.is_ok());
}

#[tokio::test]
async fn history_can_be_listed_compared_downloaded_and_rolled_back() {
    let backend = Backend::start().await;
    for (serial, value) in [(1, "a"), (2, "b"), (3, "b")] {
        backend.write(None, &state(serial, "l", value)).await;
    }
    let versions = backend.versions().await;
    let ids: Vec<&str> = versions.iter().map(|version| version["id"].as_str().unwrap()).collect();
    assert_eq!(versions[0]["is_current"], json!(true));
    let (_, diff) = backend.api("GET", &format!("state-versions/{}/diff", ids[1])).await;
    assert_eq!((&diff["from"], &diff["to"]), (&json!(ids[2]), &json!(ids[1])), "{diff}");
    assert_eq!(
        (&diff["changed"], &diff["outputs_changed"]),
        (&json!(["terraform_data.one"]), &json!(["value"]))
    );
    let (_, diff) = backend.api("GET", &format!("state-versions/{}/diff?against={}", ids[0], ids[1])).await;
    assert_eq!((&diff["changed"], &diff["added"]), (&json!([]), &json!([])));
    let (_, diff) = backend.api("GET", &format!("state-versions/{}/diff", ids[2])).await;
    assert_eq!((&diff["from"], &diff["added"]), (&Value::Null, &json!(["terraform_data.one"])));

    let (status, old) = backend.api("GET", &format!("state-versions/{}/download", ids[2])).await;
    assert_eq!((status, &old["serial"]), (StatusCode::OK, &json!(1)));

    assert_eq!(
        backend.api("POST", &format!("state-versions/{}/rollback", ids[0])).await.0,
        StatusCode::CONFLICT
    );
    backend.lock("l-1").await;
    assert_eq!(
        backend.api("POST", &format!("state-versions/{}/rollback", ids[2])).await.0,
        StatusCode::LOCKED
    );
    backend.unlock("l-1").await;
    let (status, version) = backend.api("POST", &format!("state-versions/{}/rollback", ids[2])).await;
    assert_eq!(status, StatusCode::CREATED, "{version}");
    assert_eq!((&version["serial"], &version["rolled_back_from"]), (&json!(4), &json!(ids[2])));
    let (status, again) = backend.api("POST", &format!("state-versions/{}/rollback", ids[2])).await;
    assert_eq!((status, &again["id"]), (StatusCode::CREATED, &version["id"]), "a repetition makes nothing");
    let (_, _, read) = backend.read().await;
    let (read, mut expected) = (json_of(&read), json_of(state(1, "l", "a").as_bytes()));
    expected["serial"] = json!(4);
    assert_eq!(read, expected);
    assert_eq!(backend.versions().await.len(), 4);
    let operator = backend.plane.user(Role::Operator).await;
    let path = format!("/api/v1/state-versions/{}/rollback", ids[2]);
    assert_eq!(
        backend.plane.call("POST", &path, operator.as_str(), json!({})).await.0,
        StatusCode::FORBIDDEN
    );
}
