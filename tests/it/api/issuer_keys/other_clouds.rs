//! Azure and GCP: accounts without secrets, and the tokens that runs get for them.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::protocol::TokenFile;
use serde_json::{Value, json};

use super::{AUDIENCE, ask, ask_for, link_to, refused, served_plane, trusting_aws, trusting_world, verify};
use crate::api::cloud_accounts::{ACCOUNT, PROJECT, SUBSCRIPTION, azure, gcp};
use crate::executors::{FakeExecutor, claim_and_prepare, nonce, trade};
use crate::world::{World, post};

const EXCHANGE: &str = "api://AzureADTokenExchange";
const PROVIDER: &str = "projects/123456/locations/global/workloadIdentityPools/plumbline/providers/runs";
const RUNNER: &str = "runner@payments-prod.iam.gserviceaccount.com";

fn trusting_azure() -> Value {
    let mut new = azure();
    new.as_object_mut().unwrap().remove("client_secret");
    new["oidc_audience"] = json!(EXCHANGE);
    new
}

fn trusting_gcp() -> Value {
    json!({
        "project_id": PROJECT, "name": "payments", "workload_identity_provider": PROVIDER, "client_email": RUNNER,
    })
}

#[tokio::test]
async fn azure_and_gcp_get_tokens_of_their_own_audience_and_nothing_secret_is_in_the_bundle() {
    let world = World::on(served_plane().await).await;
    let issuer = world.plane.deps.public_url.to_string();
    for (path, new) in [("azure-subscriptions", trusting_azure()), ("gcp-projects", trusting_gcp())] {
        let (status, made) = world.post(path, new).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
    }
    link_to(&world, json!({ "azure_subscription_id": SUBSCRIPTION, "gcp_project_id": PROJECT })).await;
    let unit = world.plane.unit("default").await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let bundle = &executor.bundle;
    let gcp = TokenFile::Gcp { workload_identity_provider: PROVIDER.into(), client_email: RUNNER.into() };
    assert_eq!(bundle.token_files, [TokenFile::Azure, gcp]);
    assert_eq!(bundle.environment["ARM_USE_OIDC"], "true");
    assert!(!bundle.environment.contains_key("ARM_CLIENT_SECRET"));
    assert!(!bundle.environment.contains_key("GOOGLE_CREDENTIALS") && bundle.secrets.is_empty());

    let of_pool = format!("https://iam.googleapis.com/{PROVIDER}");
    for (whose, audience, account, kind) in [
        ("azure", EXCHANGE, SUBSCRIPTION, "azure_subscription"),
        ("gcp", of_pool.as_str(), PROJECT, "gcp_project"),
    ] {
        let (status, answer) = ask_for(&executor, whose).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let claims = verify(&issuer, answer["token"].as_str().unwrap(), audience).await.unwrap();
        let subject = format!("unit:{unit}:workspace:{}:phase:plan", world.workspace);
        // GCP takes no longer ones.
        assert!(claims["sub"] == subject.as_str() && subject.len() <= 127, "{claims}");
        assert!(claims.get("https://aws.amazon.com/tags").is_none(), "{claims}");
        let (_, log) = world.get("audit?action=identity_token.issue").await;
        let entry = &log["items"][0];
        assert_eq!(
            (&entry["resource_type"], &entry["resource_id"], &entry["run_id"]),
            (&json!(kind), &json!(account), &json!(run)),
            "{entry}"
        );
    }
    assert_eq!(refused(&ask(&executor).await), (StatusCode::NOT_FOUND, "not-found"), "it has no AWS account");
}

