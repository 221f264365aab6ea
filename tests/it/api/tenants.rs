//! What another business unit has does not exist: one sweep over every route with an id in its path, with ids of things
//! that are really there.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::protocol::ArtifactKind;
use plumbline_core::secrets::{Domain, Place};
use serde_json::{Value, json};

use super::cloud_accounts::KINDS;
use super::shell::{Route, routes};
use crate::executors::{ADDS_ONE, FakeExecutor};
use crate::plane::{Answer, TestPlane};
use crate::store::state_client::{Backend, state};

/// An id of nothing.
const NOTHING: &str = "01890000-0000-7000-8000-000000000000";

/// A variable set, and a variable of each owner.
const VARIABLES: [(&str, &str); 4] = [
    ("variable-sets", "01890000-0000-7000-8000-0000000000c1"),
    ("variables", "01890000-0000-7000-8000-0000000000c2"),
    ("variables of variable-sets", "01890000-0000-7000-8000-0000000000c3"),
    ("variables of workspaces", "01890000-0000-7000-8000-0000000000c4"),
];

/// A unit that has one of everything that has an id.
pub(super) struct Foreign {
    pub(super) backend: Backend,
    /// By the segment of the path that they follow.
    pub(super) ids: BTreeMap<&'static str, String>,
}

impl Foreign {
    pub(super) async fn start() -> Self {
        Self::on(Backend::start().await).await
    }

