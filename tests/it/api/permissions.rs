//! Every route as everybody: what `docs/permissions.md` says, by hand, is what is answered.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::{Capability, Role};
use serde_json::{Value, json};

use super::shell::{Route, routes};
use super::tenants::{Foreign, body_for, path_with};
use crate::executors::FakeExecutor;
use crate::plane::{ADMIN_EMAIL, TestPlane};
use crate::store::state_client::insert_workspace;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/permissions.md");
const ALLOWED: &str = "✓";

/// The document's table: the columns, and the cells of each route, named `METHOD /path`.
struct Matrix {
    columns: Vec<String>,
    rows: BTreeMap<String, Vec<String>>,
}

impl Matrix {
    fn read() -> Self {
        let text = std::fs::read_to_string(DOCUMENT).expect("the document is there");
        let lines = text.lines().skip_while(|line| !line.starts_with("| route |"));
        let cells = |line: &str| {
            let inner = line.trim().trim_matches('|');
            inner.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>()
        };
        let mut lines = lines.map(cells);
        let columns = lines.next().expect("a head").split_off(1);
        let mut rows = BTreeMap::new();
        for mut line in lines.skip(1) {
            let cells = line.split_off(1);
            assert_eq!(cells.len(), columns.len(), "{line:?}");
            assert!(rows.insert(line.remove(0), cells).is_none(), "{line:?} stands twice");
        }
        Self { columns, rows }
    }
}

/// Everybody, over a unit that has one of everything.
struct Everybody {
    unit: Foreign,
    /// By column; `None` is nobody.
    tokens: BTreeMap<&'static str, Option<String>>,
}

impl Everybody {
    async fn gather() -> Self {
        let unit = Foreign::start().await;
        let plane = unit.plane();
        let expired = plane.member(unit.backend.unit, Role::Admin).await;
        plane.advance(Duration::from_secs(9 * 3600)).await;
        let admin = plane.member(unit.backend.unit, Role::Admin).await;
        let other = plane.unit("other-unit").await;
        let elsewhere = insert_workspace(plane, unit.backend.unit, "runs_and_people").await;
        let confined = json!({ "name": "k", "capability": "admin", "workspace_ids": [elsewhere] });
        plane.admin_token().await;
        let superadmin = plane.login(ADMIN_EMAIL).await;
        // One to look at.
        let rekey = plane.call("POST", "/api/v1/admin/rekey", superadmin.as_str(), None).await;
        assert_eq!(rekey.0, StatusCode::ACCEPTED);
        let executor = live_executor(&unit).await;
        let mut tokens = BTreeMap::from([
            ("anonymous", None),
            ("viewer", Some(plane.member(unit.backend.unit, Role::Viewer).await)),
            ("operator", Some(plane.member(unit.backend.unit, Role::Operator).await)),
            ("admin", Some(admin.clone())),
            ("superadmin", Some(superadmin)),
            ("confined", Some(key(plane, &admin, confined).await)),
            ("executor", Some(executor)),
            ("expired", Some(expired)),
            ("foreign", Some(plane.member(other, Role::Admin).await)),
        ]);
        let names = ["key read", "key plan", "key apply", "key admin"];
        for (name, capability) in names.into_iter().zip(Capability::ALL) {
            let body = json!({ "name": "k", "capability": capability });
            tokens.insert(name, Some(key(plane, &admin, body).await));
        }
        Self { unit, tokens }
    }

    async fn ask(&self, route: &Route, who: &str, n: usize) -> (StatusCode, Value) {
        let id = if route.pattern.contains('{') { self.unit.id_for(route) } else { "" };
        // Whoever is removed is not there for the next who asks.
        let removed = route.method == "DELETE" && route.pattern == "/api/v1/users/{id}";
        let somebody = if removed { self.somebody().await } else { String::new() };
        let id = if removed { &somebody } else { id };
        let headers = [("if-match", "*"), ("x-business-unit", "default")];
        // Only the foreigner's unit is another one.
        let headers = if who == "foreign" { &headers[..1] } else { &headers[..] };
        if route.pattern.contains("variable") {
            self.unit.ensure_variables().await;
        }
        if route.pattern.contains("ci-trust-rules") {
            self.unit.ensure_trust_rule().await;
        }
        let path = path_with(route, id, &self.unit.ids);
        let body = self.body(route, n);
        let token = self.tokens[who].as_deref();
        let (status, _, answer) =
            self.unit.plane().call_with(&route.method, &path, token, body, headers).await;
        (status, answer)
    }

    /// The id of a new member of the unit.
    async fn somebody(&self) -> String {
        let token = self.unit.plane().member(self.unit.backend.unit, Role::Viewer).await;
        let me = self.unit.plane().call("GET", "/api/v1/me", token.as_str(), None).await.2;
        me["id"].as_str().unwrap().to_owned()
    }

    /// A body that would be taken; `n` makes it another thing than before.
    fn body(&self, route: &Route, n: usize) -> Option<Value> {
        let repository = format!("https://git.example.com/{n}.git");
        match (route.method.as_str(), route.pattern.trim_start_matches("/api/v1")) {
            ("POST", "/variables") => Some(json!({ "key": format!("k{n}"), "value": "v" })),
            ("POST", "/variable-sets") => Some(json!({ "name": format!("set-{n}") })),
            ("POST", "/api-keys") => Some(json!({ "name": "another" })),
            ("POST", "/git-credentials") => Some(json!({ "name": format!("forge-{n}"), "kind": "token",
                "host": format!("{n}.example.com"), "token": "planted" })),
            ("POST", "/business-units") => Some(json!({ "slug": format!("unit-{n}"), "name": "Unit" })),
            ("POST", "/users") => {
                let memberships = json!([{ "business_unit_id": self.unit.backend.unit, "role": "viewer" }]);
                Some(json!({ "email": format!("user{n}@plumbline.test"), "memberships": memberships }))
            }
            ("POST", "/ci-trust-rules") => {
                let issuer = "https://token.example.com";
                Some(
                    json!({ "name": n.to_string(), "issuer": issuer, "audience": "a", "subject": "repo:a/b" }),
                )
            }
            ("POST", "/workspaces") => {
                Some(json!({ "name": "net", "environment": "dev", "repo_url": repository }))
            }
            ("POST", "/workspaces/discover" | "/workspaces/import") => {
                Some(json!({ "repo_url": repository }))
            }
            ("POST", "/runs") => {
                Some(json!({ "workspace_id": self.unit.backend.workspace, "command": "plan" }))
            }
            _ => body_for(route),
        }
    }
}

