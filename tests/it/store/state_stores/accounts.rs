//! An account that holds states.

use http::StatusCode;
use plumbline_core::db::Query as _;
use plumbline_core::tfstates::service;
use plumbline_runtime::Function;
use serde_json::json;

use super::super::state_client::state;
use super::{ONE, World};
use crate::plane::slug;

#[tokio::test]
async fn an_account_is_not_deleted_while_a_state_lies_there_or_a_workspace_would_put_one_there() {
    let mut world = World::start().await;
    world.cloud.make("states-one");
    let account = world.account(ONE, Some("states-one")).await;
    world.backend.workspace = world.workspace(ONE).await;
    let path = format!("aws-accounts/{account}");
    let (status, body) = world.api("DELETE", &path, None).await;
    assert_eq!((status, slug(&body)), (StatusCode::CONFLICT, "cloud-account-in-use"));
    assert_eq!((&body["workspaces"], &body["states"]), (&json!([ONE]), &json!([])));

    world.backend.write(None, &state(1, "l", "a")).await;
    let conn = world.backend.plane.db().conn().await.unwrap();
    const MOVE: &str = "UPDATE workspaces SET aws_account_id = 'global' WHERE id = $1";
    conn.execute(MOVE, &[&world.backend.workspace]).await.unwrap();
    drop(conn);
    let (status, body) = world.api("DELETE", &path, None).await;
    assert_eq!((status, slug(&body)), (StatusCode::CONFLICT, "cloud-account-in-use"));
    assert_eq!((&body["workspaces"], &body["states"]), (&json!([]), &json!([ONE])));
    assert!(body["detail"].as_str().unwrap().contains(ONE), "{body}");
    // The newest version lies elsewhere by now, the old one still there.
    assert_eq!(world.backend.write(None, &state(2, "l", "b")).await.0, StatusCode::OK);
    assert_eq!(world.api("DELETE", &path, None).await.0, StatusCode::CONFLICT);

    let (status, body) =
        world.api("DELETE", &format!("workspaces/{}?force=true", world.backend.workspace), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{body}");
    assert_eq!(world.api("DELETE", &path, None).await.0, StatusCode::NO_CONTENT);
    let conn = world.backend.plane.db().conn().await.unwrap();
    let left: i64 = conn.query_one("SELECT count(*) FROM state_stores", &[]).await.unwrap().get(0);
    assert_eq!(left, 0, "its places went with it");
}

#[tokio::test]
async fn expired_versions_leave_the_bucket_and_wait_while_it_cannot_be_used() {
    let world = World::with_a_bucket().await;
    for serial in 1..=4 {
        world.backend.write(None, &state(serial, "l", "a")).await;
    }
    assert_eq!(world.cloud.keys("states-one").len(), 4);
    const EXPIRE: &str = "
        UPDATE state_versions SET expired_at = plumbline_now() WHERE serial < 4 AND workspace_id = $1";
    let conn = world.backend.plane.db().conn().await.unwrap();
    conn.execute(EXPIRE, &[&world.backend.workspace]).await.unwrap();
    drop(conn);
    let sweep = async || {
        service::sweep_versions(&world.backend.plane.as_function(Function::Reconciler)).await.unwrap()
    };
    world.cloud.lose("states-one");
    assert_eq!(sweep().await, 0, "a body that may be there keeps its row");
    world.cloud.restore("states-one");
    assert_eq!(sweep().await, 3);
    assert_eq!(world.cloud.keys("states-one").len(), 1);
    assert_eq!(world.body().await, state(4, "l", "a"));
}
