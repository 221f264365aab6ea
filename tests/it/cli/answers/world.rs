//! A server on which every call of the command line succeeds.

use serde_json::{Value, json};

use crate::cli::server::{FakeServer, Reply};

/// Ids of the one thing of each kind, and the letter that stands for it in the table.
pub(super) const IDS: &[(char, &str)] = &[
    ('G', "0190f3c2-0000-7000-8000-000000000091"),
    ('I', "0190f3c2-0000-7000-8000-0000000000a9"),
    ('K', "0190f3c2-0000-7000-8000-0000000000a1"),
    ('S', "0190f3c2-0000-7000-8000-0000000000a2"),
    ('P', "0190f3c2-0000-7000-8000-0000000000a3"),
    ('W', "0190f3c2-0000-7000-8000-0000000000b1"),
    ('R', "0190f3c2-0000-7000-8000-0000000000d1"),
    ('V', "0190f3c2-0000-7000-8000-0000000000e1"),
    ('Q', "0190f3c2-0000-7000-8000-0000000000f1"),
    ('T', "0190f3c2-0000-7000-8000-0000000000c1"),
    ('A', "0190f3c2-0000-7000-8000-0000000000a4"),
    ('U', "0190f3c2-0000-7000-8000-000000000002"),
];

/// The id behind a letter.
pub(super) fn id(letter: char) -> &'static str {
    IDS.iter().find(|(known, _)| *known == letter).map(|(_, id)| *id).expect("a known letter")
}

