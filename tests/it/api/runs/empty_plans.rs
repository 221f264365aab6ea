//! Plans that change nothing: what is asked for decides whether a person, an executor, or nobody is needed.

use super::*;

impl World {
    /// A run with these flags, planned with this plan: its id.
    async fn planned_with(&self, command: &str, flags: Value, plan: &str) -> String {
        let mut body = json!({"workspace_id": self.workspace, "command": command});
        body.as_object_mut().unwrap().extend(flags.as_object().unwrap().clone());
        let (status, run) = self.post("runs", body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        let (status, answer) = FakeExecutor::start(&self.plane).await.plan(plan).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
        run["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn an_empty_plan_waits_for_a_person_unless_the_run_asked_otherwise() {
    let world = World::new().await;
    for command in ["apply", "destroy"] {
        let id = world.planned_with(command, json!({}), NO_CHANGES).await;
        let run = world.run(&id).await;
        assert_eq!((&run["status"], &run["has_changes"]), (&json!("awaiting_approval"), &json!(false)));
        assert_eq!(world.live_tasks("run_apply").await, 0);
        assert_eq!(world.audit_actions(&id).await, ["run.trigger", "run.planned"]);
        world.post(&format!("approvals/{id}/reject"), json!({})).await;
    }
}

#[tokio::test]
async fn an_empty_plan_that_may_approve_itself_is_still_applied_by_an_executor() {
    let world = World::new().await;
    let flags = json!({"auto_approve_if_no_changes": true});
    let id = world.planned_with("apply", flags.clone(), NO_CHANGES).await;
    let run = world.run(&id).await;
    assert_eq!((&run["status"], &run["approved_by"]), (&json!("applying"), &Value::Null), "{run}");
    assert!(run["approved_at"].is_string(), "{run}");
    assert_eq!(world.live_tasks("run_apply").await, 1);
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(executor.begin_apply().await.0, StatusCode::NO_CONTENT);
    assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT);
    let run = world.run(&id).await;
    assert_eq!((&run["status"], &run["status_reason"]), (&json!("applied"), &Value::Null), "{run}");
    assert_eq!(
        world.audit_actions(&id).await,
        ["run.trigger", "run.planned", "run.auto_approve", "run.apply_begin", "run.end"]
    );

    let changing = world.planned_with("apply", flags, ADDS_ONE).await;
    assert_eq!(world.status(&changing).await, "awaiting_approval", "a plan with changes never does");
}

#[tokio::test]
async fn a_plan_only_run_ends_at_its_plan_whatever_it_asked_for() {
    let world = World::new().await;
    let flags = json!({"auto_approve_if_no_changes": true, "auto_approve_skip_apply": true});
    let id = world.planned_with("plan", flags, NO_CHANGES).await;
    let run = world.run(&id).await;
    assert_eq!((&run["status"], &run["approved_at"]), (&json!("planned"), &Value::Null), "{run}");
    assert_eq!(world.live_tasks("run_apply").await, 0);
}

#[tokio::test]
async fn each_kind_of_change_alone_keeps_a_plan_from_approving_itself_and_is_counted_by_itself() {
    let world = World::new().await;
    let plan = |more: Value| {
        let mut plan = json!({"format_version": "1.2", "complete": true, "errored": false});
        plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plan.to_string()
    };
    let change = |more: Value| {
        let mut change = json!({"address": "a.b", "mode": "managed", "change": {"actions": ["no-op"]}});
        change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plan(json!({"resource_changes": [change]}))
    };
    let cases = [
        ("import", change(json!({"change": {"actions": ["no-op"], "importing": {"id": "i"}}}))),
        ("move", change(json!({"previous_address": "a.c"}))),
        ("forget", change(json!({"change": {"actions": ["forget"]}}))),
        ("outputs", plan(json!({"output_changes": {"o": {"actions": ["create"]}}}))),
        ("deferred", plan(json!({"deferred_changes": [{}]}))),
        ("unknown", change(json!({"change": {"actions": ["levitate"]}}))),
    ];
    let flags = json!({"auto_approve_if_no_changes": true, "auto_approve_skip_apply": true});
    for (counted, plan) in cases {
        let id = world.planned_with("apply", flags.clone(), &plan).await;
        let run = world.run(&id).await;
        assert_eq!(run["status"], "awaiting_approval", "{counted}: {run}");
        let summary = run["plan_summary"].as_object().unwrap();
        let changes =
            summary.iter().filter(|(name, count)| *name != "no_op" && count.as_u64().is_some_and(|n| n > 0));
        assert_eq!(changes.collect::<Vec<_>>(), [(&counted.to_owned(), &json!(1))], "{run}");
        world.post(&format!("approvals/{id}/reject"), json!({})).await;
    }
}
