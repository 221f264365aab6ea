//! Which bucket a body goes to, and where it is read from.

use http::StatusCode;
use plumbline_core::db::Query as _;
use serde_json::json;

use super::super::state_client::state;
use super::super::terraform_client::{self, APPLY, Terraform};
use super::{ONE, TWO, World, neighbour};
use crate::plane::slug;

#[tokio::test]
async fn the_state_of_a_workspace_lies_in_the_bucket_of_its_account_and_in_no_other() {
    let world = World::start().await;
    world.cloud.make("states-one");
    world.cloud.make("states-two");
    world.account(ONE, Some("states-one")).await;
    world.account(TWO, Some("states-two")).await;
    let (one, two) = (world.workspace(ONE).await, world.workspace(TWO).await);
    let elsewhere = world.backend.workspace;

    for (workspace, word) in [(one, "one"), (two, "two"), (elsewhere, "platform")] {
        assert_eq!(world.read_from(workspace).await.0, StatusCode::NO_CONTENT);
        assert_eq!(world.write_to(workspace, &state(1, word, word)).await.0, StatusCode::OK, "{word}");
        assert_eq!(world.read_from(workspace).await.2, state(1, word, word).as_bytes(), "{word}");
    }
    for (bucket, workspace) in [("states-one", one), ("states-two", two)] {
        let keys = world.cloud.keys(bucket);
        assert_eq!(keys.len(), 1, "{keys:?}");
        assert!(keys[0].contains(&workspace.to_string()), "{keys:?}");
    }
    let staged = world.staged();
    assert_eq!(staged.len(), 1, "{staged:?}");
    assert!(staged[0].contains(&elsewhere.to_string()), "{staged:?}");
}

#[tokio::test]
async fn a_real_terraform_works_on_a_state_in_an_accounts_bucket() {
    if !terraform_client::is_there().await {
        return;
    }
    let World { backend, cloud, platform } = World::with_a_bucket().await;
    let terraform = Terraform::at(backend).await;
    terraform.ok(&["init", "-input=false", "-no-color"]).await;
    terraform.ok(&APPLY).await;
    assert!(terraform.ok(&APPLY).await.contains("No changes."));
    terraform.ok(&["apply", "-auto-approve", "-no-color", "-var=value=two"]).await;
    assert_eq!(terraform.ok(&["output", "-raw", "value"]).await, "two");
    assert_eq!(cloud.keys("states-one").len(), 2);
    terraform.ok(&["destroy", "-auto-approve", "-no-color"]).await;
    assert_eq!((cloud.keys("states-one").len(), terraform.backend.versions().await.len()), (3, 3));
    assert!(!platform.root().join("states").exists(), "nothing came to the platform's store");
}

#[tokio::test]
async fn an_account_may_keep_the_state_of_a_workspace_that_is_in_another() {
    let world = World::start().await;
    world.cloud.make("states-two");
    world.account(ONE, None).await;
    world.account(TWO, Some("states-two")).await;
    let workspace = world.workspace(ONE).await;
    let conn = world.backend.plane.db().conn().await.unwrap();
    const POINT: &str = "UPDATE workspaces SET state_aws_account_id = $2 WHERE id = $1";
    conn.execute(POINT, &[&workspace, &TWO]).await.unwrap();
    drop(conn);
    assert_eq!(world.write_to(workspace, &state(1, "l", "a")).await.0, StatusCode::OK);
    assert_eq!(world.cloud.keys("states-two").len(), 1);
}

#[tokio::test]
async fn a_changed_bucket_takes_new_versions_and_old_ones_are_read_where_they_are() {
    let mut world = World::start().await;
    for bucket in ["states-one", "states-new"] {
        world.cloud.make(bucket);
    }
    let account = world.account(ONE, None).await;
    world.backend.workspace = world.workspace(ONE).await;
    world.backend.write(None, &state(1, "l", "platform")).await;
    world.edit(&account, json!({ "state_bucket": "states-one" })).await;
    world.backend.write(None, &state(2, "l", "first bucket")).await;
    world.edit(&account, json!({ "state_bucket": "states-new" })).await;
    world.backend.write(None, &state(3, "l", "second bucket")).await;
    world.edit(&account, json!({ "state_bucket": null })).await;
    world.backend.write(None, &state(4, "l", "platform again")).await;

    assert_eq!((world.cloud.keys("states-one").len(), world.cloud.keys("states-new").len()), (1, 1));
    assert_eq!(world.staged().len(), 2);
    let versions = world.backend.versions().await;
    let words = ["platform again", "second bucket", "first bucket", "platform"];
    for (version, word) in versions.iter().zip(words) {
        let id = version["id"].as_str().unwrap();
        let path = format!("state-versions/{id}/outputs");
        let (status, outputs) = world.api("GET", &path, None).await;
        assert_eq!(status, StatusCode::OK, "{outputs}");
        assert!(outputs.to_string().contains(word), "{word}: {outputs}");
        let (status, whole) = world.api("GET", &format!("state-versions/{id}/download"), None).await;
        assert_eq!((status, &whole["outputs"]["value"]["value"]), (StatusCode::OK, &json!(word)));
    }
}

