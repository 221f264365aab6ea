//! What is in states: the index of resources, outputs, counts, and bodies that are not what was announced.

use std::time::{Duration, Instant};

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::resources::{sweeps, tasks as index};
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_core::{Deps, dispatch};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::state_client::{Backend, insert_workspace, state};
use crate::plane::slug;

const SECRET: &str = "hunter2-0c9f";

/// A state with machines, one output that is secret, and secrets in attributes.
fn machines(serial: i64, lineage: &str, count: usize) -> String {
    let instances: Vec<Value> = (0..count)
        .map(|number| {
            json!({ "index_key": number, "schema_version": 1, "private": "bm90aGluZw==",
                    "attributes": { "id": format!("i-{number:05}"), "arn": format!("arn:aws:ec2:::instance/i-{number:05}"),
                                    "password": SECRET, "name": SECRET, "tags": { "Name": format!("Front {number}") } },
                    "sensitive_attributes": [[{ "type": "get_attr", "value": "password" }]] })
        })
        .collect();
    let resources = if count == 0 {
        json!([])
    } else {
        json!([{ "module": "module.web", "mode": "managed", "type": "aws_instance", "name": "one",
                 "provider": "provider[\"registry.terraform.io/hashicorp/aws\"]", "instances": instances }])
    };
    json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": lineage,
            "outputs": { "url": { "value": "https://example.com", "type": "string" },
                         "key": { "value": SECRET, "type": "string", "sensitive": true } },
            "resources": resources, "check_results": null })
    .to_string()
}

/// Sweeps as the reconciler, then indexes as the worker, until nothing is left. Returns what the tasks found.
pub(super) async fn bring_up_to_date(backend: &Backend) -> Vec<Value> {
    sweeps::enqueue_due(&backend.plane.as_function(Function::Reconciler)).await.unwrap();
    let worker = backend.plane.as_function(Function::Worker);
    let mut found = Vec::new();
    loop {
        let claimed =
            tasks::service::claim(&worker.db, TaskClass::Short, "worker", 5, &worker.limits).await.unwrap();
        if claimed.is_empty() {
            return found;
        }
        for task in &claimed {
            let result = index::index(&worker, task).await.unwrap();
            let conn = worker.db.conn().await.unwrap();
            tasks::service::finish_together(&conn, &[(task, Some(&result))]).await.unwrap();
            found.push(result);
        }
    }
}

async fn search(backend: &Backend, token: &str, query: &str) -> Vec<String> {
    let path = format!("/api/v1/resources?limit=200&{query}");
    let (status, _, page) = backend.plane.call("GET", &path, token, None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(!page.to_string().contains(SECRET), "{page}");
    page["items"].as_array().unwrap().iter().map(|row| row["address"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn resources_are_found_by_address_id_arn_name_type_and_provider() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 3)).await;
    assert!(search(&backend, &backend.token, "q=front").await.is_empty(), "it is not indexed yet");
    bring_up_to_date(&backend).await;
    let viewer = backend.plane.user(Role::Viewer).await;
    let one = ["module.web.aws_instance.one[1]"];
    for query in [
        "q=i-00001",
        "q=INSTANCE%2Fi-00001",
        "q=front%201",
        "q=1%5D%20module.web",
        "q=00001&type=aws_instance&provider=aws",
        "q=00001&provider=hashicorp%2Faws",
    ] {
        assert_eq!(search(&backend, &viewer, query).await, one, "{query}");
    }
    for query in ["q=i_00001", "q=%25", "type=aws", "provider=ws", "q=front&type=aws_vpc"] {
        assert!(search(&backend, &viewer, query).await.is_empty(), "{query}");
    }
    assert_eq!(search(&backend, &viewer, "").await.len(), 3);
    let place = format!("workspace_id={}", backend.workspace);
    assert_eq!(search(&backend, &viewer, &place).await.len(), 3);
    assert!(search(&backend, &viewer, "q=hunter2").await.is_empty(), "what is hidden cannot be searched");
    for bad in ["q=%00", &format!("q={}", "x".repeat(201)), "q=a+b+c+d+e+f+g+h+i", "nope=1", "cursor=7"] {
        let (status, ..) =
            backend.plane.call("GET", &format!("/api/v1/resources?{bad}"), viewer.as_str(), None).await;
        assert!(status.is_client_error(), "{bad}: {status}");
    }
}

#[tokio::test]
async fn pages_of_a_search_hold_every_resource_once() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 7)).await;
    bring_up_to_date(&backend).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, page) = backend.api("GET", &format!("resources?limit=3{cursor}")).await;
        seen.extend(page["items"].as_array().unwrap().iter().map(|row| row["resource_id"].to_string()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((all, seen.len()), (7, 7));
}

#[tokio::test]
async fn the_index_follows_the_newest_version_and_forgets_what_is_gone() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 5)).await;
    bring_up_to_date(&backend).await;
    let (_, page) = backend.api("GET", "resources?q=i-00000").await;
    let id = page["items"][0]["id"].clone();
    for serial in 2..30 {
        backend.write(None, &machines(serial, "l", 2)).await;
    }
    let done = bring_up_to_date(&backend).await;
    assert_eq!(done.len(), 1, "28 writes are indexed once: {done:?}");
    assert_eq!(search(&backend, &backend.token, "").await.len(), 2);
    let (_, page) = backend.api("GET", "resources?q=i-00000").await;
    assert_eq!(page["items"][0]["id"], id, "what stayed is the same row");
    assert_eq!(page["items"][0]["state_version_id"], backend.versions().await[0]["id"]);
    assert!(bring_up_to_date(&backend).await.is_empty(), "nothing is due any more");

    let path = format!("/api/v1/workspaces/{}?force=true", backend.workspace);
    let (status, _, body) = backend.plane.call("DELETE", &path, backend.token.as_str(), None).await;
    assert!(status.is_success(), "{status} {body}");
    let conn = backend.plane.db().conn().await.unwrap();
    for table in ["SELECT count(*) FROM resources", "SELECT count(*) FROM state_indexes"] {
        assert_eq!(conn.query_one(table, &[]).await.unwrap().get::<_, i64>(0), 0, "{table}");
    }
}

