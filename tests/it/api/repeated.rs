//! One key, one effect: a sweep over every route that takes an `Idempotency-Key`.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::ids::BusinessUnitId;
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::cloud_accounts;
use super::shell::{Route, routes};
use crate::executors::{FakeExecutor, NO_CHANGES};
use crate::plane::{Answer, slug};
use crate::world::World;

/// A finished plan to promote, a dead letter to replay, an account to test.
struct Desk {
    world: World,
    superadmin: String,
    unit: BusinessUnitId,
    plan: String,
    dead: String,
    credential: String,
    aws_account: String,
    azure_subscription: String,
    gcp_project: String,
    cluster: String,
    variable_set: String,
}

impl Desk {
    async fn new() -> Self {
        let world = World::new().await;
        let superadmin = world.plane.admin_token().await;
        let plan = world.trigger("plan").await;
        assert_eq!(FakeExecutor::start(&world.plane).await.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
        let (_, asked) = world.post(&format!("workspaces/{}/branches", world.workspace), json!({})).await;
        let (worker, limits) = (world.plane.as_function(Function::Worker), &world.plane.deps.limits);
        let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "test", 1, limits).await.unwrap();
        let failure = FailedAttempt::Permanent("the forge said no".into());
        let lease = claimed[0].lease;
        let failed =
            worker.db.transaction(async |tx| tasks::service::fail(tx, lease, &failure, 0.0, limits).await);
        failed.await.unwrap();
        let dead = asked["task_id"].as_str().unwrap().to_owned();
        let credential = git_credential("forge", "git.example.com");
        let (status, credential) = world.post("git-credentials", credential).await;
        assert_eq!(status, StatusCode::CREATED, "{credential}");
        let credential = credential["id"].as_str().unwrap().to_owned();
        let (_, account) = world.post("aws-accounts", cloud_accounts::aws()).await;
        let aws_account = account["id"].as_str().unwrap().to_owned();
        let mut others = Vec::new();
        for kind in &cloud_accounts::KINDS[1..] {
            let (_, made) = world.post(kind.path, (kind.new)()).await;
            others.push(made["id"].as_str().unwrap().to_owned());
        }
        let [azure_subscription, gcp_project, cluster] = others.try_into().unwrap();
        let (_, set) = world.post("variable-sets", json!({ "name": "shared" })).await;
        let variable_set = set["id"].as_str().unwrap().to_owned();
        let unit = world.plane.unit("default").await;
        Self {
            world,
            superadmin,
            unit,
            plan,
            dead,
            credential,
            aws_account,
            azure_subscription,
            gcp_project,
            cluster,
            variable_set,
        }
    }

    /// Where to send the `n`th request of a route, and with what.
    fn request(&self, route: &Route, n: usize) -> (String, Option<Value>) {
        let repository = json!({ "repo_url": format!("https://git.example.com/{n}.git") });
        // A repetition is not told a value again, and of a secret nobody is.
        let variable = json!({ "key": format!("k{n}"), "value": "v", "is_secret": true });
        let (id, body) = match route.pattern.as_str() {
            "/api/v1/business-units" => ("", Some(json!({ "slug": format!("unit-{n}"), "name": "Unit" }))),
            "/api/v1/users" => {
                let memberships = json!([{ "business_unit_id": self.unit, "role": "viewer" }]);
                let email = format!("user{n}@plumbline.test");
                let body = json!({ "email": email, "password": "only for the first time", "memberships": memberships });
                ("", Some(body))
            }
            "/api/v1/auth/jwt-secrets" => ("", Some(json!({ "overlap_minutes": 60 + n }))),
            // Another body is another request; one that may wait would be too early here.
            "/api/v1/auth/issuer-keys" => ("", Some(json!({ "at_once": n != 5 }))),
            "/api/v1/ci-trust-rules" => {
                let issuer = "https://token.example.com";
                let rule = json!({ "name": n.to_string(), "issuer": issuer, "audience": "a", "subject": "repo:a/b" });
                ("", Some(rule))
            }
            "/api/v1/workspaces" => {
                let mut new = json!({ "name": "net", "environment": "dev" });
                new["repo_url"] = repository["repo_url"].clone();
                ("", Some(new))
            }
            "/api/v1/workspaces/discover" | "/api/v1/workspaces/import" => ("", Some(repository)),
            "/api/v1/workspaces/{id}/branches" => (&*self.world.workspace, None),
            "/api/v1/aws-accounts" => {
                ("", Some(with(cloud_accounts::aws(), "account_id", format!("{n:012}"))))
            }
            "/api/v1/aws-accounts/{id}/test" => (&*self.aws_account, None),
            "/api/v1/azure-subscriptions/{id}/test" => (&*self.azure_subscription, None),
            "/api/v1/gcp-projects/{id}/test" => (&*self.gcp_project, None),
            "/api/v1/clusters/{id}/test" => (&*self.cluster, None),
            "/api/v1/integrations/slack/test" | "/api/v1/integrations/infracost/test" => ("", None),
            "/api/v1/azure-subscriptions" => {
                let id = format!("0f9619ff-8b86-d011-b42d-{n:012}");
                ("", Some(with(cloud_accounts::azure(), "subscription_id", id)))
            }
            "/api/v1/gcp-projects" => {
                let (new, id) = (cloud_accounts::gcp(), format!("project-{n}"));
                let new = new.to_string().replace(cloud_accounts::PROJECT, &id);
                ("", serde_json::from_str(&new).ok())
            }
            "/api/v1/clusters" => ("", Some(with(cloud_accounts::cluster(), "name", format!("cluster-{n}")))),
            "/api/v1/variable-sets" => ("", Some(json!({ "name": format!("set-{n}") }))),
            "/api/v1/variables" => ("", Some(variable)),
            "/api/v1/workspaces/{id}/variables" => (&*self.world.workspace, Some(variable)),
            "/api/v1/variable-sets/{id}/variables" => (&*self.variable_set, Some(variable)),
            "/api/v1/runs" => {
                let body = json!({ "workspace_id": self.world.workspace, "command": "plan", "message": n.to_string() });
                ("", Some(body))
            }
            "/api/v1/runs/{id}/promote" => (&*self.plan, Some(json!({}))),
            "/api/v1/tasks/{id}/replay" => (&*self.dead, None),
            "/api/v1/admin/rekey" => ("", None),
            "/api/v1/git-credentials" => {
                ("", Some(git_credential(&format!("forge-{n}"), &format!("{n}.example.com"))))
            }
            "/api/v1/git-credentials/{id}/test" => (&*self.credential, Some(repository)),
            other => panic!("how is {other} called?"),
        };
        (route.pattern.replace("{id}", id), body)
    }

