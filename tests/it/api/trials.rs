//! Trying credentials of Azure, GCP, clusters, Slack and Infracost: short tasks, done by the real `outbound` against small
//! services on this machine.

use http::StatusCode;
use plumbline_core::Endpoints;
use plumbline_core::access::Role;
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::cloud_accounts::{self, Desk, MARK, PROJECT, SUBSCRIPTION, azure, gcp, service_account};
use crate::fake_services::{FakeServices, Mood};
use crate::plane::TestPlane;

const SECRET: &str = "hunter2~azure~abcd";
const BOT: &str = "xoxb-hunter2-0123456789";
const KEY: &str = "ico-hunter2-0123456789";
const NAMES: [&str; 4] = ["azure", "gcp", "slack", "infracost"];

/// A desk whose `outbound` asks these services.
async fn desk(services: &FakeServices) -> Desk {
    let mut plane = TestPlane::start().await;
    plane.deps.allow_private_addresses = true;
    plane.deps.endpoints = endpoints(&services.url).into();
    Desk::on(plane).await
}

fn endpoints(url: &str) -> Endpoints {
    Endpoints {
        azure_directories: format!("{url}/login"),
        azure: format!("{url}/azure"),
        google_oauth: format!("{url}/google"),
        slack: format!("{url}/slack"),
        infracost: format!("{url}/infracost"),
    }
}

/// Sets everything up and gives the path of the test of each.
async fn set_up(desk: &Desk, services: &FakeServices) -> Vec<(&'static str, String)> {
    let azure = desk.register("azure-subscriptions", azure()).await;
    let mut project = gcp();
    project["service_account_json"] = json!(services.service_account(PROJECT));
    let gcp = desk.register("gcp-projects", project).await;
    for (path, body) in [
        ("integrations/slack", json!({ "bot_token": BOT })),
        ("integrations/infracost", json!({ "api_key": KEY })),
    ] {
        let (status, _, set) = desk.call("PUT", path, body).await;
        assert_eq!(status, StatusCode::OK, "{set}");
    }
    let own = |path: &str, row: &Value| format!("{path}/{}/test", row["id"].as_str().unwrap());
    vec![
        ("azure", own("azure-subscriptions", &azure)),
        ("gcp", own("gcp-projects", &gcp)),
        ("slack", "integrations/slack/test".to_owned()),
        ("infracost", "integrations/infracost/test".to_owned()),
    ]
}

impl Desk {
    /// Asks for a test, and lets `outbound` do it: the result as its task tells it.
    pub(super) async fn try_out(&self, path: &str) -> Value {
        let (status, headers, asked) = self.call("POST", path, None).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{path}: {asked}");
        let location = format!("/api/v1/tasks/{}", asked["task_id"].as_str().unwrap());
        assert_eq!(headers["location"], location);
        let (worker, limits) = (self.plane.as_function(Function::Worker), &self.plane.deps.limits);
        let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "test", 1, limits).await.unwrap();
        let outbound = self.plane.as_function(Function::Outbound);
        let answer: Result<Value, FailedAttempt> = plumbline_outbound::handle(&outbound, &claimed[0]).await;
        let found = answer.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        let (lease, outcome) = (claimed[0].lease, tasks::FinishedOutcome::Done);
        let finished = worker
            .db
            .transaction(async |tx| tasks::service::finish(tx, lease, outcome, None, Some(&found)).await);
        finished.await.unwrap();
        let (_, _, task) = self.plane.call("GET", &location, &*self.admin, None).await;
        assert_eq!(task["result"], found, "the result is read from the task");
        assert!(!found.to_string().contains(MARK), "{found}");
        found
    }
}

fn detail(found: &Value) -> &str {
    assert_eq!(found["ok"], json!(false), "{found}");
    found["detail"].as_str().unwrap()
}

#[tokio::test]
async fn what_works_says_so_and_as_whom() {
    let services = FakeServices::start(SECRET, BOT, KEY).await;
    let desk = desk(&services).await;
    for (name, path) in set_up(&desk, &services).await {
        let found = desk.try_out(&path).await;
        assert_eq!((&found["ok"], &found["detail"]), (&json!(true), &Value::Null), "{name}: {found}");
        let (field, wanted) = match name {
            "azure" => ("subscription_name", "Payments (prod)"),
            "gcp" => ("client_email", "plumbline@payments-prod.iam.gserviceaccount.com"),
            "slack" => ("team_name", "Acme"),
            _ => continue,
        };
        assert_eq!(found[field], wanted, "{name}: {found}");
    }
    let kinds = ["azure_subscription.test", "gcp_project.test", "integration.test"];
    let mut tried = Vec::new();
    for kind in kinds {
        tried.push(desk.entries(kind).await.len());
    }
    assert_eq!(tried, [1, 1, 2], "each is recorded");
    let dump = desk.dump().await;
    assert!(!dump.contains(MARK) && !dump.contains("eyJ"), "nothing of it is left in the database");
}

#[tokio::test]
async fn wrong_credentials_are_a_result_in_the_services_own_word() {
    let services = FakeServices::start("another", "another", "another").await;
    let desk = desk(&services).await;
    let all = set_up(&desk, &services).await;
    services.forget_service_account();
    for (name, path) in all {
        let found = desk.try_out(&path).await;
        let wanted = match name {
            "azure" => "Azure refuses the service principal: invalid_client, AADSTS7000215",
            "gcp" => "Google refuses the key of the service account: invalid_grant",
            "slack" => "Slack refuses the bot token: invalid_auth",
            _ => "Infracost refuses the API key (403 Forbidden)",
        };
        assert_eq!(detail(&found), wanted, "{name}");
    }
}