#[tokio::test]
async fn another_units_account_is_never_used_and_its_place_cannot_be_named() {
    let world = World::start().await;
    world.cloud.make("states-one");
    world.cloud.make("states-theirs");
    // The same number, registered by both units; the first names no bucket.
    let ours = world.account(ONE, None).await;
    let (token, theirs) = neighbour(&world, Some("states-theirs")).await;
    let workspace = world.workspace(ONE).await;
    world.write_to(workspace, &state(1, "ours", "a")).await;
    let path = format!("/api/v1/state/{theirs}");
    world.backend.send_as(&token, "POST", &path, state(1, "theirs", "b")).await;

    assert_eq!(world.staged().len(), 1, "ours lies with the platform");
    let keys = world.cloud.keys("states-theirs");
    assert!(keys.len() == 1 && keys[0].contains(&theirs.to_string()), "{keys:?}");
    // Not even by hand: a version and its place are of one unit, by foreign keys.
    let conn = world.backend.plane.db().conn().await.unwrap();
    const STEAL: &str = "
        UPDATE state_versions SET store_id = (SELECT id FROM state_stores LIMIT 1) WHERE workspace_id = $1";
    assert!(conn.execute(STEAL, &[&workspace]).await.is_err());
    const FORGE: &str = "
        INSERT INTO state_stores (id, business_unit_id, aws_account_id, bucket, region)
        SELECT gen_random_uuid(), u.id, a.id, 'states-one', 'us-east-1'
        FROM aws_accounts a, business_units u WHERE a.id::text = $1 AND u.id <> a.business_unit_id";
    assert!(conn.execute(FORGE, &[&ours.as_str()]).await.is_err());
}

#[tokio::test]
async fn one_place_has_one_row_however_many_write_there_at_once() {
    let world = World::start().await;
    world.cloud.make("states-one");
    world.account(ONE, Some("states-one")).await;
    let mut workspaces = Vec::new();
    for _ in 0..12 {
        workspaces.push(world.workspace(ONE).await);
    }
    let body = state(1, "l", "a");
    let writes = workspaces.iter().map(|workspace| world.write_to(*workspace, &body));
    for answer in futures::future::join_all(writes).await {
        assert_eq!(answer.0, StatusCode::OK, "{}", String::from_utf8_lossy(&answer.2));
    }
    let conn = world.backend.plane.db().conn().await.unwrap();
    let rows: i64 = conn.query_one("SELECT count(*) FROM state_stores", &[]).await.unwrap().get(0);
    assert_eq!((rows, world.cloud.keys("states-one").len()), (1, 12));
}

#[tokio::test]
async fn a_workspace_that_asks_for_a_kind_of_store_gets_it_or_is_told_why_not() {
    let mut world = World::with_a_bucket().await;
    let path = format!("workspaces/{}", world.backend.workspace);
    let ask = async |kind: &str| world.api("PUT", &path, Some(json!({ "state_backend": kind }))).await;
    assert_eq!(ask("nfs").await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let (status, edited) = ask("platform").await;
    assert_eq!((status, &edited["state_backend"]), (StatusCode::OK, &json!("platform")), "{edited}");
    world.backend.write(None, &state(1, "l", "a")).await;
    for (kind, reason) in [("azureblob", "no Azure subscription"), ("gcs", "no GCP project")] {
        assert_eq!(ask(kind).await.0, StatusCode::OK);
        let (status, _, body) = world.backend.write(None, &state(2, "l", "b")).await;
        let told = super::problem(&body);
        assert_eq!((status, slug(&told)), (StatusCode::FAILED_DEPENDENCY, "state-store-unusable"), "{kind}");
        assert!(told["detail"].as_str().unwrap().contains(reason), "{told}");
    }
    assert_eq!(ask("s3").await.0, StatusCode::OK);
    assert_eq!(world.backend.write(None, &state(2, "l", "b")).await.0, StatusCode::OK);
    let versions = world.backend.versions().await;
    assert_eq!(
        (&versions[0]["stored_in"], &versions[1]["stored_in"]),
        (&json!("s3://states-one"), &json!(null))
    );
    // An account that names no bucket any more is no reason to put the state elsewhere.
    let account =
        world.api("GET", "aws-accounts", None).await.1["items"][0]["id"].as_str().unwrap().to_owned();
    world.edit(&account, json!({ "state_bucket": null })).await;
    let (status, ..) = world.backend.write(None, &state(3, "l", "c")).await;
    assert_eq!(status, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(world.body().await, state(2, "l", "b"));
    world.backend.workspace = world.workspace(ONE).await;
    assert_eq!(
        world.backend.write(None, &state(1, "m", "a")).await.0,
        StatusCode::OK,
        "others are automatic"
    );
}