    async fn send(&self, token: &str, key: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = [("idempotency-key", key), ("x-business-unit", "default")];
        self.world.plane.call_with("POST", path, token, body, &headers).await
    }
}

fn git_credential(name: &str, host: &str) -> Value {
    json!({ "name": name, "kind": "token", "host": host, "token": "planted" })
}

fn with(mut body: Value, field: &str, value: String) -> Value {
    body[field] = value.into();
    body
}

#[tokio::test]
async fn a_request_sent_again_under_its_key_has_no_second_effect_on_any_route() {
    let desk = Desk::new().await;
    let other = desk.world.plane.user(Role::Admin).await;
    let keyed: Vec<Route> = routes().into_iter().filter(Route::takes_idempotency_key).collect();
    assert!(keyed.len() >= 8, "{} routes take a key", keyed.len());
    for route in &keyed {
        let name = &route.pattern;
        let (path, body) = desk.request(route, 1);
        let first = desk.send(&desk.superadmin, name, &path, body.clone()).await;
        assert!(first.0.is_success(), "{name}: {} {}", first.0, first.2);
        assert!(!first.1.contains_key("idempotency-replayed"), "{name}");
        let after_one = desk.world.plane.every_row().await;
        for _ in 0..2 {
            let again = desk.send(&desk.superadmin, name, &path, body.clone()).await;
            assert_eq!((again.0, &again.2), (first.0, &first.2), "{name}");
            assert_eq!(again.1.get("location"), first.1.get("location"), "{name}");
            assert_eq!(again.1["idempotency-replayed"], "true", "{name}");
        }
        assert_eq!(desk.world.plane.every_row().await, after_one, "{name}");

        // The key is one person's: somebody else's is another one. Units and secrets are for superadmins alone.
        let (path, body) = desk.request(route, 2);
        let theirs = desk.send(&other, name, &path, body).await;
        assert!(!theirs.1.contains_key("idempotency-replayed"), "{name}");
        assert!(
            theirs.0.is_success()
                || [
                    "/api/v1/business-units",
                    "/api/v1/admin/rekey",
                    "/api/v1/auth/issuer-keys",
                    "/api/v1/auth/jwt-secrets",
                ]
                .contains(&name.as_str()),
            "{name}: {} {}",
            theirs.0,
            theirs.2
        );
    }
}

#[tokio::test]
async fn of_many_requests_at_once_under_one_key_one_has_an_effect_on_any_route() {
    let desk = Desk::new().await;
    for route in routes().into_iter().filter(Route::takes_idempotency_key) {
        let name = &route.pattern;
        let (path, body) = desk.request(&route, 3);
        let sent = (0..6).map(|_| desk.send(&desk.superadmin, name, &path, body.clone()));
        let answers = futures::future::join_all(sent).await;
        let replayed = answers.iter().filter(|answer| answer.1.contains_key("idempotency-replayed")).count();
        assert_eq!(replayed, answers.len() - 1, "{name}");
        for answer in &answers {
            assert_eq!((answer.0, &answer.2), (answers[0].0, &answers[0].2), "{name}");
        }
    }
}

#[tokio::test]
async fn a_key_stands_for_one_path_and_one_body_on_any_route() {
    let desk = Desk::new().await;
    let all: Vec<Route> = routes().into_iter().filter(Route::takes_idempotency_key).collect();
    // One with a body: the same path with another is refused, too.
    let first = all.iter().find(|route| route.has_body()).unwrap();
    let (path, body) = desk.request(first, 4);
    assert!(desk.send(&desk.superadmin, "k", &path, body).await.0.is_success());
    for route in &all {
        let (path, body) = desk.request(route, 5);
        let answer = desk.send(&desk.superadmin, "k", &path, body).await;
        let refusal = (answer.0, slug(&answer.2));
        let reused = (StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-reused");
        assert_eq!(refusal, reused, "{}: {}", route.pattern, answer.2);
    }
}