    /// In the unit and on the plane of a backend.
    pub(super) async fn on(backend: Backend) -> Self {
        for value in ["a", "b"] {
            let serial = if value == "a" { 1 } else { 2 };
            assert_eq!(backend.write(None, &state(serial, "l", value)).await.0, StatusCode::OK);
        }
        backend.write(Some("never-held"), &state(3, "l", "late")).await;
        let accounts = Self::accounts(&backend).await;
        let body = json!({ "workspace_id": backend.workspace, "command": "apply" });
        let (status, _, run) = backend.plane.call("POST", "/api/v1/runs", backend.token.as_str(), body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        let executor = FakeExecutor::start(&backend.plane).await;
        executor.log(1, 0, b"cloned").await;
        assert_eq!(executor.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
        let version = backend.versions().await[0]["id"].clone();
        let token = backend.token.as_str();
        let me = backend.plane.call("GET", "/api/v1/me", token, None).await.2;
        let own_sessions = backend.plane.call("GET", "/api/v1/sessions", token, None).await.2;
        let quarantined = backend.quarantined().await[0]["id"].clone();
        let credential =
            json!({ "name": "forge", "kind": "token", "host": "git.example.com", "token": "planted" });
        let path = "/api/v1/git-credentials";
        let (status, _, credential) =
            backend.plane.call("POST", path, backend.token.as_str(), credential).await;
        assert_eq!(status, StatusCode::CREATED, "{credential}");
        let text = |id: &Value| id.as_str().unwrap().to_owned();
        let (key, rule) = (Self::api_key(&backend).await, Self::trust_rule(&backend).await);
        let variables = VARIABLES.map(|(name, id)| (name, id.to_owned()));
        let mut ids = BTreeMap::from([
            ("api-keys", key),
            // The platform's: every unit sees the same.
            ("runtime-config", "auth.access_token_expire_minutes".to_owned()),
            ("ci-trust-rules", rule),
            ("business-units", backend.unit.to_string()),
            ("users", text(&me["id"])),
            ("sessions", text(&own_sessions["items"][0]["id"])),
            ("workspaces", backend.workspace.to_string()),
            ("runs", text(&run["id"])),
            ("approvals", text(&run["id"])),
            ("tasks", executor.bundle.task_id.to_string()),
            ("state-versions", text(&version)),
            ("git-credentials", text(&credential["id"])),
            ("quarantined-states", text(&quarantined)),
        ]);
        ids.extend(accounts);
        ids.extend(variables);
        // What would hold a lock, a replay and an unblocking up if the caller got that far.
        let conn = backend.plane.db().conn().await.unwrap();
        conn.batch(
            "UPDATE finished_tasks SET outcome = 'dead';
             UPDATE workspaces SET blocked_at = plumbline_now(), blocked_reason = 'looked at'",
        )
        .await
        .unwrap();
        drop(conn);
        assert_eq!(backend.lock("l-1").await.0, StatusCode::OK);
        let foreign = Self { backend, ids };
        foreign.ensure_variables().await;
        foreign
    }

    /// A variable of each owner, and a set that is attached: made again where somebody who may has removed them.
    pub(super) async fn ensure_variables(&self) {
        const ENSURE: &str = "
            WITH set AS (
                INSERT INTO variable_sets (id, business_unit_id, name) VALUES ($3, $1, 'shared') ON CONFLICT DO NOTHING
            ), attached AS (
                INSERT INTO variable_set_workspaces (business_unit_id, variable_set_id, workspace_id)
                VALUES ($1, $3, $2) ON CONFLICT DO NOTHING
            )
            INSERT INTO variables (id, business_unit_id, variable_set_id, workspace_id, key, value_sealed, value_bytes,
                                   is_secret, is_hcl)
            VALUES ($4, $1, NULL, NULL, 'k', $7, 1, false, false), ($5, $1, $3, NULL, 'k', $8, 1, false, false),
                   ($6, $1, NULL, $2, 'k', $9, 1, false, false) ON CONFLICT DO NOTHING";
        let id = |name: &str| self.ids[name].parse::<uuid::Uuid>().unwrap();
        let (workspace, set) = (id("workspaces"), id("variable-sets"));
        let variables = [id("variables"), id("variables of variable-sets"), id("variables of workspaces")];
        let sealed = variables.map(|row| {
            let place = Place { table: "variables", column: "value_sealed", row };
            self.plane().deps.keys.seal(Domain::Variables, place, "v").unwrap()
        });
        let ([of_unit, of_set, of_workspace], [one, two, three]) = (&variables, &sealed);
        let unit = &self.backend.unit;
        let conn = self.plane().db().conn().await.unwrap();
        conn.execute(ENSURE, &[unit, &workspace, &set, of_unit, of_set, of_workspace, one, two, three])
            .await
            .unwrap();
    }

    /// The trust rule: made again where somebody who may has removed it.
    pub(super) async fn ensure_trust_rule(&self) {
        const ENSURE: &str = "
            INSERT INTO ci_trust_rules (id, business_unit_id, name, issuer, audience, subject, capability, confined,
                                        key_minutes)
            VALUES ($1, $2, 'theirs', 'https://token.example.com', 'a', 'repo:acme/infra', 'plan', false, 15)
            ON CONFLICT DO NOTHING";
        let id = self.ids["ci-trust-rules"].parse::<uuid::Uuid>().unwrap();
        let conn = self.plane().db().conn().await.unwrap();
        conn.execute(ENSURE, &[&id, &self.backend.unit]).await.unwrap();
    }

    /// An account of each kind, in use by the workspace.
    async fn accounts(backend: &Backend) -> BTreeMap<&'static str, String> {
        let (plane, token) = (&backend.plane, backend.token.as_str());
        let mut ids = BTreeMap::new();
        let mut links = json!({});
        for kind in &KINDS {
            let path = format!("/api/v1/{}", kind.path);
            let (status, _, made) = plane.call("POST", &path, token, (kind.new)()).await;
            assert_eq!(status, StatusCode::CREATED, "{made}");
            ids.insert(kind.path, made["id"].as_str().unwrap().to_owned());
            links[kind.link] = made[kind.linked_by].clone();
        }
        let path = format!("/api/v1/workspaces/{}", backend.workspace);
        let (status, _, linked) = plane.call_with("PUT", &path, token, links, &[("if-match", "*")]).await;
        assert_eq!(status, StatusCode::OK, "{linked}");
        ids
    }

    async fn api_key(backend: &Backend) -> String {
        let admin = backend.plane.member(backend.unit, Role::Admin).await;
        let body = json!({ "name": "theirs" });
        let (_, _, key) = backend.plane.call("POST", "/api/v1/api-keys", admin.as_str(), body).await;
        key["id"].as_str().unwrap().to_owned()
    }

    async fn trust_rule(backend: &Backend) -> String {
        let admin = backend.plane.member(backend.unit, Role::Admin).await;
        let body = json!({ "name": "theirs", "issuer": "https://token.example.com", "audience": "a",
                           "subject": "repo:acme/infra" });
        let (_, _, rule) = backend.plane.call("POST", "/api/v1/ci-trust-rules", admin.as_str(), body).await;
        rule["id"].as_str().unwrap().to_owned()
    }

    pub(super) fn plane(&self) -> &TestPlane {
        &self.backend.plane
    }

    /// The id that belongs into a route's path.
    pub(super) fn id_for(&self, route: &Route) -> &str {
        let feature = route.pattern.split('/').nth(3).unwrap();
        self.ids.get(feature).unwrap_or_else(|| panic!("no {feature} with an id are made here"))
    }
}

/// Those whose path names something of a unit. Tunables belong to the platform.
fn routes_with_ids() -> Vec<Route> {
    let of_a_unit = |route: &Route| !route.pattern.starts_with("/api/v1/runtime-config/");
    routes().into_iter().filter(|route| route.pattern.contains('{') && of_a_unit(route)).collect()
}

/// The path with an id in it, and whatever else it needs; what stands below the id is there, too.
pub(super) fn path_with(route: &Route, id: &str, ids: &BTreeMap<&'static str, String>) -> String {
    let feature = route.pattern.split('/').nth(3).unwrap();
    let below = ids.get(format!("variables of {feature}").as_str()).map_or(NOTHING, String::as_str);
    let path = route.pattern.replace("{kind}", ArtifactKind::PlanText.as_str());
    let path = path.replace("{variable_id}", below).replace("{workspace_id}", &ids["workspaces"]);
    let path = path.replace("{id}", id).replace("{run_id}", id).replace("{key}", id);
    if path.ends_with("/logs") { path + "?position=1" } else { path }
}

/// A body that would be taken.
pub(super) fn body_for(route: &Route) -> Option<Value> {
    let body = match (route.method.as_str(), route.pattern.as_str()) {
        ("PUT", "/api/v1/business-units/{id}") => json!({ "name": "Taken over" }),
        ("PUT", "/api/v1/users/{id}/password") => json!({ "password": "known to a stranger" }),
        ("PUT", "/api/v1/workspaces/{id}") => json!({ "environment": "prod" }),
        ("POST", pattern) if pattern.ends_with("/variables") => json!({ "key": "k", "value": "v" }),
        ("PUT", "/api/v1/runtime-config/{key}") => json!({ "value": 60 }),
        ("PUT", pattern) if pattern.ends_with("/state-consumers") => json!({ "workspace_ids": [] }),
        (_, pattern) if pattern.ends_with("/lock") => json!({ "reason": "by hand" }),
        (_, pattern) if pattern.ends_with("/unblock") => json!({ "note": "looked at it" }),
        _ => json!({}),
    };
    route.has_body().then_some(body)
}

async fn call(foreign: &Foreign, route: &Route, id: &str, token: &str) -> Answer {
    let headers = [("if-match", "*"), ("idempotency-key", "k")];
    let path = path_with(route, id, &foreign.ids);
    foreign.plane().call_with(&route.method, &path, token, body_for(route), &headers).await
}

#[tokio::test]
async fn what_another_unit_has_is_answered_like_nothing_on_every_route_and_stays_as_it_is() {
    let foreign = Foreign::start().await;
    let plane = foreign.plane();
    let other = plane.unit("other-unit").await;
    let stranger = plane.member(other, Role::Admin).await;
    let before = plane.every_row().await;
    let mut asked = 0;
    for route in &routes_with_ids() {
        let answer = call(&foreign, route, foreign.id_for(route), &stranger).await;
        let what = format!("{} {}", route.method, route.pattern);
        // Changing units is for superadmins: a unit's admin is told so, whichever unit it is.
        let of_units = route.pattern.starts_with("/api/v1/business-units/") && route.method != "GET";
        let refusal = if of_units { 403 } else { 404 };
        assert_eq!(answer.0, refusal, "{what}: {}", answer.2);
        let nothing = call(&foreign, route, NOTHING, &stranger).await;
        assert_eq!((answer.0, &answer.2), (nothing.0, &nothing.2), "{what}");
        asked += 1;
    }
    assert!(asked > 25, "{asked} routes have an id in their path");
    assert_eq!(plane.every_row().await, before);

    // The ids are right, and nothing but the unit is in the way.
    for route in routes_with_ids().iter().filter(|route| route.method == "GET") {
        let answer = call(&foreign, route, foreign.id_for(route), &foreign.backend.token).await;
        let there = answer.0.is_success() || answer.0 == StatusCode::TEMPORARY_REDIRECT;
        assert!(there, "{}: {} {}", route.pattern, answer.0, answer.2);
    }
}

#[tokio::test]
async fn ids_of_another_unit_in_parameters_and_bodies_find_nothing() {
    let foreign = Foreign::start().await;
    let plane = foreign.plane();
    let other = plane.unit("other-unit").await;
    let stranger = plane.member(other, Role::Admin).await;
    let id = |feature: &str| foreign.ids[feature].as_str();
    for path in [
        format!("runs?workspace_id={}", id("workspaces")),
        format!("tasks?subject_id={}", id("runs")),
        format!("audit?workspace_id={}", id("workspaces")),
        format!("audit?run_id={}", id("runs")),
        format!("runs?cursor={}", id("runs")),
        format!("workspaces?cursor={NOTHING}"),
    ] {
        let own = plane.call("GET", &format!("/api/v1/{path}"), stranger.as_str(), None).await;
        assert_eq!((own.0, &own.2["items"]), (StatusCode::OK, &json!([])), "{path}");
    }
    let chain = format!("/api/v1/audit/export?chain_id={}", id("business-units"));
    let (status, _, export) = plane.call("GET", &chain, stranger.as_str(), None).await;
    let told = export["items"].as_array().is_some_and(|entries| !entries.is_empty());
    assert!(!told, "{status}: {export}");
    let membership = json!([{ "business_unit_id": id("business-units"), "role": "viewer" }]);
    let own = plane.call("GET", "/api/v1/me", stranger.as_str(), None).await.2;
    let myself = format!("/api/v1/users/{}", own["id"].as_str().unwrap());
    for (method, path, body) in [
        ("POST", "/api/v1/runs", json!({ "workspace_id": id("workspaces"), "command": "plan" })),
        ("POST", "/api/v1/users", json!({ "email": "new@plumbline.test", "memberships": membership })),
        ("PATCH", &myself, json!({ "add_memberships": membership })),
        ("PATCH", &myself, json!({ "remove_memberships": [id("business-units")] })),
        ("POST", "/api/v1/presence", json!({ "bu_slug": "default" })),
    ] {
        let (status, _, problem) = plane.call(method, path, stranger.as_str(), body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {problem}");
    }
    let path = format!("/api/v1/users?business_unit_id={}", id("business-units"));
    let (_, _, nobody) = plane.call("GET", &path, stranger.as_str(), None).await;
    assert_eq!(nobody["items"], json!([]));
    // Neither by the header may a member of one unit see another.
    let headers = [("x-business-unit", "default")];
    let path = format!("/api/v1/runs/{}", id("runs"));
    let (status, ..) = plane.call_with(Method::GET.as_str(), &path, stranger.as_str(), None, &headers).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_state_version_is_compared_with_no_version_of_another_unit() {
    let foreign = Foreign::start().await;
    let plane = foreign.plane();
    let other = plane.unit("other-unit").await;
    let stranger = plane.member(other, Role::Admin).await;
    let workspace = crate::store::state_client::insert_workspace(plane, other, "runs_and_people").await;
    let path = format!("/api/v1/state/{workspace}");
    let written = foreign.backend.send_as(&stranger, "POST", &path, state(1, "l", "own")).await;
    assert_eq!(written.0, StatusCode::OK);
    let list = format!("/api/v1/workspaces/{workspace}/state-versions");
    let (_, _, versions) = plane.call("GET", &list, stranger.as_str(), None).await;
    let own = versions["items"][0]["id"].as_str().unwrap();
    let theirs = &foreign.ids["state-versions"];
    let diff = format!("/api/v1/state-versions/{own}/diff?against={theirs}");
    let (status, _, problem) = plane.call("GET", &diff, stranger.as_str(), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{problem}");
}
