//! A superadmin who acts in all units at once changes nothing in an archived one, whichever id they name.

use std::collections::BTreeMap;

use http::StatusCode;

use super::shell::{Route, routes};
use super::tenants::{Foreign, body_for, path_with};
use crate::plane::slug;

/// What is not in a unit: people, what the platform is set to, the units themselves.
const ELSEWHERE: [&str; 4] = ["users", "sessions", "runtime-config", "business-units"];

/// Routes that do something all the same, each with its reason.
const EXCEPT: [(&str, &str); 4] = [
    ("DELETE /api/v1/api-keys/{id}", "it takes a key away"),
    ("DELETE /api/v1/workspaces/{id}/state-lock", "it ends what was under way"),
    ("POST /api/v1/approvals/{run_id}/reject", "it ends what was under way"),
    ("POST /api/v1/runs/{id}/cancel", "it ends what was under way"),
];

/// The refusal; or one that comes first, because the thing cannot be done in any unit.
const REFUSALS: [&str; 4] = ["unit-archived", "already-done", "task-not-replayable", "illegal-transition"];

fn name(route: &Route) -> String {
    format!("{} {}", route.method, route.pattern)
}

/// Asks by ids alone, and says what was not refused.
async fn let_through(unit: &Foreign, root: &str, routes: &[Route]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for route in routes {
        let path = path_with(route, unit.id_for(route), &unit.ids);
        let headers = [("if-match", "*")];
        let answer = unit.plane().call_with(&route.method, &path, root, body_for(route), &headers).await;
        if answer.0 != StatusCode::CONFLICT || !REFUSALS.contains(&slug(&answer.2)) {
            found.insert(name(route), format!("{} {}", answer.0, answer.2));
        }
    }
    found
}

#[tokio::test]
async fn no_route_changes_anything_in_an_archived_unit_by_its_id_alone() {
    let unit = Foreign::start().await;
    let plane = unit.plane();
    let root = plane.admin_token().await;
    let conn = plane.db().conn().await.unwrap();
    conn.batch("UPDATE business_units SET archived_at = plumbline_now()").await.unwrap();
    drop(conn);
    let is_asked = |route: &Route| {
        let first = route.pattern.trim_start_matches("/api/v1/").split('/').next().unwrap_or_default();
        route.method != "GET" && route.pattern.contains('{') && !ELSEWHERE.contains(&first)
    };
    let (exceptions, others): (Vec<Route>, Vec<Route>) = routes()
        .into_iter()
        .filter(is_asked)
        .partition(|route| EXCEPT.iter().any(|(except, _)| *except == name(route)));
    assert!(others.len() > 35, "{} routes", others.len());

    let before = plane.every_row().await;
    let wrong = let_through(&unit, &root, &others).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(plane.every_row().await, before);
    let done = let_through(&unit, &root, &exceptions).await;
    // The run can be ended in one of two ways.
    assert_eq!(done.len(), EXCEPT.len() - 1, "those that do something do it: {done:#?}");
}