#[tokio::test]
async fn other_units_and_confined_keys_see_only_what_is_theirs() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 2)).await;
    let other = insert_workspace(&backend.plane, backend.unit, "runs_and_people").await;
    let path = format!("/api/v1/state/{other}");
    backend.send_as(&backend.token, "POST", &path, machines(1, "m", 4)).await;
    bring_up_to_date(&backend).await;
    assert_eq!(search(&backend, &backend.token, "").await.len(), 6);
    let admin = backend.plane.admin_token().await;
    let body = json!({ "slug": "foreign", "name": "Foreign" });
    let (status, _, made) = backend.plane.call("POST", "/api/v1/business-units", admin.as_str(), body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let foreign = backend.plane.member(backend.plane.unit("foreign").await, Role::Admin).await;
    assert!(search(&backend, &foreign, "").await.is_empty());
    assert!(search(&backend, &foreign, &format!("workspace_id={other}")).await.is_empty());
    for path in [format!("workspaces/{other}/outputs"), format!("workspaces/{other}/outputs?sensitive=true")]
    {
        let (status, ..) =
            backend.plane.call("GET", &format!("/api/v1/{path}"), foreign.as_str(), None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let key = json!({ "name": "confined", "capability": "read", "workspace_ids": [other] });
    let (status, _, key) = backend.plane.call("POST", "/api/v1/api-keys", backend.token.as_str(), key).await;
    assert_eq!(status, StatusCode::CREATED, "{key}");
    let key = key["token"].as_str().or(key["key"].as_str()).expect("shown once").to_owned();
    assert_eq!(search(&backend, &key, "").await.len(), 4);
}

#[tokio::test]
async fn an_older_versions_task_never_replaces_a_newer_ones_index() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 2)).await;
    sweeps::enqueue_due(&backend.plane.as_function(Function::Reconciler)).await.unwrap();
    let worker = backend.plane.as_function(Function::Worker);
    let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "w", 1, &worker.limits).await.unwrap();
    backend.write(None, &machines(2, "l", 4)).await;
    // All at once, and each begins at another moment of a state that is being written.
    let mut rounds = Vec::new();
    for serial in 3..9 {
        let (task, worker) = (claimed[0].clone(), worker.clone());
        rounds.push(tokio::spawn(async move { index::index(&worker, &task).await }));
        backend.write(None, &machines(serial, "l", usize::try_from(serial).unwrap())).await;
    }
    for round in rounds {
        round.await.unwrap().unwrap();
    }
    index::index(&worker, &claimed[0]).await.unwrap();
    assert_eq!(search(&backend, &backend.token, "").await.len(), 8);
}

