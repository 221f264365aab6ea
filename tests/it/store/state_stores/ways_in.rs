//! With what a place is opened: a role's session at AWS, a service principal at Azure, a service account's key at Google.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::StatusCode;
use plumbline_core::adapters::DirectoryStore;
use plumbline_core::db::Query as _;
use plumbline_core::ports::{OpenError, OpenedStore, StateStores};
use plumbline_core::state_stores::{OpenStores, StateAccess, StatePlace};
use plumbline_runtime::{AccountStores, StoreEndpoints};
use serde_json::json;

use super::super::state_client::state;
use super::{ONE, World, problem, workspace_in};
use crate::api::cloud_accounts::{PROJECT, SUBSCRIPTION, azure, gcp};
use crate::fake_sts::FakeSts;
use crate::plane::slug;

const USER: &str = "arn:aws:iam::999999999999:user/plumbline";
const ROLE: &str = "arn:aws:iam::111111111111:role/apply";

#[tokio::test]
async fn a_role_is_assumed_for_the_bucket_alone_and_one_that_does_not_trust_is_named() {
    let sts = FakeSts::start().await;
    let mut world = World::start().await;
    world.cloud.make("states-one");
    let endpoints = StoreEndpoints {
        s3: Some(world.cloud.url.clone()),
        sts: Some(sts.url.clone()),
        ..StoreEndpoints::default()
    };
    world.backend.plane.deps.state_stores = Arc::new(OpenStores::new(Arc::new(AccountStores::at(endpoints))));
    let user = sts.user(USER);
    let new = json!({
        "account_id": ONE, "name": "by role", "default_region": "eu-central-1", "state_bucket": "states-one", "plan_role_arn": ROLE, "apply_role_arn": ROLE,
        "access_key_id": user.keys.access_key_id(), "secret_access_key": user.keys.secret_access_key(),
    });
    let (status, account) = world.api("POST", "aws-accounts", Some(new)).await;
    assert_eq!(status, StatusCode::CREATED, "{account}");
    world.backend.workspace = world.workspace(ONE).await;

    let (status, _, body) = world.backend.write(None, &state(1, "l", "a")).await;
    let told = problem(&body);
    assert_eq!((status, slug(&told)), (StatusCode::FAILED_DEPENDENCY, "state-store-unusable"), "{told}");
    assert!(told["detail"].as_str().unwrap().contains(ROLE), "{told}");

    let conn = world.backend.plane.db().conn().await.unwrap();
    let row = conn.query_one("SELECT external_id FROM aws_accounts", &[]).await.unwrap();
    drop(conn);
    sts.role(ROLE, USER, Some(row.get("external_id")));
    // The store knows no keys of sessions; that it was asked with them is what counts here.
    for _ in 0..2 {
        let (_, _, body) = world.backend.write(None, &state(1, "l", "a")).await;
        assert_eq!(slug(&problem(&body)), "state-store-unusable", "{}", problem(&body));
        assert!(!problem(&body)["detail"].as_str().unwrap().contains("assumed"), "{}", problem(&body));
    }
    let sessions = sts.sessions();
    assert_eq!(sessions.len(), 1, "an open place is used again");
    let session = &sessions[0];
    assert_eq!((session.role_arn.as_str(), session.name.as_str()), (ROLE, "plumbline-states"));
    assert_eq!(session.tags["plumbline:phase"], "state");
    let policy = session.policy.as_deref().unwrap();
    assert!(policy.contains("arn:aws:s3:::states-one/*") && !policy.contains("s3:*"), "{policy}");
}

/// Opens every place as a directory, and remembers what it was asked for.
#[derive(Debug)]
struct Remembering {
    directory: tempfile::TempDir,
    asked: Mutex<Vec<(StatePlace, StateAccess)>>,
}

#[async_trait]
impl StateStores for Remembering {
    async fn open(&self, place: &StatePlace, access: &StateAccess) -> Result<OpenedStore, OpenError> {
        self.asked.lock().unwrap().push((place.clone(), access.clone()));
        let blobs = Arc::new(DirectoryStore::new(self.directory.path(), "http://127.0.0.1:9", [0; 32]));
        Ok(OpenedStore { blobs, renew_at: None })
    }
}

#[tokio::test]
async fn azure_and_google_are_reached_with_what_their_own_accounts_hold() {
    let opener = Arc::new(Remembering { directory: tempfile::tempdir().unwrap(), asked: Mutex::default() });
    let mut world = World::start().await;
    world.backend.plane.deps.state_stores = Arc::new(OpenStores::new(opener.clone()));
    let (mut subscription, mut project) = (azure(), gcp());
    subscription["state_storage_account"] = json!("acmestates");
    subscription["state_container"] = json!("tfstates");
    project["state_bucket"] = json!("acme-states");
    project["state_prefix"] = json!("plumbline");
    for (kind, new) in [("azure-subscriptions", subscription), ("gcp-projects", project)] {
        let (status, body) = world.api("POST", kind, Some(new)).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
    }
    for (link, id, stored_in) in [
        ("azure_subscription_id", SUBSCRIPTION, "https://acmestates.blob.core.windows.net/tfstates"),
        ("gcp_project_id", PROJECT, "gs://acme-states/plumbline"),
    ] {
        let workspace = workspace_in(&world.backend, world.backend.unit, ONE).await;
        world.backend.workspace = workspace;
        let change = Some(json!({ link: id, "aws_account_id": "global" }));
        let (status, body) = world.api("PUT", &format!("workspaces/{workspace}"), change).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        for serial in 1..=2 {
            let (status, _, body) = world.backend.write(None, &state(serial, "l", "a")).await;
            assert_eq!(status, StatusCode::OK, "{}", problem(&body));
        }
        assert_eq!(world.body().await, state(2, "l", "a"));
        assert_eq!(world.backend.versions().await[0]["stored_in"], stored_in);
    }
    let asked = opener.asked.lock().unwrap();
    let [(azure_place, azure_access), (gcs_place, gcs_access)] = &asked[..] else {
        panic!("each was opened once: {}", asked.len());
    };
    let (storage_account, container) = ("acmestates".to_owned(), "tfstates".to_owned());
    assert_eq!(*azure_place, StatePlace::AzureBlob { storage_account, container });
    let StateAccess::Azure { client_secret, .. } = azure_access else { panic!("{azure_access:?}") };
    assert_eq!(client_secret.expose(), "hunter2~azure~abcd");
    let (bucket, prefix) = ("acme-states".to_owned(), Some("plumbline".to_owned()));
    assert_eq!(*gcs_place, StatePlace::Gcs { bucket, prefix });
    let StateAccess::Gcp { service_account } = gcs_access else { panic!("{gcs_access:?}") };
    assert!(service_account.expose().contains("plumbline@payments-prod.iam.gserviceaccount.com"));
    assert!(!format!("{asked:?}").contains("hunter2"), "no credential is printed");
}
