//! How each route of the API succeeds.

use serde_json::{Value, json};

use super::super::cloud_accounts::{KINDS, Kind};
use super::super::integrations::everything;
use super::super::shell::Route;
use super::super::tenants::path_with;
use super::stage::{Person, Stage, Unit, text};
use crate::plane::PASSWORD;

const FIRST: &str = "only for the first time";
const OWN: &str = "chosen by the person";

/// One request, and who it is from.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// In whose chain entries of a unit belong.
    pub(super) unit: Unit,
    /// Nobody's, or somebody's, proved by the token or by what the body says.
    pub(super) user: Option<uuid::Uuid>,
    pub(super) token: Option<String>,
    pub(super) body: Option<Value>,
}

impl Request {
    /// Of a person in a unit, below `/api/v1`.
    pub(super) fn of(by: &Person, unit: &Unit, method: &str, path: &str) -> Self {
        Self {
            method: method.into(),
            path: format!("/api/v1/{path}"),
            unit: unit.clone(),
            user: Some(by.id.into()),
            token: Some(by.token.clone()),
            body: None,
        }
    }

    pub(super) fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Without a token.
    fn unsigned(self) -> Self {
        Self { token: None, ..self }
    }
}

/// A request that succeeds, after everything that it needs was done.
pub(super) async fn request(stage: &Stage, route: &Route) -> Request {
    let path = route.pattern.trim_start_matches("/api/v1/");
    if route.method == "GET" {
        return read(stage, route, path);
    }
    let unit = &stage.fresh().await;
    let feature = path.split('/').next().unwrap_or_default();
    match feature {
        "auth" | "me" | "sessions" => sign_in(stage, unit, &route.method, path).await,
        "users" => people(stage, unit, &route.method, path).await,
        "aws-accounts" | "azure-subscriptions" | "gcp-projects" | "clusters" => {
            let kind = KINDS.iter().find(|kind| kind.path == feature).unwrap();
            account(stage, unit, &route.method, path, kind).await
        }
        "variables" | "variable-sets" => variables(stage, unit, &route.method, path).await,
        "workspaces" => workspaces(stage, unit, &route.method, path).await,
        "runs" | "approvals" => runs(stage, unit, &route.method, path).await,
        _ => others(stage, unit, &route.method, path).await,
    }
}

/// Reads are of the unit that has one of everything.
fn read(stage: &Stage, route: &Route, path: &str) -> Request {
    let of_the_platform = ["admin/", "auth/issuer-keys", "auth/jwt-secrets", "runtime-config"];
    let is_platform = of_the_platform.iter().any(|one| path.starts_with(one));
    // The admin has had the plan's text as an artifact: for an hour that entry stands for both.
    let is_read_already = path == "runs/{id}/plan";
    let by = if is_platform || is_read_already { &stage.superadmin } else { &stage.admin };
    let id = if path.contains('{') { stage.whole.id_for(route) } else { "" };
    let path = path_with(route, id, &stage.whole.ids);
    Request::of(by, &stage.default_unit(), "GET", path.trim_start_matches("/api/v1/"))
}

