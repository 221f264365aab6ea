//! Asking for runs and reading them: who may, with which values.

use super::*;

#[tokio::test]
async fn a_run_of_another_unit_does_not_exist() {
    let world = World::new().await;
    let id = world.planned().await;
    let other = world.plane.unit("other-unit").await;
    let stranger = world.plane.member(other, Role::Admin).await;
    for (method, path) in [
        (Method::GET, format!("runs/{id}")),
        (Method::GET, format!("runs/{id}/steps")),
        (Method::GET, format!("runs/{id}/logs?position=1")),
        (Method::GET, format!("runs/{id}/plan")),
        (Method::GET, format!("runs/{id}/artifacts")),
        (Method::GET, format!("runs/{id}/artifacts/plan_text")),
        (Method::POST, format!("runs/{id}/cancel")),
        (Method::POST, format!("approvals/{id}/approve")),
        (Method::POST, format!("approvals/{id}/reject")),
    ] {
        let body = (method == Method::POST).then(|| json!({}));
        let answer =
            world.plane.call(method.as_str(), &format!("/api/v1/{path}"), stranger.as_str(), body).await;
        assert_eq!(answer.0, StatusCode::NOT_FOUND, "{path}: {}", answer.2);
    }
    let body = json!({"workspace_id": world.workspace, "command": "plan"});
    assert_eq!(post(&world.plane, &stranger, "/api/v1/runs", body).await.0, StatusCode::NOT_FOUND);
    let answer = world.plane.call("GET", "/api/v1/runs", stranger.as_str(), None).await;
    assert_eq!(answer.2["items"], json!([]));
}

#[tokio::test]
async fn a_viewer_reads_and_an_operator_acts() {
    let world = World::new().await;
    let id = world.planned().await;
    let viewer = world.plane.user(Role::Viewer).await;
    for (path, expected) in
        [("", StatusCode::OK), ("/plan", StatusCode::OK), ("/logs?position=1", StatusCode::FORBIDDEN)]
    {
        let answer =
            world.plane.call("GET", &format!("/api/v1/runs/{id}{path}"), viewer.as_str(), None).await;
        assert_eq!(answer.0, expected, "{path}");
    }
    let body = json!({"workspace_id": world.workspace, "command": "plan"});
    assert_eq!(post(&world.plane, &viewer, "/api/v1/runs", body).await.0, StatusCode::FORBIDDEN);
    let operator = world.plane.user(Role::Operator).await;
    let path = format!("/api/v1/approvals/{id}/approve");
    assert_eq!(post(&world.plane, &viewer, &path, json!({})).await.0, StatusCode::FORBIDDEN);
    assert_eq!(post(&world.plane, &operator, &path, json!({})).await.0, StatusCode::OK);
}

#[tokio::test]
async fn wrong_values_are_refused_with_the_field() {
    let world = World::new().await;
    let cases = [
        (json!({"branch": "-rf"}), "branch"),
        (json!({"branch": "a..b"}), "branch"),
        (json!({"auto_approve_skip_apply": true}), "auto_approve_skip_apply"),
        (json!({"variables": [{"key": "1x", "value": "v"}]}), "variables.1x"),
        (json!({"variables": [{"key": "x", "value": "v"}, {"key": "x", "value": "w"}]}), "variables.x"),
    ];
    for (more, field) in cases {
        let mut body = json!({"workspace_id": world.workspace, "command": "plan"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, problem) = world.post("runs", body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let slashes = json!({"workspace_id": world.workspace, "command": "plan", "branch": "feature/a/b"});
    assert_eq!(world.post("runs", slashes).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn variables_reach_the_executor_and_nobody_else() {
    let world = World::new().await;
    let body = json!({"workspace_id": world.workspace, "command": "plan",
                      "variables": [{"key": "password", "value": "hunter2-hunter2", "is_secret": true}]});
    let (_, run) = world.post("runs", body).await;
    assert!(!run.to_string().contains("hunter2"));
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(executor.bundle.variables[0].value, "hunter2-hunter2");
    let conn = world.plane.db().conn().await.unwrap();
    let sealed: String = conn.query_one("SELECT variables_sealed FROM runs", &[]).await.unwrap().get(0);
    assert!(!sealed.contains("hunter2"));
}

#[tokio::test]
async fn the_same_idempotency_key_triggers_one_run() {
    let world = World::new().await;
    let body = json!({"workspace_id": world.workspace, "command": "plan"});
    let send = || {
        world.plane.call_with(
            "POST",
            "/api/v1/runs",
            world.token.as_str(),
            body.clone(),
            &[("idempotency-key", "k1")],
        )
    };
    let answers = futures::future::join_all((0..8).map(|_| send())).await;
    let ids: std::collections::BTreeSet<_> = answers
        .iter()
        .filter(|answer| answer.0 == StatusCode::CREATED)
        .map(|answer| answer.2["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1, "{:?}", answers.iter().map(|answer| answer.0).collect::<Vec<_>>());
    assert_eq!(send().await.2["id"].to_string(), *ids.first().unwrap());
    let (_, runs) = world.get("runs").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_are_filtered_and_paged_without_gaps() {
    let world = World::new().await;
    let mut triggered = Vec::new();
    for _ in 0..5 {
        triggered.push(world.trigger("plan").await);
    }
    triggered.reverse();
    let mut seen = Vec::new();
    let mut path = "runs?limit=2&status=pending&command=plan".to_owned();
    loop {
        let (_, page) = world.get(&path).await;
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("runs?limit=2&status=pending&command=plan&cursor={cursor}");
    }
    assert_eq!(seen, triggered);
    assert_eq!(world.get("runs?status=applied").await.1["items"], json!([]));
}
