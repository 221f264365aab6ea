//! Values that decode and still cannot be: positions, offsets, kinds, ids, lengths.

use super::*;

#[tokio::test]
async fn positions_offsets_kinds_and_ids_that_cannot_be_are_refused() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let running = json!({ "status": "running" }).to_string();
    let digest = "ab".repeat(32);
    let upload =
        |kind: &str, size: u64| json!({ "kind": kind, "size_bytes": size, "sha256": digest }).to_string();
    let nil = "00000000-0000-0000-0000-000000000000";
    let mut cases: Vec<(&str, String, String, u16, &str)> = Vec::new();
    for position in ["x", "-1", "0", "7", "9", "99", "70000", "%00", "..", "1.0", "%ff"] {
        cases.push(("PUT", format!("steps/{position}"), running.clone(), 404, "not-found"));
        cases.push(("PUT", format!("steps/{position}/log?offset=0"), "text".into(), 404, "not-found"));
    }
    for query in [
        "",
        "?offset=",
        "?offset=x",
        "?offset=-1",
        "?offset=1.5",
        "?offset=%00",
        "?offset=0&more=1",
        "?offset=99999999999999999999",
        "?offset=0&offset=0",
    ] {
        cases.push(("PUT", format!("steps/1/log{query}"), "text".into(), 422, "invalid-field"));
    }
    for offset in [i64::MAX.unsigned_abs(), u64::MAX, 1 << 40] {
        cases.push(("PUT", format!("steps/1/log?offset={offset}"), "text".into(), 409, "step-refused"));
    }
    cases.push(("PUT", "steps/1/log?offset=7".into(), "text".into(), 409, "log-gap"));
    for kind in ["nonsense", "plan-file", "PLAN_FILE", "%00", ".."] {
        cases.push(("GET", format!("artifacts/{kind}"), String::new(), 404, "not-found"));
        cases.push(("POST", format!("artifacts/{kind}/commit"), String::new(), 404, "not-found"));
    }
    // A plan reads no plan, and cannot say that something is there that it never began.
    cases.push(("GET", "artifacts/plan_file".into(), String::new(), 404, "not-found"));
    cases.push(("POST", "artifacts/plan_file/commit".into(), String::new(), 409, "artifact-refused"));
    for size in [(1 << 30) + 1, i64::MAX.unsigned_abs(), u64::MAX] {
        cases.push(("POST", "artifacts".into(), upload("plan_file", size), 409, "artifact-refused"));
    }
    cases.push(("POST", "artifacts".into(), upload("outputs", 1), 409, "artifact-refused"));
    for id in ["x", "%00", "..", nil, "1"] {
        // A plan may not write, whatever it names.
        let (status, slug) = if id == nil { (403, "forbidden") } else { (404, "not-found") };
        cases.push(("POST", format!("state/uploads/{id}/commit"), String::new(), status, slug));
    }
    for (method, path, body, status, slug) in cases {
        let path = format!("/executor/v1/{path}");
        let answer = send(&world, method, &path, Some(&executor.bundle.token), body).await;
        refused(&path, &answer, StatusCode::from_u16(status).unwrap(), slug);
    }
    untouched(&world, &executor, &run).await;
}

#[tokio::test]
async fn what_a_step_may_not_tell_is_refused_and_pins_nothing() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    for wrong in [
        json!({ "commit": "main" }),
        json!({ "commit": "c0ffee" }),
        json!({ "commit": "zz".repeat(20) }),
        json!({ "tool": "sh" }),
        json!({ "tool_version": "latest" }),
        json!({ "tool_version": "1.11" }),
        json!({ "tool_version": "1".repeat(100_000) }),
        json!({ "summary": { "text": "x".repeat(5 << 10) } }),
    ] {
        let mut report = json!({ "status": "running" });
        report.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let (status, problem) = executor.step(3, report).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "step-refused"), "{problem}");
    }
    let seen = world.run(&run).await;
    for pinned in ["commit_sha", "tool", "tool_version"] {
        assert_eq!(seen[pinned], Value::Null, "{seen}");
    }
    untouched(&world, &executor, &run).await;
}

