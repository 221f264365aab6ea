//! History across places: what reads two versions, or makes one out of another, does not care where they lie.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_runtime::Function;
use serde_json::json;

use super::super::state_client::state;
use super::{ONE, World};

#[tokio::test]
async fn versions_in_two_places_are_compared_rolled_back_and_indexed() {
    let mut world = World::start().await;
    world.cloud.make("states-one");
    let account = world.account(ONE, None).await;
    world.backend.workspace = world.workspace(ONE).await;
    world.backend.write(None, &state(1, "l", "platform")).await;
    world.edit(&account, json!({ "state_bucket": "states-one" })).await;
    world.backend.write(None, &state(2, "l", "bucket")).await;
    let versions = world.backend.versions().await;
    let (new, old) = (versions[0]["id"].as_str().unwrap(), versions[1]["id"].as_str().unwrap());

    let (status, diff) = world.api("GET", &format!("state-versions/{new}/diff"), None).await;
    assert_eq!((status, diff["changed"].as_array().map(Vec::len)), (StatusCode::OK, Some(1)), "{diff}");

    let (status, back) = world.backend.api("POST", &format!("state-versions/{old}/rollback")).await;
    assert_eq!((status, &back["serial"]), (StatusCode::CREATED, &json!(3)), "{back}");
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (1, 2));
    assert_eq!(world.body().await, state(3, "l", "platform"));

    super::super::resources::bring_up_to_date(&world.backend).await;
    let (status, found) = world.api("GET", "resources?q=terraform_data", None).await;
    assert_eq!((status, found["items"].as_array().map(Vec::len)), (StatusCode::OK, Some(1)), "{found}");
}

#[tokio::test]
async fn a_promoted_body_that_needs_another_serial_goes_to_where_new_ones_go() {
    let mut world = World::start().await;
    world.cloud.make("states-one");
    let account = world.account(ONE, None).await;
    world.backend.workspace = world.workspace(ONE).await;
    let backend = &world.backend;
    backend.lock("l").await;
    backend.write(Some("l"), &state(3, "l", "head")).await;
    // Kept by the platform: the account had no bucket then.
    assert_eq!(backend.write(Some("gone"), &state(3, "l", "lost")).await.0, StatusCode::CONFLICT);
    backend.unlock("l").await;
    let id = backend.quarantined().await[0]["id"].as_str().unwrap().to_owned();
    world.edit(&account, json!({ "state_bucket": "states-one" })).await;
    let (status, promoted) = backend.api("POST", &format!("quarantined-states/{id}/promote")).await;
    assert_eq!((status, &promoted["serial"]), (StatusCode::OK, &json!(4)), "{promoted}");
    assert_eq!((world.staged().len(), world.cloud.keys("states-one").len()), (2, 1));
    assert_eq!(world.body().await, state(4, "l", "lost"));
}

#[tokio::test]
async fn viewers_read_outputs_and_have_no_way_to_the_bucket() {
    let world = World::with_a_bucket().await;
    world.backend.write(None, &state(1, "l", "a")).await;
    let viewer = world.backend.plane.user(Role::Viewer).await;
    let version = world.backend.versions().await[0]["id"].as_str().unwrap().to_owned();
    let read = async |path: String| world.backend.plane.call("GET", &path, viewer.as_str(), None).await.0;
    assert_eq!(read(format!("/api/v1/state-versions/{version}/outputs")).await, StatusCode::OK);
    assert_eq!(read(format!("/api/v1/state-versions/{version}/download")).await, StatusCode::FORBIDDEN);
    let conn = world.backend.plane.as_function(Function::Worker).db.conn().await.unwrap();
    assert!(conn.query("SELECT plan_role_arn FROM aws_accounts", &[]).await.is_err());
    assert!(conn.execute("DELETE FROM state_stores", &[]).await.is_err());
}
