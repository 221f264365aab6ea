//! Every route, and what it leaves in the audit log: [`table::ROWS`], by hand, is what is found there.

mod machines;
mod requests;
mod stage;
mod table;

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::audit::{Action, ChainId};
use plumbline_core::db::Query as _;
use serde_json::{Value, json};
use uuid::Uuid;

use self::requests::Request;
use self::stage::Stage;
use self::table::{Chain, REFUSED_AGAIN, ROWS, Said, Whose};
use super::shell::{self, Route};
use crate::executors::{FakeExecutor, nonce, trade};
use crate::plane::{ADMIN_EMAIL, Answer, PASSWORD, TestPlane};
use crate::world::World;

/// Method and path of every route there is.
fn all_routes() -> Vec<(String, String)> {
    let documented = shell::routes().into_iter().map(|route| (route.method, route.pattern));
    let machines = machines::routes().into_iter().chain(plumbline_callback::routes());
    documented.chain(machines.map(|(method, path)| (method.to_owned(), path))).collect()
}

#[test]
fn the_table_has_a_row_for_every_route_and_for_nothing_else() {
    let there: BTreeSet<String> =
        all_routes().iter().map(|(method, path)| format!("{method} {path}")).collect();
    let said: BTreeSet<String> = ROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(said.len(), ROWS.len(), "no route has two rows");
    let (missing, gone): (Vec<_>, Vec<_>) =
        (there.difference(&said).collect(), said.difference(&there).collect());
    assert!(missing.is_empty() && gone.is_empty(), "without a row: {missing:?}; without a route: {gone:?}");
    for (name, said) in ROWS {
        if let Said::Nothing(why) = said {
            assert!(why.len() > 10, "{name} leaves nothing: why?");
        }
    }
}

/// One new entry, as far as the table says it.
type Found = (Chain, Whose, String);

/// Where each chain ended.
struct Mark(Vec<Uuid>, Vec<i64>);

impl Mark {
    async fn set(plane: &TestPlane) -> Self {
        let conn = plane.db().conn().await.unwrap();
        let heads = conn.query("SELECT chain_id, sequence FROM audit_heads", &[]).await.unwrap();
        Self(heads.iter().map(|row| row.get(0)).collect(), heads.iter().map(|row| row.get(1)).collect())
    }

    /// What was added since.
    async fn since(&self, plane: &TestPlane, unit: Uuid, user: Option<Uuid>) -> Vec<Found> {
        const ADDED: &str = "
            SELECT e.chain_id, e.action, e.user_id FROM audit_entries e
            LEFT JOIN unnest($1::uuid[], $2::int8[]) AS seen (chain_id, sequence) USING (chain_id)
            WHERE e.sequence > coalesce(seen.sequence, 0) ORDER BY e.chain_id, e.sequence";
        let conn = plane.db().conn().await.unwrap();
        let rows = conn.query(ADDED, &[&self.0, &self.1]).await.unwrap();
        let found = |row: &plumbline_core::db::Row| {
            let (chain, by): (Uuid, Option<Uuid>) = (row.get(0), row.get(2));
            let chain = match chain {
                _ if chain == ChainId::of(None).0 => Chain::OfThePlatform,
                _ if chain == unit => Chain::OfTheUnit,
                _ => Chain::Another,
            };
            let whose = match by {
                None => Whose::Nobodys,
                _ if by == user => Whose::TheCallers,
                _ => Whose::Anothers,
            };
            (chain, whose, row.get::<_, String>(1))
        };
        rows.iter().map(found).collect()
    }
}

/// Whether the log got what the table says, whatever the order.
fn is_as_said(said: &Said, found: &[Found]) -> bool {
    let expected: Vec<Found> = match said {
        Said::Entries(entries) => entries
            .iter()
            .map(|(chain, whose, action)| (*chain, *whose, action.as_str().to_owned()))
            .collect(),
        Said::Nothing(_) | Said::AlwaysRefused => Vec::new(),
    };
    let mut rest = found.to_vec();
    for one in &expected {
        let Some(at) = rest.iter().position(|found| found == one) else { return false };
        rest.remove(at);
    }
    rest.is_empty()
}