async fn sign_in(stage: &Stage, unit: &Unit, method: &str, path: &str) -> Request {
    let member = stage.member(unit).await;
    let email = format!("{}@plumbline.test", member.id.0.simple());
    let credentials = json!({ "email": email, "password": PASSWORD });
    let request = Request::of(&member, unit, method, path);
    match path {
        "auth/accept-invite" => {
            let new = json!({ "email": format!("{}@plumbline.test", unit.slug) });
            let id = stage.id(unit, "users", new).await;
            let invite = stage.made(unit, "POST", &format!("users/{id}/invite"), None).await;
            let body = json!({ "token": invite["token"], "password": OWN });
            Request { user: id.parse().ok(), ..request.unsigned().with(body) }
        }
        "auth/ci-token" => {
            let body = json!({ "token": stage.ci_token(unit).await, "business_unit": unit.slug });
            Request { user: None, ..request.unsigned().with(body) }
        }
        "auth/issuer-keys" => {
            stage.trusted(unit).await;
            Request::of(&stage.superadmin, unit, method, path).with(json!({ "at_once": true }))
        }
        "auth/oidc/token" => request.unsigned().with(json!({ "code": stage.code(&member).await })),
        "auth/jwt-secrets" => Request::of(&stage.superadmin, unit, method, path).with(json!({})),
        "auth/refresh" => {
            let pair = stage.made(unit, "POST", "auth/token", credentials).await;
            request.unsigned().with(json!({ "refresh_token": pair["refresh_token"] }))
        }
        "auth/token" => request.unsigned().with(credentials),
        "me/password" => request.with(json!({ "current_password": PASSWORD, "new_password": OWN })),
        "sessions/{id}" => {
            let (_, _, sessions) =
                stage.plane().call("GET", "/api/v1/sessions", member.token.as_str(), None).await;
            let own = text(&sessions["items"][0]["id"]);
            Request::of(&member, unit, method, &format!("sessions/{own}"))
        }
        _ => request,
    }
}

async fn people(stage: &Stage, unit: &Unit, method: &str, path: &str) -> Request {
    let membership = |unit: &Unit| json!([{ "business_unit_id": unit.id, "role": "viewer" }]);
    let new = json!({ "email": format!("{}@plumbline.test", unit.slug), "memberships": membership(unit) });
    if path == "users" {
        return Request::of(&stage.superadmin, unit, method, path).with(new);
    }
    let member = stage.member(unit).await.id;
    let request = Request::of(&stage.superadmin, unit, method, &path.replace("{id}", &member.to_string()));
    match (method, path) {
        ("PATCH", _) => {
            // What concerns the person, and a membership.
            let alone = stage.made(unit, "POST", "users", json!({ "email": "alone@plumbline.test" })).await;
            let body = json!({ "display_name": "Ada", "add_memberships": membership(unit) });
            let path = path.replace("{id}", &text(&alone["id"]));
            Request::of(&stage.superadmin, unit, method, &path).with(body)
        }
        ("PUT", _) => request.with(json!({ "password": FIRST })),
        ("POST", "users/{id}/enable") => {
            stage.made(unit, "POST", &format!("users/{member}/disable"), None).await;
            request
        }
        ("DELETE", "users/{id}/invite") => {
            stage.made(unit, "POST", &format!("users/{member}/invite"), None).await;
            request
        }
        _ => request,
    }
}

async fn account(stage: &Stage, unit: &Unit, method: &str, path: &str, kind: &Kind) -> Request {
    if method == "POST" && path == kind.path {
        return Request::of(&stage.admin, unit, method, path).with((kind.new)());
    }
    let id = stage.id(unit, kind.path, (kind.new)()).await;
    let request = Request::of(&stage.admin, unit, method, &path.replace("{id}", &id));
    if method == "PUT" { request.with((kind.replacement)()) } else { request }
}

async fn variables(stage: &Stage, unit: &Unit, method: &str, path: &str) -> Request {
    let new = json!({ "key": "k", "value": "v" });
    let set = stage.id(unit, "variable-sets", json!({ "name": "shared" })).await;
    let workspace = stage.workspace(unit).await;
    let attached = format!("variable-sets/{set}/workspaces/{workspace}");
    let place = if path.starts_with("variables") { "variables" } else { "variable-sets/{id}/variables" };
    let place = place.replace("{id}", &set);
    let variable = if method == "POST" { String::new() } else { stage.id(unit, &place, new.clone()).await };
    let body = match (method, path) {
        ("POST", "variable-sets") => Some(json!({ "name": "another" })),
        ("PATCH", "variable-sets/{id}") => Some(json!({ "priority": 1 })),
        ("POST", _) => Some(new),
        ("PATCH", _) => Some(json!({ "value": "w" })),
        ("DELETE", "variable-sets/{id}/workspaces/{workspace_id}") => {
            stage.made(unit, "PUT", &attached, None).await;
            None
        }
        _ => None,
    };
    let id = if path.starts_with("variables") { &variable } else { &set };
    let path = path.replace("{variable_id}", &variable).replace("{workspace_id}", &workspace.to_string());
    let request = Request::of(&stage.admin, unit, method, &path.replace("{id}", id));
    Request { body, ..request }
}