/// A path whose segments of one letter are ids.
pub(super) fn path(text: &str) -> String {
    let segment = |segment: &str| match segment.chars().next() {
        Some(letter) if segment.len() == 1 => id(letter).to_owned(),
        _ => segment.to_owned(),
    };
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn run(command: &str, status: &str) -> Value {
    json!({ "id": id('R'), "workspace_id": id('W'), "command": command, "status": status, "branch": "main",
            "message": "more", "plan_summary": { "add": 2, "change": 1, "destroy": 0 }, "has_changes": true,
            "approval_digest": "ab".repeat(4) })
}

/// Every route that is called, with what it answers. `command` is that of the run.
pub(super) fn replies(command: &str) -> Vec<(&'static str, u16, Value)> {
    let workspace = json!({ "id": id('W'), "name": "web", "environment": "prod", "region": "eu-west-1",
        "aws_account_id": "global", "repo_url": "https://git.example.com/infra.git", "repo_ref": "main",
        "tf_working_dir": "stacks/web", "kind": "terraform", "tags": { "team": "web" }, "state_writes": "runs_only" });
    let version = json!({ "id": id('V'), "workspace_id": id('W'), "serial": 4, "lineage": "l", "sha256": "ab",
        "size_bytes": 2048, "terraform_version": "1.11.4", "run_id": id('R'), "is_current": true,
        "resource_count": 12, "emptied": false });
    let quarantined =
        json!({ "id": id('Q'), "serial": 5, "reason": "lock_lost", "size_bytes": 10, "run_id": id('R') });
    let result = json!({
        "entries": [{ "path": "stacks/web", "name": "web", "environment": "prod", "region": "eu-west-1",
                      "aws_account_id": "global", "kind": "terraform" }],
        "created": [{ "id": id('W'), "path": "stacks/web", "name": "web" }], "skipped": [],
        "branches": ["main", "feature/x"], "default_branch": "main",
        "outcome": "ok", "detail": "it can be read", "repo_url": "https://git.example.com/infra.git",
        "subscription_name": "Payments", "client_email": "plumbline@p.iam.gserviceaccount.com",
        "server_version": "v1.33.1", "team_name": "Acme", "bot_name": "plumbline",
        "ok": true, "caller_arn": "arn:aws:iam::123456789012:user/plumbline", "assumed_arns": [] });
    let task = json!({ "id": id('T'), "kind": "run_plan", "subject_id": id('R'), "status": "done", "attempts": 1,
        "attempts_max": 3, "result": result });
    let entry = json!({ "sequence": 7, "action": "run.approve", "resource_type": "run", "resource_id": id('R'),
        "user_id": id('U') });
    let unit = json!({ "id": id('U'), "slug": "default", "name": "Default" });
    let git = json!({ "id": id('G'), "name": "forge", "kind": "token", "host": "git.example.com",
        "path_prefix": "org", "username": "bot", "secret": { "configured": true, "masked_tail": "ABCD" } });
    let used = json!({ "workspaces_total": 1, "workspaces": [
        { "id": id('W'), "name": "web", "repo_url": "https://git.example.com/infra.git" }] });
    let key = json!({ "id": id('K'), "name": "ci", "token_prefix": "plb_abcdefgh", "capability": "plan",
        "workspace_ids": [id('W')] });
    let rule = json!({ "id": id('I'), "name": "main", "issuer": "https://token.example.com", "audience": "a",
        "subject": "repo:acme/infra:ref:refs/heads/main", "claims": { "environment": "prod" },
        "capability": "apply", "workspace_ids": [id('W')], "key_minutes": 15 });
    let mut minted = key.clone();
    minted["token"] = json!("plb_the-token");
    let variable = json!({ "id": id('A'), "key": "region", "value": "eu", "is_readable": true, "is_hcl": true,
        "description": "where" });
    let merged = json!({ "key": "region", "value": "eu", "is_readable": true, "source": { "scope": "workspace" },
        "overrides": [{ "scope": "variable_set", "name": "shared" }] });
    let merged = json!({ "items": [merged], "total_bytes": 8, "fits": true });
    let set = json!({ "id": id('S'), "name": "shared", "priority": 5, "all_workspaces": true, "description": "all" });
    let attached = json!({ "workspace_id": id('W'), "workspace_name": "web" });
    let change = json!([{ "address": "terraform_data.web", "actions": ["create"] }]);
    let items = |item: &Value| json!({ "items": [item] });
    let started = json!({ "task_id": id('T') });
    vec![
        ("POST /auth/logout", 204, Value::Null),
        ("GET /workspaces", 200, items(&workspace)),
        ("POST /workspaces", 201, workspace.clone()),
        ("GET /workspaces/W", 200, workspace.clone()),
        ("PUT /workspaces/W", 200, workspace.clone()),
        ("DELETE /workspaces/W", 204, Value::Null),
        ("POST /workspaces/discover", 202, started.clone()),
        ("POST /workspaces/import", 202, started.clone()),
        ("POST /workspaces/W/branches", 202, started.clone()),
        (
            "PUT /workspaces/W/state-consumers",
            200,
            json!({ "items": [{ "workspace_id": "W", "name": "batch" }] }),
        ),
        ("POST /workspaces/W/lock", 200, workspace.clone()),
        ("POST /workspaces/W/unlock", 200, workspace.clone()),
        ("POST /workspaces/W/unblock", 200, workspace),
        ("GET /variables", 200, items(&variable)),
        ("GET /variables/A", 200, variable.clone()),
        ("PATCH /variables/A", 200, variable),
        ("DELETE /variables/A", 204, Value::Null),
        ("GET /workspaces/W/variables/effective", 200, merged.clone()),
        ("GET /runs/R/variables", 200, merged),
        ("GET /variable-sets", 200, items(&set)),
        ("POST /variable-sets", 201, set.clone()),
        ("GET /variable-sets/S", 200, set.clone()),
        ("PATCH /variable-sets/S", 200, set),
        ("DELETE /variable-sets/S", 204, Value::Null),
        ("GET /variable-sets/S/workspaces", 200, items(&attached)),
        ("PUT /variable-sets/S/workspaces/W", 204, Value::Null),
        ("DELETE /variable-sets/S/workspaces/W", 204, Value::Null),
        ("GET /runs", 200, items(&run(command, "awaiting_approval"))),
        ("POST /runs", 201, run(command, "pending")),
        ("GET /runs/R", 200, run("apply", "awaiting_approval")),
        ("POST /runs/R/cancel", 200, run("apply", "cancelled")),
        ("POST /runs/R/promote", 201, run("apply", "pending")),
        (
            "GET /runs/R/steps",
            200,
            json!({ "items": [{ "position": 1, "phase": "plan", "name": "init", "attempt": 1,
            "status": "succeeded", "log_bytes": 7, "duration_seconds": 4 }] }),
        ),
        (
            "GET /runs/R/logs",
            200,
            json!({ "position": 1, "offset": 0, "next_offset": 7, "text": "the log",
            "complete": true }),
        ),
        (
            "GET /runs/R/plan",
            200,
            json!({ "summary": {}, "resource_changes": change, "text": "Terraform will…" }),
        ),
        (
            "GET /runs/R/artifacts",
            200,
            json!({ "items": [{ "kind": "plan_text", "size_bytes": 8, "sha256": "ab" }] }),
        ),
        (
            "GET /runs/R/unrecorded-resources",
            200,
            json!({ "is_state_readable": true, "truncated": false, "items": [{ "address": "a.b",
                "resource_id": "i-1", "import_command": "terraform import a.b i-1" }] }),
        ),
        ("GET /runs/R/artifacts/plan_text", 200, json!("the plan")),
        ("POST /approvals/R/approve", 200, run("apply", "applying")),
        ("POST /approvals/R/reject", 200, run("apply", "cancelled")),
        ("GET /workspaces/W/state-versions", 200, items(&version)),
        (
            "GET /workspaces/W/outputs",
            200,
            json!({ "state_version_id": id('V'), "serial": 4, "truncated": false, "items": [
                { "name": "url", "type": "string", "sensitive": false, "value": "https://x", "withheld": null },
                { "name": "key", "type": "string", "sensitive": true, "value": null, "withheld": "sensitive" },
            ] }),
        ),
        (
            "GET /resources",
            200,
            items(&json!({ "workspace_name": "web", "address": "aws_vpc.main", "resource_id": "vpc-1", "arn": null })),
        ),
        ("GET /state-versions/V", 200, version.clone()),
        ("GET /state-versions/V/download", 200, json!({ "serial": 4 })),
        (
            "GET /state-versions/V/diff",
            200,
            json!({ "added": ["a.new"], "changed": [], "removed": ["a.old"],
            "outputs_changed": ["url"] }),
        ),
        ("POST /state-versions/V/rollback", 200, version.clone()),
        ("GET /workspaces/W/quarantined-states", 200, items(&quarantined)),
        ("POST /quarantined-states/Q/promote", 200, version),
        ("POST /quarantined-states/Q/discard", 200, quarantined),
        ("POST /workspaces/W/accept-next-lineage", 204, Value::Null),
        (
            "GET /workspaces/W/state-lock",
            200,
            json!({ "held": true, "lock_id": "l1", "run_id": id('R'),
            "info": { "Who": "ada@laptop", "Operation": "OperationTypeApply" } }),
        ),
        ("DELETE /workspaces/W/state-lock", 204, Value::Null),
        ("GET /tasks", 200, items(&task)),
        ("GET /tasks/T", 200, task.clone()),
        ("POST /tasks/T/replay", 201, task),
        ("GET /audit", 200, items(&entry)),
        ("GET /audit/verify", 200, json!({ "ok": true, "chains": 2, "entries": 40, "broken": [] })),
        (
            "GET /audit/chains",
            200,
            json!({ "items": [{ "chain_id": id('U'), "sequence": 1, "hash": "ab".repeat(32) }] }),
        ),
        (
            "GET /audit/export",
            200,
            json!({ "items": [{ "chain_id": id('U'), "sequence": 1, "hash": "ab".repeat(32),
            "previous_hash": "00".repeat(32), "canonical": "{}" }] }),
        ),
        (
            "POST /admin/rekey",
            202,
            json!({ "key_id": "0a1b2c3d", "status": "running", "columns": [{ "table": "runs", "remaining": 0,
                "column": "variables_sealed", "resealed": 5 }] }),
        ),
        ("GET /git-credentials", 200, items(&git)),
        ("POST /git-credentials", 201, git.clone()),
        ("GET /git-credentials/G", 200, git.clone()),
        ("PATCH /git-credentials/G", 200, git),
        ("DELETE /git-credentials/G", 204, Value::Null),
        ("GET /git-credentials/G/usage", 200, used),
        ("POST /git-credentials/G/test", 202, started),
        ("GET /ci-trust-rules", 200, items(&rule)),
        ("POST /ci-trust-rules", 201, rule.clone()),
        ("GET /ci-trust-rules/I", 200, rule),
        ("DELETE /ci-trust-rules/I", 204, Value::Null),
        ("GET /api-keys", 200, items(&key)),
        ("POST /api-keys", 201, minted.clone()),
        ("GET /api-keys/K", 200, key.clone()),
        ("DELETE /api-keys/K", 200, key),
        ("POST /api-keys/K/regenerate", 200, minted.clone()),
        ("POST /api-keys/K/rotate", 201, minted),
        ("GET /business-units", 200, items(&unit)),
        ("POST /business-units", 201, unit.clone()),
        ("PUT /business-units/U", 200, unit.clone()),
        ("POST /business-units/U/archive", 200, unit.clone()),
        ("POST /business-units/U/unarchive", 200, unit),
    ]
    .into_iter()
    .chain(people())
    .chain(super::accounts::replies())
    .chain(super::settings::replies())
    .collect()
}

/// Routes about people.
fn people() -> Vec<(&'static str, u16, Value)> {
    let user = json!({ "id": id('P'), "email": "ada@example.com", "display_name": "Ada", "is_superadmin": true,
        "invite_expires_at": "2026-01-01T00:00:00Z", "memberships": [{ "slug": "default", "role": "viewer" }] });
    let session = json!({ "id": id('S'), "current": true, "address": "192.0.2.7", "user_agent": "plumb/9" });
    vec![
        ("POST /auth/logout-all", 204, Value::Null),
        ("POST /auth/accept-invite", 204, Value::Null),
        ("PUT /me/password", 204, Value::Null),
        ("GET /sessions", 200, json!({ "items": [session] })),
        ("DELETE /sessions/S", 204, Value::Null),
        ("GET /users", 200, json!({ "items": [user.clone()] })),
        ("POST /users", 201, user.clone()),
        ("GET /users/P", 200, user.clone()),
        ("PATCH /users/P", 200, user.clone()),
        ("DELETE /users/P", 204, Value::Null),
        ("POST /users/P/disable", 200, user.clone()),
        ("POST /users/P/enable", 200, user),
        ("PUT /users/P/password", 204, Value::Null),
        ("POST /users/P/invite", 200, json!({ "user_id": id('P'), "token": "pli_2" })),
        ("DELETE /users/P/invite", 204, Value::Null),
        ("DELETE /users/P/sessions", 204, Value::Null),
    ]
}

/// A server that answers all of it.
pub(super) async fn server(command: &str) -> FakeServer {
    let server = FakeServer::start().await;
    for (route, status, body) in replies(command) {
        let (method, place) = route.split_once(' ').expect("method and path");
        let reply = match body {
            Value::Null => Reply::empty(status),
            body => Reply::status(status, &body).header("etag", "\"v7\""),
        };
        server.on(method, &path(place), [reply]);
    }
    server
}