#[tokio::test]
async fn a_killed_indexer_leaves_the_old_index_and_the_next_one_makes_the_new() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 2)).await;
    bring_up_to_date(&backend).await;
    backend.write(None, &machines(2, "l", 900)).await;
    sweeps::enqueue_due(&backend.plane.as_function(Function::Reconciler)).await.unwrap();
    let worker = backend.plane.as_function(Function::Worker);
    let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "w", 1, &worker.limits).await.unwrap();
    // Stopped at ever later moments, as if its process had been killed there.
    let mut cut_off = 0;
    for milliseconds in [0, 1, 3, 9, 20] {
        let patience = Duration::from_millis(milliseconds);
        match tokio::time::timeout(patience, index::index(&worker, &claimed[0])).await {
            Ok(ended) => drop(ended.unwrap()),
            Err(_) => cut_off += 1,
        }
        let seen = search(&backend, &backend.token, "q=i-0000").await.len();
        assert!(seen == 2 || seen == 10, "{milliseconds} ms: {seen} are of both versions, or of none");
    }
    assert!(cut_off > 0, "some were stopped");
    index::index(&worker, &claimed[0]).await.unwrap();
    let conn = backend.plane.db().conn().await.unwrap();
    let count: i64 = conn.query_one("SELECT count(*) FROM resources", &[]).await.unwrap().get(0);
    assert_eq!(count, 900);
}

#[tokio::test]
async fn a_state_whose_body_is_lost_is_given_up_until_it_is_written_again() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 2)).await;
    let conn = backend.plane.db().conn().await.unwrap();
    let key: String = conn.query_one("SELECT head_key FROM tfstates", &[]).await.unwrap().get(0);
    backend.plane.deps.blobs.delete(&key).await.unwrap();
    sweeps::enqueue_due(&backend.plane.as_function(Function::Reconciler)).await.unwrap();
    let worker: Deps = backend.plane.as_function(Function::Worker);
    for attempt in 1..=2 {
        backend.plane.advance(Duration::from_secs(600)).await;
        let task =
            &tasks::service::claim(&worker.db, TaskClass::Short, "w", 1, &worker.limits).await.unwrap()[0];
        let failure = index::index(&worker, task).await.unwrap_err();
        assert!(matches!(failure, FailedAttempt::Retry(_)), "{failure:?}");
        worker
            .db
            .transaction(async |tx| dispatch::fail_attempt(tx, &worker, task, &failure).await)
            .await
            .unwrap_or_else(|error| panic!("attempt {attempt}: {error}"));
    }
    let reconciler = backend.plane.as_function(Function::Reconciler);
    assert_eq!(sweeps::enqueue_due(&reconciler).await.unwrap(), 0, "it is not tried for ever");
    backend.write(None, &machines(2, "l", 3)).await;
    bring_up_to_date(&backend).await;
    assert_eq!(search(&backend, &backend.token, "").await.len(), 3);
}

#[tokio::test]
async fn an_encrypted_state_is_opaque_and_empties_the_index() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 2)).await;
    bring_up_to_date(&backend).await;
    let encrypted =
        r#"{"serial":2,"lineage":"l","meta":{},"encrypted_data":"QUJD","encryption_version":"v0"}"#;
    assert_eq!(backend.write(None, encrypted).await.0, StatusCode::OK);
    bring_up_to_date(&backend).await;
    assert!(search(&backend, &backend.token, "").await.is_empty());
    let version = &backend.versions().await[0];
    assert_eq!((&version["opaque"], &version["resource_count"]), (&json!(true), &Value::Null));
    for path in ["outputs", "diff"] {
        let path = format!("state-versions/{}/{path}", version["id"].as_str().unwrap());
        let (status, problem) = backend.api("GET", &path).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "state-opaque"), "{path}");
    }
}

#[tokio::test]
async fn a_state_that_loses_all_its_resources_is_stored_flagged_and_restorable() {
    let backend = Backend::start().await;
    backend.write(None, &machines(1, "l", 3)).await;
    assert_eq!(backend.write(None, &machines(2, "l", 0)).await.0, StatusCode::OK);
    backend.write(None, &machines(3, "l", 0)).await;
    let flags = |versions: &[Value]| -> Vec<(Option<i64>, Option<bool>)> {
        versions.iter().map(|it| (it["resource_count"].as_i64(), it["emptied"].as_bool())).collect()
    };
    let versions = backend.versions().await;
    let expected = [(Some(0), Some(false)), (Some(0), Some(true)), (Some(3), Some(false))];
    assert_eq!(flags(&versions), expected);
    let id = versions[1]["id"].as_str().unwrap();
    assert_eq!(backend.api("GET", &format!("state-versions/{id}")).await.1["emptied"], json!(true));
    let conn = backend.plane.db().conn().await.unwrap();
    let audited =
        "SELECT count(*) FROM audit_entries WHERE action = 'state.write' AND details ->> 'emptied' = 'true'";
    assert_eq!(conn.query_one(audited, &[]).await.unwrap().get::<_, i64>(0), 1);

    let full = versions[2]["id"].as_str().unwrap();
    assert_eq!(backend.api("POST", &format!("state-versions/{full}/rollback")).await.0, StatusCode::CREATED);
    let head = &backend.versions().await[0];
    assert_eq!((head["resource_count"].as_i64(), head["serial"].as_i64()), (Some(3), Some(4)));
    let (_, _, body) = backend.read().await;
    let expected = machines(1, "l", 3).replace("\"serial\":1,", "\"serial\":4,");
    assert_eq!(String::from_utf8_lossy(&body), expected, "every other byte is as it was");
}