async fn workspaces(stage: &Stage, unit: &Unit, method: &str, path: &str) -> Request {
    let repository = json!({ "repo_url": "https://git.example.com/infra.git" });
    let mut new = json!({ "name": "net", "environment": "dev" });
    new["repo_url"] = repository["repo_url"].clone();
    let workspace = stage.workspace(unit).await;
    let own = format!("workspaces/{workspace}");
    let mut variable = String::new();
    let body = match (method, path) {
        ("POST", "workspaces") => Some(new),
        ("POST", "workspaces/discover" | "workspaces/import") => Some(repository),
        ("PUT", "workspaces/{id}/state-consumers") => Some(json!({ "workspace_ids": [] })),
        ("PUT", _) => Some(json!({ "environment": "prod" })),
        ("DELETE", "workspaces/{id}/state-lock") => {
            let lock = format!("/api/v1/state/{workspace}/lock");
            let token = stage.superadmin.token.as_str();
            let locked = stage.plane().call("POST", &lock, token, super::machines::lock("l-1")).await;
            assert!(locked.0.is_success(), "{}", locked.2);
            None
        }
        ("POST", "workspaces/{id}/unblock") => {
            let block = "UPDATE workspaces SET blocked_at = plumbline_now(), blocked_reason = 'lost'";
            stage.execute(&format!("{block} WHERE id = '{workspace}'")).await;
            Some(json!({ "note": "looked at it" }))
        }
        ("POST", "workspaces/{id}/lock") => Some(json!({ "reason": "by hand" })),
        ("POST", "workspaces/{id}/unlock") => {
            let lock = "UPDATE workspaces SET locked_at = plumbline_now(), locked_by = id, locked_who = 'x'";
            stage.execute(&format!("{lock}, locked_reason = 'r' WHERE id = '{workspace}'")).await;
            None
        }
        ("POST", "workspaces/{id}/accept-next-lineage") => {
            assert!(stage.write_state(workspace, "", 1).await.is_success());
            None
        }
        (_, with_variables) if with_variables.contains("/variables") => {
            let new = json!({ "key": "k", "value": "v" });
            if method != "POST" {
                variable = stage.id(unit, &format!("{own}/variables"), new.clone()).await;
            }
            match method {
                "POST" => Some(new),
                "PATCH" => Some(json!({ "value": "w" })),
                _ => None,
            }
        }
        _ => None,
    };
    let path = path.replace("{id}", &workspace.to_string()).replace("{variable_id}", &variable);
    Request { body, ..Request::of(&stage.admin, unit, method, &path) }
}

async fn runs(stage: &Stage, unit: &Unit, method: &str, path: &str) -> Request {
    let (id, body) = match path {
        "runs" => {
            let workspace = stage.workspace(unit).await;
            (String::new(), json!({ "workspace_id": workspace, "command": "plan" }))
        }
        "runs/{id}/promote" => (stage.plan_only(unit).await, json!({})),
        _ => (stage.planned(unit).await, json!({})),
    };
    let path = path.replace("{id}", &id).replace("{run_id}", &id);
    Request::of(&stage.admin, unit, method, &path).with(body)
}

