//! One change from Git to applied, as a person makes it, and what must be true afterwards however it went.

use std::collections::BTreeSet;

use plumbline_core::db::Query as _;
use plumbline_emulator::{Emulator, Options};
use plumbline_runtime::Function;
use serde_json::json;

use super::program::{programs, scratch};
use super::session::{Session, commit_and_push, demo_repository};

/// Imports, plans, approves, applies; changes one value and does it again; then looks at everything that was left.
pub async fn one_change_from_git_to_applied(adjust: impl FnOnce(&mut Options)) {
    let scratch = scratch();
    let mut options = Options::scratch(scratch.path().join("home"), programs());
    adjust(&mut options);
    let executors = options.directory.join("executors");
    // A pooler closes what is idle.
    let keeps_connections = options.pooler_port.is_none();
    let emulator = Emulator::start(options).await.expect("it starts");
    let root = scratch.path().join("git");
    std::fs::create_dir(&root).expect("created");
    let repository = demo_repository(&root).await;
    let session = Session::sign_in(&emulator.facts).await;

    let workspaces = session.import(&repository.url).await;
    let [workspace] = workspaces.as_slice() else { panic!("one workspace, not {workspaces:?}") };
    let applied = session.apply(workspace).await;
    assert_eq!(applied["plan_summary"]["add"], json!(8), "{applied}");

    let services = repository.root.join("work/environments/dev/services.auto.tfvars");
    let text =
        std::fs::read_to_string(&services).expect("it is there").replace("replicas = 2", "replicas = 1");
    std::fs::write(&services, text).expect("written");
    commit_and_push(&repository.root.join("work")).await;
    let applied = session.apply(workspace).await;
    assert_eq!(applied["plan_summary"]["destroy"], json!(1), "{applied}");

    let versions = session.get(&format!("workspaces/{workspace}/state-versions")).await;
    let newest = versions["items"][0]["id"].as_str().expect("a version").to_owned();
    let diff = session.get(&format!("state-versions/{newest}/diff")).await;
    assert_eq!(diff["removed"], json!(["module.service[\"web\"].terraform_data.replica[1]"]), "{diff}");
    assert_eq!(session.get(&format!("workspaces/{workspace}/state-lock")).await["held"], json!(false));
    let state = session.get(&format!("state/{workspace}")).await;
    assert_eq!(state["resources"].as_array().map(Vec::is_empty), Some(false), "as terraform reads it");
    assert_eq!(session.get("audit/verify").await["ok"], json!(true));

    nothing_happened_twice(&emulator).await;
    if keeps_connections {
        functions_signed_in_as_themselves(&emulator).await;
    }
    // A program per attempt has a directory of its own.
    let launched = std::fs::read_dir(executors).expect("there were executors").count();
    assert_eq!(launched, 4, "two plans and two applies");
    emulator.stop().await.expect("it stops");
}

/// Two runs, each planned once and applied once, by one executor for each attempt.
async fn nothing_happened_twice(emulator: &Emulator) {
    const TASKS: &str = "
        SELECT concat_ws(' ', t.kind, t.outcome, t.attempts, count(e.id), count(DISTINCT e.traded_at))
        FROM finished_tasks t LEFT JOIN executors e ON e.task_id = t.id
        WHERE t.class = 'executor' GROUP BY t.id, t.kind, t.outcome, t.attempts ORDER BY t.created_at";
    // What indexes the applied states comes after the runs, in its own time.
    const LIVE: &str = "
        SELECT (SELECT count(*) FROM tasks WHERE class = 'executor')
             + (SELECT coalesce(sum(running), 0)::bigint FROM queue_units WHERE class = 'executor')";
    const ENTRIES: &str = "
        SELECT concat_ws(' ', action, count(*)) FROM audit_entries WHERE action LIKE 'run.%' GROUP BY action
        ORDER BY min(sequence)";
    let conn = emulator.deps.db.conn().await.expect("a connection");
    let texts = async |sql| -> Vec<String> {
        conn.query(sql, &[]).await.expect("rows").iter().map(|row| row.get(0)).collect()
    };
    let (plan, apply) = ("run_plan done 1 1 1", "run_apply done 1 1 1");
    assert_eq!(texts(TASKS).await, [plan, apply, plan, apply]);
    let entries = ["run.trigger 2", "run.planned 2", "run.approve 2", "run.apply_begin 2", "run.end 2"];
    assert_eq!(texts(ENTRIES).await, entries);
    let live: i64 = conn.query_one(LIVE, &[]).await.expect("a row").get(0);
    assert_eq!(live, 0, "tasks that are not over, and running ones that are counted");
}

/// Each function that this change needs has connections of its own role. The worker has none where nobody wakes it.
async fn functions_signed_in_as_themselves(emulator: &Emulator) {
    const ROLES: &str = "SELECT DISTINCT usename::text FROM pg_stat_activity WHERE usename IS NOT NULL";
    let conn = emulator.deps.db.conn().await.expect("a connection");
    let rows = conn.query(ROLES, &[]).await.expect("rows");
    let signed_in: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let needed =
        [Function::Api, Function::Tfstate, Function::Callback, Function::Outbound, Function::Reconciler];
    for function in needed {
        assert!(signed_in.contains(function.role()), "{signed_in:?}");
    }
}
