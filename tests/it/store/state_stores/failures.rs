//! A place that cannot be used: the reason is told, and nothing is lost or taken for "no state".

use http::StatusCode;
use serde_json::json;

use super::super::state_client::state;
use super::{KEY, ONE, SECRET, TWO, World, problem};
use crate::plane::slug;

#[tokio::test]
async fn a_missing_bucket_is_424_and_never_no_state_and_once_it_is_there_everything_goes_on() {
    let mut world = World::start().await;
    world.account(ONE, Some("states-one")).await;
    world.backend.workspace = world.workspace(ONE).await;
    // Before the first state: whoever plans now must not find out at the end of the apply.
    let (status, _, body) = world.backend.read().await;
    assert_eq!(status, StatusCode::FAILED_DEPENDENCY, "{}", String::from_utf8_lossy(&body));
    let told = problem(&body);
    assert_eq!(slug(&told), "store-missing");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("states-one") && detail.contains(ONE), "{detail}");
    let (status, _, body) = world.backend.write(None, &state(1, "l", "a")).await;
    assert_eq!((status, slug(&problem(&body))), (StatusCode::FAILED_DEPENDENCY, "store-missing"));

    world.cloud.make("states-one");
    assert_eq!(world.backend.read().await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.backend.write(None, &state(1, "l", "a")).await.0, StatusCode::OK);

    world.cloud.lose("states-one");
    for _ in 0..2 {
        assert_eq!(world.backend.read().await.0, StatusCode::FAILED_DEPENDENCY);
        assert_eq!(world.backend.write(None, &state(2, "l", "b")).await.0, StatusCode::FAILED_DEPENDENCY);
    }
    let version = world.backend.versions().await[0]["id"].as_str().unwrap().to_owned();
    for path in ["download", "outputs", "diff"] {
        let (status, body) = world.api("GET", &format!("state-versions/{version}/{path}"), None).await;
        assert_eq!((status, slug(&body)), (StatusCode::FAILED_DEPENDENCY, "store-missing"), "{path}");
    }
    // Others are none the worse.
    world.cloud.make("states-two");
    world.account(TWO, Some("states-two")).await;
    let other = world.workspace(TWO).await;
    assert_eq!(world.write_to(other, &state(1, "o", "a")).await.0, StatusCode::OK);

    world.cloud.restore("states-one");
    assert_eq!(world.body().await, state(1, "l", "a"));
    assert_eq!(world.backend.write(None, &state(2, "l", "b")).await.0, StatusCode::OK);
    assert_eq!(world.body().await, state(2, "l", "b"));
    assert_eq!(world.backend.versions().await.len(), 2);
    assert_eq!(world.staged(), Vec::<String>::new(), "nothing went elsewhere");
}

#[tokio::test]
async fn refused_credentials_are_424_with_the_reason_until_they_are_replaced() {
    let world = World::with_a_bucket().await;
    world.backend.write(None, &state(1, "l", "a")).await;
    let (_, page) = world.api("GET", "aws-accounts", None).await;
    let account = page["items"][0]["id"].as_str().unwrap().to_owned();
    // What is open is closed by the edit: nobody goes on with keys that were taken away.
    let other = json!({ "access_key_id": KEY, "secret_access_key": "another-secret-and-not-the-right-one" });
    world.edit(&account, other).await;
    let (status, _, body) = world.backend.read().await;
    let told = problem(&body);
    assert_eq!((status, slug(&told)), (StatusCode::FAILED_DEPENDENCY, "state-store-unusable"), "{told}");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("states-one") && detail.contains(ONE), "{detail}");
    assert!(!detail.contains("another-secret"), "{detail}");
    let (status, ..) = world.backend.write(None, &state(2, "l", "b")).await;
    assert_eq!(status, StatusCode::FAILED_DEPENDENCY);

    world.edit(&account, json!({ "access_key_id": KEY, "secret_access_key": SECRET })).await;
    assert_eq!(world.body().await, state(1, "l", "a"));
    assert_eq!(world.backend.write(None, &state(2, "l", "b")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_account_that_only_trusts_runs_keeps_no_state_and_says_so() {
    let mut world = World::start().await;
    world.cloud.make("states-one");
    let account = world.account(ONE, Some("states-one")).await;
    world.backend.workspace = world.workspace(ONE).await;
    use plumbline_core::db::Query as _;
    const TRUST: &str = "
        UPDATE aws_accounts SET keys_sealed = NULL, oidc_audience = 'sts.amazonaws.com', version = version + 1,
            plan_role_arn = 'arn:aws:iam::111111111111:role/p', apply_role_arn = 'arn:aws:iam::111111111111:role/a'
        WHERE id::text = $1";
    world.backend.plane.db().conn().await.unwrap().execute(TRUST, &[&account.as_str()]).await.unwrap();
    let (status, _, body) = world.backend.write(None, &state(1, "l", "a")).await;
    let told = problem(&body);
    assert_eq!((status, slug(&told)), (StatusCode::FAILED_DEPENDENCY, "state-store-unusable"), "{told}");
    assert!(told["detail"].as_str().unwrap().contains("trusts tokens of runs"), "{told}");
    // A role that nobody here can assume is told, too.
    const UNTRUST: &str =
        "UPDATE aws_accounts SET oidc_audience = NULL, version = version + 1 WHERE id::text = $1";
    world.backend.plane.db().conn().await.unwrap().execute(UNTRUST, &[&account.as_str()]).await.unwrap();
    let (status, _, body) = world.backend.write(None, &state(1, "l", "a")).await;
    assert_eq!(status, StatusCode::FAILED_DEPENDENCY);
    assert!(problem(&body)["detail"].as_str().unwrap().contains("no role"), "{}", problem(&body));
}

#[tokio::test]
async fn a_store_that_is_away_is_503_and_passes() {
    let mut world = World::with_a_bucket().await;
    world.backend.write(None, &state(1, "l", "a")).await;
    let there =
        std::mem::replace(&mut world.backend.plane.deps.state_stores, super::stores_at("http://127.0.0.1:9"));
    assert_eq!(world.backend.read().await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(world.backend.write(None, &state(2, "l", "b")).await.0, StatusCode::SERVICE_UNAVAILABLE);
    world.backend.plane.deps.state_stores = there;
    assert_eq!(world.backend.write(None, &state(2, "l", "b")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_workspace_whose_bucket_is_gone_for_good_goes_by_force_alone() {
    let world = World::with_a_bucket().await;
    world.backend.write(None, &state(1, "l", "a")).await;
    world.cloud.lose("states-one");
    let path = format!("workspaces/{}", world.backend.workspace);
    let (status, body) = world.api("DELETE", &path, None).await;
    assert_eq!((status, slug(&body)), (StatusCode::CONFLICT, "workspace-has-resources"), "{body}");
    let (status, body) = world.api("DELETE", &format!("{path}?force=true"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{body}");
}