#[tokio::test]
async fn outputs_are_shown_to_viewers_without_what_is_sensitive() {
    let backend = Backend::start().await;
    let place = format!("workspaces/{}/outputs", backend.workspace);
    assert_eq!(backend.api("GET", &place).await.1["items"], json!([]));
    backend.write(None, &machines(1, "l", 1)).await;
    let id = backend.versions().await[0]["id"].as_str().unwrap().to_owned();
    let viewer = backend.plane.user(Role::Viewer).await;
    for path in [place.clone(), format!("state-versions/{id}/outputs")] {
        let get = async |token: &str, more: &str| {
            backend.plane.call("GET", &format!("/api/v1/{path}{more}"), token, None).await
        };
        let (status, headers, body) = get(&viewer, "").await;
        assert_eq!(
            (status, &headers["cache-control"]),
            (StatusCode::OK, &"no-store".parse().unwrap()),
            "{body}"
        );
        assert!(!body.to_string().contains(SECRET), "{body}");
        let outputs = &body["items"];
        assert_eq!(outputs[0]["name"], "key");
        assert_eq!((&outputs[0]["withheld"], &outputs[0]["type"]), (&json!("sensitive"), &json!("string")));
        assert_eq!(
            (&outputs[1]["value"], &outputs[1]["withheld"]),
            (&json!("https://example.com"), &Value::Null)
        );
        assert_eq!(get(&viewer, "?sensitive=true").await.0, StatusCode::FORBIDDEN);
        let reads = async || backend.audited().await.iter().filter(|action| *action == "state.read").count();
        let before = reads().await;
        let (status, _, body) = get(&backend.token, "?sensitive=true").await;
        assert_eq!((status, &body["items"][0]["value"]), (StatusCode::OK, &json!(SECRET)));
        assert_eq!(reads().await, before + 1, "reading them is recorded");
    }
}

#[tokio::test]
async fn ten_thousand_resources_are_indexed_and_a_hundred_thousand_searched() {
    const FILL: &str = "
        INSERT INTO resources (id, business_unit_id, workspace_id, address, mode, type, name, provider, names, haystack)
        SELECT gen_random_uuid(), $1, $2, 'aws_vpc.other[' || n || ']', 'managed', 'aws_vpc', 'other', 'aws', '{}',
            'aws_vpc.other[' || n || '] vpc-' || md5(n::text) || repeat(' more', 20)
        FROM generate_series(1, 90000) n";
    let backend = Backend::start().await;
    let conn = backend.plane.db().conn().await.unwrap();
    // As large a state goes around the limit of a request.
    let (body, key) = (machines(2, "l", 10_000), "states/large.tfstate");
    backend.write(None, &state(1, "l", "a")).await;
    backend.plane.deps.blobs.put(key, body.clone().into(), "application/json").await.unwrap();
    let size = i64::try_from(body.len()).unwrap();
    conn.execute("UPDATE tfstates SET head_key = $1, head_serial = 2, head_size_bytes = $2", &[&key, &size])
        .await
        .unwrap();
    let began = Instant::now();
    let done = bring_up_to_date(&backend).await;
    eprintln!("10,000 resources indexed in {:?}", began.elapsed());
    assert_eq!(done[0]["resources"], json!(10_000), "{done:?}");

    let other: WorkspaceId = insert_workspace(&backend.plane, backend.unit, "runs_only").await;
    conn.execute(
        "INSERT INTO state_indexes (workspace_id, business_unit_id, version_id, indexed_at) VALUES ($1, $2, $1, now())",
        &[&other, &backend.unit],
    )
    .await
    .unwrap();
    conn.execute(FILL, &[&backend.unit, &other]).await.unwrap();
    conn.batch("ANALYZE resources").await.unwrap();
    for (query, expected) in
        [("q=i-09999", 1), ("q=nowhere", 0), ("q=more+aws_vpc", 200), ("type=aws_instance", 200)]
    {
        let began = Instant::now();
        assert_eq!(search(&backend, &backend.token, query).await.len(), expected, "{query}");
        let taken = began.elapsed();
        eprintln!("{query}: {taken:?} of 100,000 resources");
        // Far above what it takes, far below what a person would call broken.
        assert!(taken < Duration::from_secs(2), "{query}: {taken:?}");
    }
}