async fn send(stage: &Stage, request: &Request, token: Option<&str>) -> Answer {
    let headers = [("if-match", "*"), ("x-business-unit", request.unit.slug.as_str())];
    let body = request.body.clone();
    stage.plane().call_with(&request.method, &request.path, token, body, &headers).await
}

/// What a route left, with the row that says it.
struct Walked {
    name: &'static str,
    said: Said,
    found: Vec<Found>,
}

/// Sends a request that somebody may not send, and holds that it leaves nothing.
async fn refused(stage: &Stage, request: &Request, token: &str) {
    let mark = Mark::set(stage.plane()).await;
    let (status, _, answer) = send(stage, request, Some(token)).await;
    let what = format!("{} {}: {status} {answer}", request.method, request.path);
    assert!(status.is_client_error(), "it is refused: {what}");
    let found = mark.since(stage.plane(), request.unit.id.into(), None).await;
    assert_eq!(found, [], "a refusal leaves nothing: {what}");
}

async fn walk(stage: &Stage, name: &'static str, said: Said, request: &Request) -> Walked {
    let mark = Mark::set(stage.plane()).await;
    let (status, _, answer) = send(stage, request, request.token.as_deref()).await;
    let succeeded = status.is_success() || status == StatusCode::TEMPORARY_REDIRECT;
    let as_expected = if matches!(said, Said::AlwaysRefused) { status.is_client_error() } else { succeeded };
    assert!(as_expected, "{name} ({}): {status} {answer}", request.path);
    let found = mark.since(stage.plane(), request.unit.id.into(), request.user).await;

    // The same once more: where that is refused, what is left of it is said, too.
    let mark = Mark::set(stage.plane()).await;
    let (status, _, answer) = send(stage, request, request.token.as_deref()).await;
    assert!(!status.is_server_error(), "{name} again: {status} {answer}");
    if status.is_client_error() {
        let found = mark.since(stage.plane(), request.unit.id.into(), request.user).await;
        let said = REFUSED_AGAIN.iter().find(|(known, _)| *known == name);
        let said = said.map_or(Said::Nothing("it was refused"), |(_, said)| *said);
        assert!(is_as_said(&said, &found), "{name} again: {status} {answer}: {found:?}");
    }
    Walked { name, said, found }
}

