//! The queue over HTTP: who sees what, and replaying dead letters.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::tasks::{FailedAttempt, TaskClass, TaskKind};
use serde_json::{Value, json};

use super::desk::{enqueue, enqueue_one, new_task};
use crate::plane::{TestPlane, slug};

fn ids(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list");
    items.iter().map(|task| task["id"].as_str().expect("an id").to_owned()).collect()
}

/// A dead letter about a short task.
async fn dead_letter(plane: &TestPlane, unit: plumbline_core::ids::BusinessUnitId) -> String {
    let id = enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    let task = plane.claim_one(TaskClass::Short).await;
    assert_eq!(task.lease.task_id, id);
    plane.fail(task.lease, FailedAttempt::Permanent("the forge said no".into())).await.unwrap();
    id.to_string()
}

#[tokio::test]
async fn operators_list_live_and_finished_tasks_of_their_unit_page_by_page() {
    let plane = TestPlane::start().await;
    let (blue, red) = (plane.unit("blue").await, plane.unit("red").await);
    let operator = plane.member(blue, Role::Operator).await;
    let dead = dead_letter(&plane, blue).await;
    let first = enqueue_one(plane.db(), TaskKind::RunPlan, blue).await.to_string();
    let second = enqueue_one(plane.db(), TaskKind::RunPlan, blue).await.to_string();
    enqueue_one(plane.db(), TaskKind::RunPlan, red).await;

    let (status, _, page) = plane.call("GET", "/api/v1/tasks?limit=2", &*operator, None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert_eq!(ids(&page), [second.clone(), first.clone()]);
    let next = format!("/api/v1/tasks?limit=2&cursor={}", page["next_cursor"].as_str().unwrap());
    let (_, _, page) = plane.call("GET", &next, &*operator, None).await;
    assert_eq!(ids(&page), std::slice::from_ref(&dead));
    assert_eq!(page["next_cursor"], Value::Null);

    for (filter, expected) in [
        ("status=dead", vec![dead.clone()]),
        ("status=queued", vec![second.clone(), first.clone()]),
        ("kind=workspace_branches", vec![dead.clone()]),
        ("status=running", vec![]),
    ] {
        let (_, _, page) = plane.call("GET", &format!("/api/v1/tasks?{filter}"), &*operator, None).await;
        assert_eq!(ids(&page), expected, "{filter}");
    }
    let (_, _, one) = plane.call("GET", &format!("/api/v1/tasks/{dead}"), &*operator, None).await;
    assert_eq!((&one["status"], &one["last_error"]), (&json!("dead"), &json!("the forge said no")));
    let subject = format!("/api/v1/tasks?subject_id={}", one["subject_id"].as_str().unwrap());
    let (_, _, page) = plane.call("GET", &subject, &*operator, None).await;
    assert_eq!(ids(&page), [dead]);
}

#[tokio::test]
async fn viewers_see_only_the_short_tasks_they_asked_for() {
    let plane = TestPlane::start().await;
    let blue = plane.unit("blue").await;
    let viewer = plane.member(blue, Role::Viewer).await;
    let (_, _, me) = plane.call("GET", "/api/v1/me", &*viewer, None).await;
    let mut own = new_task(TaskKind::WorkspaceBranches, blue);
    own.requested_by = Some(me["id"].as_str().unwrap().parse().unwrap());
    let own = enqueue(plane.db(), &own).await.task_id();
    let other = enqueue_one(plane.db(), TaskKind::WorkspaceBranches, blue).await;

    let (status, _, _) = plane.call("GET", &format!("/api/v1/tasks/{own}"), &*viewer, None).await;
    assert_eq!(status, StatusCode::OK);
    for path in ["/api/v1/tasks".to_owned(), format!("/api/v1/tasks/{other}")] {
        let (status, _, problem) = plane.call("GET", &path, &*viewer, None).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"), "{path}");
    }
}

#[tokio::test]
async fn tasks_of_another_unit_do_not_exist() {
    let plane = TestPlane::start().await;
    let (blue, red) = (plane.unit("blue").await, plane.unit("red").await);
    let operator = plane.member(blue, Role::Operator).await;
    let foreign = dead_letter(&plane, red).await;
    for (method, path) in
        [("GET", format!("/api/v1/tasks/{foreign}")), ("POST", format!("/api/v1/tasks/{foreign}/replay"))]
    {
        let (status, _, _) = plane.call(method, &path, &*operator, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_replay_is_a_new_task_linked_to_the_dead_letter_and_audited() {
    let plane = TestPlane::start().await;
    let blue = plane.unit("blue").await;
    let operator = plane.member(blue, Role::Operator).await;
    let dead = dead_letter(&plane, blue).await;
    let path = format!("/api/v1/tasks/{dead}/replay");

    let key = [("Idempotency-Key", "once-more")];
    let (status, headers, task) = plane.call_with("POST", &path, &*operator, None, &key).await;
    let (_, _, again) = plane.call_with("POST", &path, &*operator, None, &key).await;

    assert_eq!(status, StatusCode::ACCEPTED, "{task}");
    assert_eq!(again["id"], task["id"], "one key makes one task");
    assert_eq!(
        (&task["status"], &task["replay_of"], &task["attempts"]),
        (&json!("queued"), &json!(dead), &json!(0))
    );
    let place = headers["location"].to_str().unwrap();
    let (status, _, _) = plane.call("GET", place, &*operator, None).await;
    assert_eq!(status, StatusCode::OK);
    let (_, _, old) = plane.call("GET", &format!("/api/v1/tasks/{dead}"), &*operator, None).await;
    assert_eq!(old["last_error"], "the forge said no", "the dead letter keeps its error");
    assert_eq!(plane.count("SELECT count(*) FROM audit_entries WHERE action = 'task.replay'").await, 1);
}

#[tokio::test]
async fn a_replay_needs_what_the_first_time_needed() {
    let plane = TestPlane::start().await;
    let blue = plane.unit("blue").await;
    let (operator, admin) = (plane.member(blue, Role::Operator).await, plane.member(blue, Role::Admin).await);
    let replayable = TaskKind::ALL.iter().copied().filter(|kind| kind.class() == TaskClass::Short);
    for kind in replayable {
        let id = enqueue_one(plane.db(), kind, blue).await;
        let task = plane.claim_one(TaskClass::Short).await;
        plane.fail(task.lease, FailedAttempt::Permanent("no".into())).await.unwrap();
        let path = format!("/api/v1/tasks/{id}/replay");
        let (status, _, problem) = plane.call("POST", &path, &*operator, None).await;
        // Whoever may look at a workspace may list its branches; all else is an administrator's.
        if matches!(kind, TaskKind::WorkspaceBranches | TaskKind::StateIndex) {
            assert_eq!(status, StatusCode::ACCEPTED, "{kind:?}: {problem}");
        } else {
            assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"), "{kind:?}");
            assert_eq!(plane.call("POST", &path, &*admin, None).await.0, StatusCode::ACCEPTED, "{kind:?}");
        }
        let again = plane.claim_one(TaskClass::Short).await;
        plane.fail(again.lease, FailedAttempt::Permanent("no".into())).await.unwrap();
    }
}

#[tokio::test]
async fn only_dead_letters_that_outlive_their_subject_are_replayed() {
    let plane = TestPlane::start().await;
    let blue = plane.unit("blue").await;
    let operator = plane.member(blue, Role::Operator).await;
    let live = enqueue_one(plane.db(), TaskKind::RunPlan, blue).await;
    let path = format!("/api/v1/tasks/{live}/replay");
    let (status, _, problem) = plane.call("POST", &path, &*operator, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "task-not-replayable"));

    let task = plane.claim_one(TaskClass::Executor).await;
    plane.fail(task.lease, FailedAttempt::Permanent("no".into())).await.unwrap();
    let (status, _, problem) = plane.call("POST", &path, &*operator, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "task-not-replayable"));
}