#[tokio::test]
async fn a_subscription_or_a_project_has_either_a_secret_or_trust() {
    let world = World::on(served_plane().await).await;
    let both = |mut new: Value, more: Value| {
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        new
    };
    let neither = |mut new: Value, field: &str| {
        new.as_object_mut().unwrap().remove(field);
        new
    };
    for (path, new, field) in [
        ("azure-subscriptions", neither(azure(), "client_secret"), "client_secret"),
        ("azure-subscriptions", both(azure(), json!({ "oidc_audience": EXCHANGE })), "oidc_audience"),
        ("azure-subscriptions", both(trusting_azure(), json!({ "oidc_audience": "a b" })), "oidc_audience"),
        ("gcp-projects", neither(gcp(), "service_account_json"), "service_account_json"),
        (
            "gcp-projects",
            both(gcp(), json!({ "workload_identity_provider": PROVIDER })),
            "workload_identity_provider",
        ),
        (
            "gcp-projects",
            both(trusting_gcp(), json!({ "workload_identity_provider": "runs" })),
            "workload_identity_provider",
        ),
        ("gcp-projects", neither(trusting_gcp(), "client_email"), "client_email"),
        ("gcp-projects", both(trusting_gcp(), json!({ "client_email": "a@example.com" })), "client_email"),
        ("gcp-projects", both(gcp(), json!({ "client_email": RUNNER })), "client_email"),
    ] {
        let (status, refused) = world.post(path, new.clone()).await;
        let wanted = (StatusCode::UNPROCESSABLE_ENTITY, &json!(field));
        assert_eq!((status, &refused["field"]), wanted, "{new}: {refused}");
    }

    // From a secret to trust, and back again.
    for (path, new, trust, back, secret) in [
        (
            "azure-subscriptions",
            azure(),
            json!({ "client_secret": null, "oidc_audience": EXCHANGE }),
            json!({ "client_secret": "hunter2~again~abcd", "oidc_audience": null }),
            "client_secret",
        ),
        (
            "gcp-projects",
            gcp(),
            json!({ "service_account_json": null, "workload_identity_provider": PROVIDER, "client_email": RUNNER }),
            json!({ "service_account_json": gcp()["service_account_json"], "workload_identity_provider": null }),
            "service_account_json",
        ),
    ] {
        let (status, made) = world.post(path, new).await;
        assert_eq!((status, &made[secret]["configured"]), (StatusCode::CREATED, &json!(true)), "{made}");
        let own = format!("/api/v1/{path}/{}", made["id"].as_str().unwrap());
        let put = async |body: Value| {
            world.plane.call_with("PUT", &own, &*world.token, body, &[("if-match", "*")]).await
        };
        assert_eq!(put(json!({ secret: null })).await.2["field"], json!(secret), "there must be a way in");
        let (status, _, trusting) = put(trust).await;
        assert_eq!((status, &trusting[secret]["configured"]), (StatusCode::OK, &json!(false)), "{trusting}");
        let stored = world.plane.every_row().await[&*path.replace('-', "_")].clone();
        assert!(!stored.contains(":gAAAA"), "the secret is gone: {stored}");
        let (status, _, keeping) = put(back).await;
        assert_eq!((status, &keeping[secret]["configured"]), (StatusCode::OK, &json!(true)), "{keeping}");
    }
}

#[tokio::test]
async fn trust_without_an_issuer_is_refused_and_a_run_that_needs_it_is_told() {
    let mut world = World::on(served_plane().await).await;
    for (path, new) in [("azure-subscriptions", trusting_azure()), ("gcp-projects", trusting_gcp())] {
        assert_eq!(world.post(path, new).await.0, StatusCode::CREATED);
    }
    world.plane.deps.public_url = "http://plumbline.example.com".into();
    let other = json!({ "subscription_id": "0f9619ff-8b86-d011-b42d-00cf4fc964aa" });
    let mut new = trusting_azure();
    new.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    assert_eq!(world.post("azure-subscriptions", new).await.1["field"], json!("oidc_audience"));
    for link in [
        json!({ "azure_subscription_id": SUBSCRIPTION }),
        json!({ "azure_subscription_id": null, "gcp_project_id": PROJECT }),
    ] {
        link_to(&world, link).await;
        let run = world.trigger("plan").await;
        let (_, launch) = claim_and_prepare(&world.plane).await.unwrap();
        assert_eq!(trade(&world.plane, &launch.ticket, &nonce(1)).await.0, StatusCode::GONE);
        let error = world.run(&run).await["error"].as_str().unwrap().to_owned();
        assert!(error.contains("PLUMBLINE_PUBLIC_URL does not begin with https://"), "{error}");
    }
}

/// One unit's account of a number is nothing to a run of another unit that names the same number.
#[tokio::test]
async fn a_run_of_another_unit_gets_no_token_for_this_units_account_and_its_own_names_its_own_unit() {
    let world = trusting_world().await;
    let issuer = world.plane.deps.public_url.to_string();
    let other = world.plane.unit("other").await;
    let stranger = world.plane.member(other, Role::Admin).await;
    let new = json!({
        "name": "theirs", "environment": "dev", "repo_url": "https://git.example.com/theirs.git",
        "aws_account_id": ACCOUNT,
    });
    let (status, theirs) = post(&world.plane, &stranger, "/api/v1/workspaces", new).await;
    assert_eq!(status, StatusCode::CREATED, "{theirs}");
    let run = json!({ "workspace_id": theirs["id"], "command": "plan" });
    assert_eq!(post(&world.plane, &stranger, "/api/v1/runs", run).await.0, StatusCode::CREATED);
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(executor.bundle.workspace_id.to_string(), theirs["id"].as_str().unwrap());
    assert!(executor.bundle.aws.is_none());
    assert_eq!(refused(&ask(&executor).await), (StatusCode::NOT_FOUND, "not-found"));

    let (status, made) = post(&world.plane, &stranger, "/api/v1/aws-accounts", trusting_aws()).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let (status, answer) = ask(&executor).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let claims = verify(&issuer, answer["token"].as_str().unwrap(), AUDIENCE).await.unwrap();
    assert!(claims["sub"].as_str().unwrap().starts_with(&format!("unit:{other}:workspace:")), "{claims}");
    let ours = world.plane.unit("default").await;
    assert!(!claims.to_string().contains(&ours.to_string()), "{claims}");
}