#[tokio::test]
async fn a_principal_that_does_not_see_its_subscription_is_told_so() {
    let services = FakeServices::start(SECRET, BOT, KEY).await;
    let desk = desk(&services).await;
    let mut other = azure();
    other["subscription_id"] = json!(SUBSCRIPTION.replace('f', "e"));
    let made = desk.register("azure-subscriptions", other).await;
    let found = desk.try_out(&format!("azure-subscriptions/{}/test", made["id"].as_str().unwrap())).await;
    assert!(detail(&found).contains("does not see the subscription (403 Forbidden)"), "{found}");
}

#[tokio::test]
async fn services_that_are_slow_babble_or_send_us_elsewhere_are_told_apart() {
    let services = FakeServices::start(SECRET, BOT, KEY).await;
    let desk = desk(&services).await;
    let all = set_up(&desk, &services).await;
    for (mood, words) in [
        (Mood::Redirects, "sends callers elsewhere (302 Found), and is not followed"),
        (Mood::Fails, "says 503 Service Unavailable"),
        (Mood::Babbles, "cannot be read"),
        (Mood::Floods, "answers more than 262144 bytes"),
        (Mood::HangsUp, "cannot be reached"),
        (Mood::Waits, "does not answer in time"),
    ] {
        services.be(mood);
        // Waiting takes its time: once is enough.
        let asked = if mood == Mood::Waits { &all[..1] } else { &all[..] };
        for (name, path) in asked {
            let found = desk.try_out(path).await;
            assert!(detail(&found).contains(words), "{name}, {mood:?}: {found}");
        }
    }
    assert_eq!(services.elsewhere(), 0, "nobody followed");
}

#[tokio::test]
async fn inner_addresses_are_not_asked_and_nobody_there_is_a_result() {
    let services = FakeServices::start(SECRET, BOT, KEY).await;
    let mut desk = desk(&services).await;
    let all = set_up(&desk, &services).await;
    desk.plane.deps.endpoints = endpoints("http://127.0.0.1:9").into();
    for (name, path) in &all {
        assert!(detail(&desk.try_out(path).await).contains("127.0.0.1 cannot be reached"), "{name}");
    }
    // As in production: no private address, and nothing without encryption.
    desk.plane.deps.allow_private_addresses = false;
    for (address, words) in [
        (services.url.as_str(), "is not asked without encryption"),
        ("https://127.0.0.1:9", "is at an address that may not be reached"),
        ("https://169.254.169.254", "is at an address that may not be reached"),
        ("https://[fd00:ec2::254]", "is at an address that may not be reached"),
        ("https://10.0.0.1", "is at an address that may not be reached"),
    ] {
        desk.plane.deps.endpoints = endpoints(address).into();
        for (name, path) in &all {
            let found = desk.try_out(path).await;
            assert!(detail(&found).contains(words), "{name}, {address}: {found}");
        }
    }
    assert_eq!(services.asked(), 0);
}

#[tokio::test]
async fn what_is_not_set_cannot_be_opened_or_cannot_sign_is_a_result() {
    let services = FakeServices::start(SECRET, BOT, KEY).await;
    let desk = desk(&services).await;
    assert_eq!(detail(&desk.try_out("integrations/slack/test").await), "no bot token is set");
    assert_eq!(detail(&desk.try_out("integrations/infracost/test").await), "no API key is set");
    let all = set_up(&desk, &services).await;
    let key = json!({ "service_account_json": service_account("0123456789") });
    let own = all[1].1.trim_end_matches("/test").to_owned();
    assert_eq!(desk.call("PUT", &own, key).await.0, StatusCode::OK);
    assert!(detail(&desk.try_out(&all[1].1).await).contains("private key cannot be read"), "no PEM of a key");
    desk.spoil(("azure_subscriptions", "client_secret_sealed")).await;
    desk.spoil(("gcp_projects", "service_account_sealed")).await;
    let conn = desk.plane.db().conn().await.unwrap();
    use plumbline_core::db::Query as _;
    conn.execute("UPDATE unit_config SET sealed = 'ffffffff:spoiled' WHERE sealed IS NOT NULL", &[])
        .await
        .unwrap();
    drop(conn);
    for (name, path) in &all {
        assert!(detail(&desk.try_out(path).await).contains("cannot be opened"), "{name}");
    }
    assert_eq!(services.asked(), 0);
}

#[tokio::test]
async fn only_administrators_of_the_unit_try_credentials_and_only_who_asked_reads_the_result() {
    let services = FakeServices::start(SECRET, BOT, KEY).await;
    let desk = desk(&services).await;
    let all = set_up(&desk, &services).await;
    let operator = desk.plane.user(Role::Operator).await;
    let other = desk.plane.unit("other").await;
    let stranger = desk.plane.member(other, Role::Admin).await;
    for (name, path) in &all {
        assert_eq!(desk.call_as(&operator, "POST", path, None).await.0, StatusCode::FORBIDDEN, "{name}");
        let (status, _, answer) = desk.call_as(&stranger, "POST", path, None).await;
        if path.starts_with("integrations") {
            // It is theirs, and empty.
            assert_eq!(status, StatusCode::ACCEPTED, "{name}: {answer}");
        } else {
            assert_eq!(status, StatusCode::NOT_FOUND, "{name}: {answer}");
        }
        let (status, _, asked) = desk.call("POST", path, None).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{asked}");
        let task = format!("tasks/{}", asked["task_id"].as_str().unwrap());
        assert_eq!(desk.call_as(&stranger, "GET", &task, None).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(NAMES.map(|name| all.iter().any(|(known, _)| *known == name)), [true; 4]);
    assert_eq!(services.asked(), 0);
    assert_eq!(cloud_accounts::KINDS.len(), 4);
}
