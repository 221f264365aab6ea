//! What another business unit has does not exist: one sweep over every route with an id in its path, with ids of things
//! that are really there.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use plumbline_core::access::Role;
use plumbline_core::protocol::ArtifactKind;
use serde_json::{Value, json};

use super::shell::{Route, routes};
use crate::executors::{ADDS_ONE, FakeExecutor};
use crate::plane::{Answer, TestPlane};
use crate::store::state_client::{Backend, state};

/// An id of nothing.
const NOTHING: &str = "01890000-0000-7000-8000-000000000000";

/// A unit that has one of everything that has an id.
pub(super) struct Foreign {
    pub(super) backend: Backend,
    /// By the segment of the path that they follow.
    pub(super) ids: BTreeMap<&'static str, String>,
}

impl Foreign {
    pub(super) async fn start() -> Self {
        let backend = Backend::start().await;
        for value in ["a", "b"] {
            let serial = if value == "a" { 1 } else { 2 };
            assert_eq!(backend.write(None, &state(serial, "l", value)).await.0, StatusCode::OK);
        }
        backend.write(Some("never-held"), &state(3, "l", "late")).await;
        let body = json!({ "workspace_id": backend.workspace, "command": "apply" });
        let (status, _, run) = backend.plane.call("POST", "/api/v1/runs", backend.token.as_str(), body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        let executor = FakeExecutor::start(&backend.plane).await;
        executor.log(1, 0, b"cloned").await;
        assert_eq!(executor.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
        let version = backend.versions().await[0]["id"].clone();
        let quarantined = backend.quarantined().await[0]["id"].clone();
        let text = |id: &Value| id.as_str().unwrap().to_owned();
        let key = Self::api_key(&backend).await;
        let ids = BTreeMap::from([
            ("api-keys", key),
            ("business-units", backend.unit.to_string()),
            ("workspaces", backend.workspace.to_string()),
            ("runs", text(&run["id"])),
            ("approvals", text(&run["id"])),
            ("tasks", executor.bundle.task_id.to_string()),
            ("state-versions", text(&version)),
            // The platform's: every unit sees the same.
            ("runtime-config", "auth.access_token_expire_minutes".to_owned()),
            ("quarantined-states", text(&quarantined)),
        ]);
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
        Self { backend, ids }
    }

    async fn api_key(backend: &Backend) -> String {
        let admin = backend.plane.member(backend.unit, Role::Admin).await;
        let body = json!({ "name": "theirs" });
        let (_, _, key) = backend.plane.call("POST", "/api/v1/api-keys", admin.as_str(), body).await;
        key["id"].as_str().unwrap().to_owned()
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

/// The path with an id in it, and whatever else it needs.
pub(super) fn path_with(route: &Route, id: &str) -> String {
    let path = route.pattern.replace("{kind}", ArtifactKind::PlanText.as_str());
    let path = path.replace("{id}", id).replace("{run_id}", id).replace("{key}", id);
    if path.ends_with("/logs") { path + "?position=1" } else { path }
}

/// A body that would be taken.
pub(super) fn body_for(route: &Route) -> Option<Value> {
    let body = match (route.method.as_str(), route.pattern.as_str()) {
        ("PUT", "/api/v1/business-units/{id}") => json!({ "slug": "taken-over", "name": "Taken over" }),
        ("PUT", "/api/v1/workspaces/{id}") => json!({ "environment": "prod" }),
        ("PUT", "/api/v1/runtime-config/{key}") => json!({ "value": 60 }),
        (_, pattern) if pattern.ends_with("/unblock") => json!({ "note": "looked at it" }),
        _ => json!({}),
    };
    route.has_body().then_some(body)
}

async fn call(plane: &TestPlane, route: &Route, id: &str, token: &str) -> Answer {
    let headers = [("if-match", "*"), ("idempotency-key", "k")];
    plane.call_with(&route.method, &path_with(route, id), token, body_for(route), &headers).await
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
        let answer = call(plane, route, foreign.id_for(route), &stranger).await;
        let what = format!("{} {}", route.method, route.pattern);
        // Renaming units is for superadmins: a unit's admin is told so, whichever unit it is.
        let refusal = if what == "PUT /api/v1/business-units/{id}" { 403 } else { 404 };
        assert_eq!(answer.0, refusal, "{what}: {}", answer.2);
        let nothing = call(plane, route, NOTHING, &stranger).await;
        assert_eq!((answer.0, &answer.2), (nothing.0, &nothing.2), "{what}");
        asked += 1;
    }
    assert!(asked > 25, "{asked} routes have an id in their path");
    assert_eq!(plane.every_row().await, before);

    // The ids are right, and nothing but the unit is in the way.
    for route in routes_with_ids().iter().filter(|route| route.method == "GET") {
        let answer = call(plane, route, foreign.id_for(route), &foreign.backend.token).await;
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
    let body = json!({ "workspace_id": id("workspaces"), "command": "plan" });
    let (status, _, problem) = plane.call("POST", "/api/v1/runs", stranger.as_str(), body).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{problem}");
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