#[tokio::test]
async fn logs_and_states_keep_to_their_limits() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let limits = &world.plane.deps.limits;
    let log = "/executor/v1/steps/1/log?offset=0";
    let token = Some(&*executor.bundle.token);
    let chunk = vec![b'x'; limits.log_chunk_bytes_max + 1];
    let answer = send(&world, "PUT", log, token, chunk).await;
    refused("a chunk that is too long", &answer, StatusCode::CONFLICT, "step-refused");
    // Nobody says how long it will be.
    let pieces = (0..40).map(|_| Ok::<_, std::io::Error>(bytes::Bytes::from(vec![b'x'; 64 << 10])));
    let endless = Body::from_stream(futures::stream::iter(pieces));
    let answer = send(&world, "PUT", log, token, endless).await;
    refused("a chunk without an end", &answer, StatusCode::PAYLOAD_TOO_LARGE, "body-too-large");
    let state = vec![b' '; limits.inline_state_bytes_max + 1];
    let answer = send(&world, "POST", "/executor/v1/state?ID=l", token, state).await;
    refused("a state that is too long", &answer, StatusCode::PAYLOAD_TOO_LARGE, "state-too-large");
    let holder = vec![b' '; 65 << 10];
    let answer = send(&world, "POST", "/executor/v1/state/lock", token, holder).await;
    refused("a holder that is too long", &answer, StatusCode::BAD_REQUEST, "bad-state");
    untouched(&world, &executor, &run).await;
}

#[tokio::test]
async fn what_a_large_upload_says_of_itself_is_checked() {
    let world = World::new().await;
    let (_, executor) = world.applying().await;
    let right = Route { method: "POST", pattern: "/state/uploads", takes: Takes::Nothing }.body();
    for (field, value) in [
        ("lock_id", json!("")),
        ("lock_id", json!("l".repeat(300))),
        ("lineage", json!("")),
        ("serial", json!(-1)),
        ("size_bytes", json!(0)),
        ("size_bytes", json!(u64::MAX)),
        ("md5", json!("abc")),
        ("md5", json!("zz".repeat(16))),
        ("terraform_version", json!("")),
    ] {
        let mut begin = right.clone();
        begin[field] = value;
        let (status, problem) = executor.call(http::Method::POST, "state/uploads", begin).await;
        let answer = (status, slug(&problem));
        assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"), "{field}: {problem}");
    }
    for id in ["00000000-0000-0000-0000-000000000000", "x"] {
        let path = format!("state/uploads/{id}/commit");
        let (status, problem) = executor.call(http::Method::POST, &path, json!({})).await;
        assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"), "{problem}");
    }
    assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT, "the apply goes on");
}

#[tokio::test]
async fn what_an_attempt_says_of_its_end_is_cut_to_what_a_row_may_hold() {
    let world = World::new().await;
    let failed = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let report = json!({ "kind": "permanent", "error": "x".repeat(300_000) });
    assert_eq!(executor.call(http::Method::POST, "fail", report).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.run(&failed).await["error"].as_str().unwrap().len(), 2_000);

    let (applied, executor) = world.applying().await;
    let done = json!({ "summary": { "text": "x".repeat(300_000) } });
    assert_eq!(executor.call(http::Method::POST, "apply/complete", done).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.status(&applied).await, "applied");
    use plumbline_core::db::Query as _;
    const LONGEST: &str = "SELECT max(length(t::text))::int8 AS longest FROM finished_tasks t";
    let conn = world.plane.db().conn().await.unwrap();
    let longest: i64 = conn.query_one(LONGEST, &[]).await.unwrap().get("longest");
    assert!(longest < 8 << 10, "{longest} bytes in a row");
}