async fn key(plane: &TestPlane, admin: &str, body: Value) -> String {
    let (status, _, made) = plane.call("POST", "/api/v1/api-keys", admin, body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["token"].as_str().unwrap().to_owned()
}

/// The token of an executor whose plan is under way.
async fn live_executor(unit: &Foreign) -> String {
    let admin = unit.plane().member(unit.backend.unit, Role::Admin).await;
    let body = json!({ "workspace_id": unit.backend.workspace, "command": "plan" });
    let (status, _, run) = unit.plane().call("POST", "/api/v1/runs", admin.as_str(), body).await;
    assert_eq!(status, StatusCode::CREATED, "{run}");
    FakeExecutor::start(unit.plane()).await.bundle.token.clone()
}

#[tokio::test]
async fn every_route_answers_everybody_as_the_document_says() {
    let matrix = Matrix::read();
    let everybody = Everybody::gather().await;
    let known: Vec<&str> = everybody.tokens.keys().copied().collect();
    for column in &matrix.columns {
        assert!(known.contains(&column.as_str()), "nobody is {column}");
    }
    assert_eq!(matrix.columns.len(), known.len());
    let columns: Vec<&str> = matrix.columns.iter().map(String::as_str).collect();
    let (asked, wrong) = walk(&matrix, &everybody, &columns).await;
    let wrong: Vec<&str> = wrong.values().map(String::as_str).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asked > 1500, "{asked} cells");
}

#[tokio::test]
async fn a_wrong_grant_or_a_wrong_refusal_is_seen_in_every_cell_that_it_concerns() {
    let matrix = Matrix::read();
    let column = |name: &str| matrix.columns.iter().position(|column| column == name).unwrap();
    for (who, planted, role) in [("viewer", "operator", Role::Operator), ("admin", "viewer", Role::Viewer)] {
        let mut everybody = Everybody::gather().await;
        let wrong_role = everybody.unit.plane().member(everybody.unit.backend.unit, role).await;
        everybody.tokens.insert(who, Some(wrong_role));
        let (_, wrong) = walk(&matrix, &everybody, &[who]).await;
        let differs = matrix.rows.iter().filter(|(_, cells)| cells[column(who)] != cells[column(planted)]);
        let expected: Vec<&String> = differs.map(|(name, _)| name).collect();
        assert!(expected.len() > 10, "{who}: {expected:?}");
        assert_eq!(wrong.keys().collect::<Vec<_>>(), expected, "{who}: {:?}", wrong.values());
    }
}

/// Asks every route as each of the columns. How many cells that were, and what is wrong with which of the routes.
async fn walk(matrix: &Matrix, everybody: &Everybody, columns: &[&str]) -> (usize, BTreeMap<String, String>) {
    let (mut asked, mut wrong) = (0, BTreeMap::<String, String>::new());
    let mut routes = routes();
    // Signing out comes last: nobody is anybody afterwards, and an ended session can still be ended.
    routes.sort_by_key(|route| (route.pattern.ends_with("/logout"), route.pattern.ends_with("/logout-all")));
    for route in routes {
        let name = format!("{} {}", route.method, route.pattern);
        let cells = matrix.rows.get(&name).unwrap_or_else(|| panic!("{name} has no line in the document"));
        for (column, said) in matrix.columns.iter().zip(cells) {
            if !columns.contains(&column.as_str()) {
                continue;
            }
            let (status, answer) = everybody.ask(&route, column, asked).await;
            asked += 1;
            if !is_as_said(said, status) {
                let what = format!("{name} as {column}: {said} is said, {status} answered: {answer}\n");
                wrong.entry(name.clone()).or_default().push_str(&what);
            }
        }
    }
    (asked, wrong)
}

/// Whether an answer is what a cell says.
fn is_as_said(said: &str, status: StatusCode) -> bool {
    match said {
        ALLOWED => ![401, 403, 404, 405].contains(&status.as_u16()) && !status.is_server_error(),
        refusal => status.as_str() == refusal,
    }
}

#[test]
fn the_document_has_a_line_for_every_route_and_for_nothing_else() {
    let said: Vec<String> = Matrix::read().rows.into_keys().collect();
    let mut there: Vec<String> =
        routes().iter().map(|route| format!("{} {}", route.method, route.pattern)).collect();
    there.sort();
    assert_eq!(said, there);
}

#[test]
fn a_route_without_a_rule_is_seen_and_so_is_a_rule_without_a_route() {
    let (_, mut document) = plumbline_api::openapi::documented_router();
    assert_eq!(plumbline_api::guard::mismatches(&document), Vec::<String>::new());
    let runs = document.paths.paths.remove("/api/v1/runs").expect("it is a route");
    document.paths.paths.insert("/api/v1/planted".into(), runs);
    let found = plumbline_api::guard::mismatches(&document);
    let expected = ["GET /api/v1/planted", "POST /api/v1/planted", "GET /api/v1/runs", "POST /api/v1/runs"];
    assert_eq!(found, expected);
}
