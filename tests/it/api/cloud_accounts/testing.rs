//! Trying the credentials of an AWS account: a short task, done by the real `outbound` against a small STS.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::*;
use crate::fake_sts::{Canned, FakeSts, Principal};
use crate::plane::TestPlane;

const USER: &str = "arn:aws:iam::123456789012:user/plumbline";

/// A desk whose `outbound` asks this STS.
async fn desk(sts: &FakeSts) -> Desk {
    let mut plane = TestPlane::start().await;
    plane.deps.sts_endpoint = Some(sts.url.as_str().into());
    Desk::on(plane).await
}

fn of(user: &Principal) -> Value {
    let mut new = aws();
    new["access_key_id"] = json!(user.keys.access_key_id());
    new["secret_access_key"] = json!(user.keys.secret_access_key());
    new
}

impl Desk {
    /// Asks for a test of the account, and lets `outbound` do it.
    async fn test(&self, account: &Value) -> Result<Value, FailedAttempt> {
        let path = format!("aws-accounts/{}/test", account["id"].as_str().unwrap());
        let (status, headers, asked) = self.call("POST", &path, None).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{asked}");
        let location = format!("/api/v1/tasks/{}", asked["task_id"].as_str().unwrap());
        assert_eq!(headers["location"], location);
        let (worker, limits) = (self.plane.as_function(Function::Worker), &self.plane.deps.limits);
        let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "test", 1, limits).await.unwrap();
        let outbound = self.plane.as_function(Function::Outbound);
        let answer = plumbline_outbound::handle(&outbound, &claimed[0]).await;
        let lease = claimed[0].lease;
        let outcome = tasks::FinishedOutcome::Done;
        let finished = worker.db.transaction(async |tx| {
            tasks::service::finish(tx, lease, outcome, None, answer.as_ref().ok()).await
        });
        finished.await.unwrap();
        let (_, _, task) = self.plane.call("GET", &location, &*self.admin, None).await;
        assert_eq!(task["result"], answer.clone().unwrap_or_default(), "the result is read from the task");
        answer
    }
}

#[tokio::test]
async fn a_test_says_who_the_keys_are_and_which_roles_they_open() {
    let sts = FakeSts::start().await;
    let desk = desk(&sts).await;
    let account = desk.register("aws-accounts", of(&sts.user(USER))).await;
    let found = desk.test(&account).await.unwrap();
    assert_eq!((&found["ok"], &found["caller_arn"]), (&json!(true), &json!(USER)), "{found}");

    let role = |name: &str| format!("arn:aws:iam::{ACCOUNT}:role/{name}");
    let own = format!("aws-accounts/{}", account["id"].as_str().unwrap());
    let change = json!({"plan_role_arn": role("plan"), "apply_role_arn": role("apply")});
    assert_eq!(desk.call("PUT", &own, change).await.0, StatusCode::OK);
    sts.role(&role("plan"), USER, account["external_id"].as_str());
    let found = desk.test(&account).await.unwrap();
    let detail = found["detail"].as_str().unwrap();
    assert_eq!(found["ok"], json!(false), "{found}");
    assert!(detail.contains(&role("apply")) && detail.contains("AccessDenied"), "{detail}");
    sts.role(&role("apply"), USER, account["external_id"].as_str());
    let found = desk.test(&account).await.unwrap();
    assert_eq!(
        (&found["ok"], found["assumed_arns"].as_array().map(Vec::len)),
        (&json!(true), Some(2)),
        "{found}"
    );
    assert_eq!(desk.entries("aws_account.test").await.len(), 3);
    assert!(!desk.dump().await.contains(sts.user(USER).keys.secret_access_key()));
}

#[tokio::test]
async fn what_does_not_work_is_a_result_with_a_reason_and_an_aws_that_is_away_is_none() {
    let sts = FakeSts::start().await;
    let desk = desk(&sts).await;
    let account = desk.register("aws-accounts", aws()).await;
    let found = desk.test(&account).await.unwrap();
    assert_eq!(found["ok"], json!(false));
    assert!(found["detail"].as_str().unwrap().contains("InvalidClientTokenId"), "{found}");

    let own = format!("aws-accounts/{}", account["id"].as_str().unwrap());
    let elsewhere = of(&sts.user("arn:aws:iam::210987654321:user/plumbline"));
    let keys = json!({"access_key_id": elsewhere["access_key_id"], "secret_access_key": elsewhere["secret_access_key"]});
    assert_eq!(desk.call("PUT", &own, keys).await.0, StatusCode::OK);
    let found = desk.test(&account).await.unwrap();
    assert!(found["detail"].as_str().unwrap().contains("belong to account 210987654321"), "{found}");

    let away = Canned { status: StatusCode::SERVICE_UNAVAILABLE, location: None, body: String::new() };
    sts.answer(Some(away));
    assert!(matches!(desk.test(&account).await, Err(FailedAttempt::Retry(_))));
    sts.answer(None);
    desk.spoil(KINDS[0].sealed).await;
    let found = desk.test(&account).await.unwrap();
    assert!(found["detail"].as_str().unwrap().contains("cannot be opened"), "{found}");
}

#[tokio::test]
async fn only_administrators_of_the_unit_try_credentials() {
    let sts = FakeSts::start().await;
    let desk = desk(&sts).await;
    let account = desk.register("aws-accounts", of(&sts.user(USER))).await;
    let path = format!("aws-accounts/{}/test", account["id"].as_str().unwrap());
    let operator = desk.plane.user(Role::Operator).await;
    assert_eq!(desk.call_as(&operator, "POST", &path, None).await.0, StatusCode::FORBIDDEN);
    let other = desk.plane.unit("other").await;
    let stranger = desk.plane.member(other, Role::Admin).await;
    assert_eq!(desk.call_as(&stranger, "POST", &path, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(sts.requests(), 0);
}
