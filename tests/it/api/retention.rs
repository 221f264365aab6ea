//! Secrets that came with a run or a task are gone some time after its end; what they were called stays.

use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::{runs, tasks};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use crate::executors::{FakeExecutor, NO_CHANGES};
use crate::plane::slug;
use crate::world::World;

const SECOND: Duration = Duration::from_secs(1);
const PLANTED: &str = "planted-secret-7f3a91c4";
const SEALED: &str =
    "SELECT count(*) FROM runs WHERE variables_sealed IS NOT NULL OR pinned_variables_sealed IS NOT NULL";
const LOGINS: &str = "SELECT count(*) FROM finished_tasks WHERE payload ->> 'login_sealed' IS NOT NULL";

impl World {
    /// Moves time, and signs the admin in again: tokens do not live that long.
    async fn later(&mut self, by: Duration) {
        self.plane.advance(by).await;
        self.token = self.plane.user(Role::Admin).await;
    }

    async fn rows(&self, count: &str) -> i64 {
        self.plane.db().conn().await.unwrap().query_one(count, &[]).await.unwrap().get(0)
    }

    async fn forget_values(&self) -> usize {
        runs::sweeps::forget_values(&self.plane.as_function(Function::Reconciler)).await.unwrap()
    }

    async fn forget_logins(&self) -> usize {
        tasks::sweeps::forget_logins(&self.plane.as_function(Function::Reconciler)).await.unwrap()
    }

    /// A run with a variable of its own and one of the unit.
    async fn run_with_secret(&self, command: &str) -> String {
        let own = json!([{ "key": "own", "value": PLANTED, "is_secret": true }]);
        let body = json!({ "workspace_id": self.workspace, "command": command, "variables": own });
        let (status, run) = self.post("runs", body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    async fn variables_of(&self, run: &str) -> Value {
        let (status, view) = self.get(&format!("runs/{run}/variables")).await;
        assert_eq!(status, StatusCode::OK, "{view}");
        view
    }
}

#[tokio::test]
async fn the_values_of_an_ended_runs_variables_go_after_their_time_and_keys_and_sources_stay() {
    let mut world = World::new().await;
    let (status, made) = world.post("variables", json!({ "key": "a", "value": "plain" })).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let ended = world.run_with_secret("plan").await;
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
    let live = world.run_with_secret("apply").await;
    FakeExecutor::start(&world.plane).await;
    assert_eq!(world.rows(SEALED).await, 2);
    let before = world.variables_of(&ended).await;

    world.later(world.plane.deps.limits.run_secret_age - SECOND).await;
    assert_eq!(world.forget_values().await, 0, "not yet");
    world.later(2 * SECOND).await;
    assert_eq!(world.forget_values().await, 1, "the one that has ended");
    assert_eq!(world.forget_values().await, 0, "once");
    assert_eq!(world.rows(SEALED).await, 1);

    let after = world.variables_of(&ended).await;
    assert!(before["removed_at"].is_null() && after["removed_at"].is_string(), "{after}");
    for (was, is) in before["items"].as_array().unwrap().iter().zip(after["items"].as_array().unwrap()) {
        for stays in ["key", "source", "overrides", "is_secret", "is_hcl"] {
            assert_eq!(was[stays], is[stays], "{stays}");
        }
        assert_eq!((&is["value"], &is["masked_tail"]), (&Value::Null, &Value::Null), "{is}");
    }
    let (status, problem) = world.post(&format!("runs/{ended}/promote"), json!({})).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "plan-expired"), "{problem}");

    let kept = world.variables_of(&live).await;
    assert_eq!((&kept["removed_at"], &kept["items"][0]["value"]), (&Value::Null, &json!("plain")), "{kept}");
}

#[tokio::test]
async fn a_run_that_ended_before_it_began_keeps_nothing_either() {
    let mut world = World::new().await;
    let run = world.run_with_secret("plan").await;
    assert_eq!(world.post(&format!("runs/{run}/cancel"), json!({})).await.0, StatusCode::OK);
    assert_eq!(world.rows(SEALED).await, 1);
    world.later(world.plane.deps.limits.run_secret_age + SECOND).await;
    assert_eq!((world.forget_values().await, world.rows(SEALED).await), (1, 0));
    let view = world.variables_of(&run).await;
    assert!(view["removed_at"].is_string() && view["items"] == json!([]), "{view}");
}

#[tokio::test]
async fn how_long_they_are_kept_is_the_platforms_to_say() {
    let mut world = World::new().await;
    world.run_with_secret("plan").await;
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
    let path = "/api/v1/runtime-config/retention.run_secrets_hours";
    let admin = world.plane.admin_token().await;
    for (hours, expected) in [(23, 422), (8761, 422), (24, 200)] {
        let body = json!({ "value": hours });
        let (status, _, answer) =
            world.plane.call_with("PUT", path, admin.as_str(), body, &[("if-match", "*")]).await;
        assert_eq!(status.as_u16(), expected, "{hours}: {answer}");
    }
    world.later(Duration::from_secs(24 * 3600) - SECOND).await;
    assert_eq!(world.forget_values().await, 0);
    world.later(2 * SECOND).await;
    assert_eq!(world.forget_values().await, 1);
}

#[tokio::test]
async fn a_login_that_came_with_a_task_goes_and_a_replay_says_so_instead_of_using_another() {
    let mut world = World::new().await;
    let request =
        json!({ "repo_url": "https://git.example.com/infra.git", "username": "ada", "token": PLANTED });
    let (status, asked) = world.post("workspaces/discover", request).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{asked}");
    let failed = world.plane.do_short_and_settle().await.unwrap_err();
    assert!(!failed.why().contains("removed"), "{failed:?}");
    world.later(world.plane.deps.limits.run_secret_age - SECOND).await;
    assert_eq!((world.forget_logins().await, world.rows(LOGINS).await), (0, 1));
    world.later(2 * SECOND).await;
    assert_eq!((world.forget_logins().await, world.rows(LOGINS).await), (1, 0));

    let replay = format!("tasks/{}/replay", asked["task_id"].as_str().unwrap());
    let (status, again) = world.post(&replay, json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{again}");
    let failed = world.plane.do_short_and_settle().await.unwrap_err();
    assert!(failed.why().contains("it was removed"), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_sweeps_at_once_each_secret_is_removed_by_one() {
    const EACH: usize = 12;
    let mut world = World::new().await;
    for n in 0..EACH {
        world.run_with_secret("plan").await;
        assert_eq!(
            FakeExecutor::start(&world.plane).await.fail("permanent", "enough").await.0,
            StatusCode::NO_CONTENT
        );
        let repo_url = format!("https://git.example.com/{n}.git");
        let request = json!({ "repo_url": repo_url, "token": PLANTED });
        assert_eq!(world.post("workspaces/discover", request).await.0, StatusCode::ACCEPTED);
        world.plane.do_short_and_settle().await.unwrap_err();
    }
    world.later(world.plane.deps.limits.run_secret_age + SECOND).await;
    let values: usize = join_all((0..8).map(|_| world.forget_values())).await.iter().sum();
    let logins: usize = join_all((0..8).map(|_| world.forget_logins())).await.iter().sum();
    assert_eq!((values, logins), (EACH, EACH));
    assert_eq!((world.rows(SEALED).await, world.rows(LOGINS).await), (0, 0));
}