async fn others(stage: &Stage, unit: &Unit, method: &str, path: &str) -> Request {
    let by_admin = |path: &str| Request::of(&stage.admin, unit, method, path);
    let by_superadmin = |path: &str| Request::of(&stage.superadmin, unit, method, path);
    let key = json!({ "name": "ci" });
    let rule =
        json!({ "name": "r", "issuer": "https://token.example.com", "audience": "a", "subject": "repo:a/b" });
    let forge = json!({ "name": "forge", "kind": "token", "host": "git.example.com", "token": "planted" });
    match (method, path) {
        ("POST", "admin/rekey") => {
            // The one that is under way is another one's only when it has ended.
            let end = "UPDATE rekeys SET status = 'done', finished_at = plumbline_now()";
            stage.execute(end).await;
            by_superadmin(path)
        }
        ("POST", "api-keys") => by_admin(path).with(key),
        (_, path) if path.starts_with("api-keys/") => {
            // A key is made by a person for themselves.
            let headers = [("x-business-unit", unit.slug.as_str())];
            let token = stage.admin.token.as_str();
            let made = stage.plane().call_with("POST", "/api/v1/api-keys", token, key, &headers).await.2;
            let id = text(&made["id"]);
            let request = by_admin(&path.replace("{id}", &id));
            if path.ends_with("rotate") { request.with(json!({})) } else { request }
        }
        ("POST", "business-units") => {
            by_superadmin(path).with(json!({ "slug": format!("{}-more", unit.slug), "name": "Unit" }))
        }
        (_, path) if path.starts_with("business-units/") => {
            if path.ends_with("unarchive") {
                let archive = format!("business-units/{}/archive", unit.id);
                stage.made(&stage.default_unit(), "POST", &archive, None).await;
            }
            let request = Request::of(
                &stage.superadmin,
                &stage.default_unit(),
                method,
                &path.replace("{id}", &unit.id.to_string()),
            );
            if method == "PUT" { request.with(json!({ "name": "Another" })) } else { request }
        }
        ("POST", "ci-trust-rules") => by_admin(path).with(rule),
        ("DELETE", "ci-trust-rules/{id}") => {
            let id = stage.id(unit, "ci-trust-rules", rule).await;
            by_admin(&path.replace("{id}", &id))
        }
        ("POST", "git-credentials") => by_admin(path).with(forge),
        (_, path) if path.starts_with("git-credentials/") => {
            let id = stage.id(unit, "git-credentials", forge).await;
            let request = by_admin(&path.replace("{id}", &id));
            match method {
                "PATCH" => request.with(json!({ "token": "planted anew" })),
                "POST" => request.with(json!({ "repo_url": "https://git.example.com/infra.git" })),
                _ => request,
            }
        }
        (_, path) if path.starts_with("integrations/") => {
            let name = path.trim_start_matches("integrations/").trim_end_matches("/test");
            let all = everything(|what| format!("planted-{what}-1234"));
            let (_, body) = all.into_iter().find(|(known, _)| *known == name).unwrap();
            if method == "PUT" {
                return by_admin(path).with(body);
            }
            let set = format!("integrations/{name}");
            stage.made(unit, "PUT", &set, body).await;
            by_admin(path)
        }
        ("POST", "presence") => by_admin(path).with(json!({ "bu_slug": unit.slug })),
        (_, path) if path.starts_with("quarantined-states/") => {
            by_admin(&path.replace("{id}", &stage.quarantined(unit).await))
        }
        (_, "runtime-config/{key}") => {
            let path = "runtime-config/auth.access_token_expire_minutes";
            if method == "PUT" {
                return by_superadmin(path).with(json!({ "value": 61 }));
            }
            stage.made(unit, "PUT", path, json!({ "value": 62 })).await;
            by_superadmin(path)
        }
        ("POST", "state-versions/{id}/rollback") => {
            by_admin(&path.replace("{id}", &stage.versions(unit).await.1))
        }
        ("POST", "tasks/{id}/replay") => by_admin(&path.replace("{id}", &stage.dead_letter(unit).await)),
        _ => panic!("how does {method} {path} succeed?"),
    }
}