#[tokio::test]
async fn every_route_leaves_what_the_table_says_and_what_is_refused_leaves_nothing() {
    let Some(stage) = Stage::set().await else { return };
    let elsewhere = stage.plane().unit("elsewhere").await;
    let outsider = stage.plane().member(elsewhere, Role::Admin).await;
    let mut documented = shell::routes().into_iter();
    let mut walked = Vec::new();
    for (method, path) in all_routes() {
        let name = format!("{method} {path}");
        let (name, said) = ROWS.iter().find(|(known, _)| *known == name).expect("the table has them all");
        let request = match documented.next() {
            Some(route) => request_of_people(&stage, &route, &outsider).await,
            None if path.starts_with("/executor/") => {
                let request = machines::executor_request(&stage, &method, &path).await;
                if path != "/executor/v1/trade" {
                    refused(&stage, &request, "nonsense").await;
                    refused(&stage, &request, &stage.admin.token).await;
                }
                request
            }
            None => {
                let request = machines::state_request(&stage, &method, &path).await;
                refused(&stage, &request, &outsider).await;
                request
            }
        };
        walked.push(walk(&stage, name, *said, &request).await);
    }
    let wrong: Vec<String> = walked
        .iter()
        .filter(|walked| !is_as_said(&walked.said, &walked.found))
        .map(|Walked { name, said, found }| format!("{name}: {said:?} is said, {found:?} found"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(walked.len() > 200, "{} routes", walked.len());
    for one in &walked {
        for planted in planted_instead_of(&one.said) {
            assert!(!is_as_said(&planted, &one.found), "{planted:?} for {}", one.name);
        }
    }
    let path = "/api/v1/audit/verify";
    let (_, _, verified) = stage.plane().call("GET", path, stage.superadmin.token.as_str(), None).await;
    assert_eq!(verified["ok"], true, "{verified}");
}

/// The request of a documented route, which an outsider and somebody with half a token have tried before.
async fn request_of_people(stage: &Stage, route: &Route, outsider: &str) -> Request {
    let request = requests::request(stage, route).await;
    let own = ["auth/", "me", "sessions", "health/", "openapi.json", "server-info", "presence"];
    let below = route.pattern.trim_start_matches("/api/v1/");
    // What is everybody's own, or open, nobody is refused for being somebody else.
    let is_own =
        own.iter().any(|one| below.starts_with(one)) || below == "business-units" && route.method == "GET";
    if !route.open() {
        refused(stage, &request, "nonsense").await;
        if !is_own {
            refused(stage, &request, outsider).await;
        }
    }
    request
}

/// Wrong rows: each must be told from the right one.
fn planted_instead_of(said: &Said) -> Vec<Said> {
    const PLANTED: &[(Chain, Whose, Action)] = &[(Chain::OfTheUnit, Whose::TheCallers, Action::TaskReplay)];
    let Said::Entries(entries) = said else { return vec![Said::Entries(PLANTED)] };
    let (chain, whose, action) = entries[0];
    let other_chain = if chain == Chain::OfTheUnit { Chain::OfThePlatform } else { Chain::OfTheUnit };
    let other_person = if whose == Whose::Nobodys { Whose::TheCallers } else { Whose::Nobodys };
    let other_action = if action == Action::Login { Action::Logout } else { Action::Login };
    let with = |first: (Chain, Whose, Action), more: &[(Chain, Whose, Action)]| {
        Said::Entries([&[first], &entries[1..], more].concat().leak())
    };
    vec![
        Said::Nothing("planted"),
        Said::Entries(&entries[1..]),
        with((other_chain, whose, action), &[]),
        with((chain, other_person, action), &[]),
        with((chain, whose, other_action), &[]),
        with(entries[0], &entries[..1]),
    ]
}

/// Holds that something leaves exactly these, by nobody or by the given person.
async fn leaves(
    plane: &TestPlane,
    unit: Uuid,
    user: Option<Uuid>,
    expected: &[(Chain, Whose, Action)],
    done: impl Future<Output = StatusCode>,
    status: StatusCode,
) {
    let mark = Mark::set(plane).await;
    assert_eq!(done.await, status);
    let expected: Vec<Found> =
        expected.iter().map(|(chain, whose, action)| (*chain, *whose, action.as_str().to_owned())).collect();
    assert_eq!(mark.since(plane, unit, user).await, expected);
}

#[tokio::test]
async fn a_refusal_that_is_itself_an_event_leaves_one_entry() {
    use Chain::{OfThePlatform, OfTheUnit};
    let world = World::new().await;
    let plane = &world.plane;
    let unit: Uuid = plane.unit("default").await.into();
    let me: Uuid = world.get("me").await.1["id"].as_str().unwrap().parse().unwrap();
    plane.admin_token().await;
    let sign_in = async |email: &str| {
        let wrong = json!({ "email": email, "password": "wrong" });
        plane.call("POST", "/api/v1/auth/token", None, wrong).await.0
    };
    let failed = [(OfThePlatform, Whose::Nobodys, Action::LoginFailed)];
    for email in [ADMIN_EMAIL, "nobody@plumbline.test", "no address at all"] {
        leaves(plane, unit, Some(me), &failed, sign_in(email), StatusCode::UNAUTHORIZED).await;
    }

    let change = async || {
        let body = json!({ "current_password": "wrong", "new_password": "chosen by the person" });
        plane.call("PUT", "/api/v1/me/password", world.token.as_str(), body).await.0
    };
    let failed = [(OfThePlatform, Whose::TheCallers, Action::UserChangePasswordFailed)];
    leaves(plane, unit, Some(me), &failed, change(), StatusCode::FORBIDDEN).await;

    let credentials = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let pair = plane.call("POST", "/api/v1/auth/token", None, credentials).await.2;
    let refresh = json!({ "refresh_token": pair["refresh_token"] });
    let refreshed = plane.call("POST", "/api/v1/auth/refresh", None, refresh.clone()).await;
    assert_eq!(refreshed.0, StatusCode::OK);
    plane.advance(Duration::from_secs(30)).await;
    let admin = plane.call("GET", "/api/v1/me", refreshed.2["access_token"].as_str(), None).await.2;
    let admin: Uuid = admin["id"].as_str().unwrap().parse().unwrap();
    let again = async || plane.call("POST", "/api/v1/auth/refresh", None, refresh.clone()).await.0;
    let reused = [(OfThePlatform, Whose::TheCallers, Action::SessionRefreshReused)];
    leaves(plane, unit, Some(admin), &reused, again(), StatusCode::UNAUTHORIZED).await;
    leaves(plane, unit, Some(admin), &[], again(), StatusCode::UNAUTHORIZED).await;

    world.trigger("plan").await;
    let executor = FakeExecutor::start(plane).await;
    let thief = async || trade(plane, &executor.launch.ticket, &nonce(2)).await.0;
    let reused = [(OfTheUnit, Whose::Nobodys, Action::ExecutorTicketReused)];
    leaves(plane, unit, Some(me), &reused, thief(), StatusCode::CONFLICT).await;
}

/// How often the log says that something of a run was read.
async fn reads(world: &World, run: &str) -> usize {
    world.audit_actions(run).await.iter().filter(|action| *action == Action::RunRead.as_str()).count()
}

#[tokio::test]
async fn whoever_follows_a_log_is_recorded_once_an_hour_for_each_step_and_everybody_by_themselves() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    executor.log(1, 0, b"cloned").await;
    let read = async |token: &str, path: &str| {
        let path = format!("/api/v1/runs/{run}/{path}");
        let (status, _, answer) = world.plane.call("GET", &path, token, None).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    };
    for offset in [0, 2, 6] {
        read(&world.token, &format!("logs?position=1&offset={offset}")).await;
    }
    assert_eq!(reads(&world, &run).await, 1, "the same reader");
    read(&world.token, "logs?position=2").await;
    assert_eq!(reads(&world, &run).await, 2, "another step");
    read(&world.token, "artifacts/log-1").await;
    assert_eq!(reads(&world, &run).await, 2, "the same log by another way");
    let colleague = world.plane.user(Role::Admin).await;
    read(&colleague, "logs?position=1").await;
    assert_eq!(reads(&world, &run).await, 3, "another reader");
    let (status, key) = world.post("api-keys", json!({ "name": "ci", "capability": "plan" })).await;
    assert_eq!(status, StatusCode::CREATED, "{key}");
    read(key["token"].as_str().unwrap(), "logs?position=1").await;
    assert_eq!(reads(&world, &run).await, 4, "the same person's program");
    world.plane.advance(Duration::from_secs(3601)).await;
    read(&world.token, "logs?position=1").await;
    assert_eq!(reads(&world, &run).await, 5, "an hour later");
    let (_, log) = world.get(&format!("audit?run_id={run}&action=run.read&limit=1")).await;
    let entry = &log["items"][0];
    assert_eq!(
        (&entry["details"], &entry["resource_id"]),
        (&json!({ "log": 1 }), &Value::from(run.as_str()))
    );
}
