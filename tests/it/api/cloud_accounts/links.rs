//! Workspaces name accounts of their own unit.

use http::StatusCode;
use plumbline_core::access::Role;
use serde_json::{Value, json};

use super::*;
use crate::plane::slug;

fn value_of(kind: &Kind, account: &Value) -> Value {
    account[kind.linked_by].clone()
}

#[tokio::test]
async fn a_workspace_is_linked_to_what_its_unit_has_registered_and_null_unlinks() {
    let desk = Desk::new().await;
    let other = desk.plane.unit("other").await;
    let stranger = desk.plane.member(other, Role::Admin).await;
    for kind in &KINDS {
        // First only another unit has it: that is as if nobody had it.
        let (_, _, theirs) = desk.call_as(&stranger, "POST", kind.path, (kind.new)()).await;
        let foreign = json!({kind.link: value_of(kind, &theirs)});
        let (status, _, problem) = desk.workspace("net", foreign.clone()).await;
        let refused = (status, slug(&problem).to_owned(), problem["field"].clone());
        assert_eq!(
            refused,
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field".into(), json!(kind.link)),
            "{problem}"
        );
        let nobody = if kind.link == "cluster_id" { json!(uuid::Uuid::now_v7()) } else { json!("nobody") };
        let (status, _, unknown) = desk.workspace("net", json!({kind.link: nobody})).await;
        assert_eq!((status, &unknown["detail"]), (StatusCode::UNPROCESSABLE_ENTITY, &problem["detail"]));

        let own = desk.register(kind.path, (kind.new)()).await;
        let link = value_of(kind, &own);
        let name = kind.path;
        let (status, _, made) = desk.workspace(name, json!({kind.link: link})).await;
        assert_eq!((status, &made[kind.link]), (StatusCode::CREATED, &link), "{made}");
        let path = format!("workspaces/{}", made["id"].as_str().unwrap());
        if kind.link == "cluster_id" {
            let (status, ..) = desk.call("PUT", &path, foreign).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "also by an edit");
        }
        let (_, _, kept) = desk.call("PUT", &path, json!({"environment": "prod"})).await;
        assert_eq!(kept[kind.link], link, "what is absent stays");
        let (status, _, cleared) = desk.call("PUT", &path, json!({kind.link: null})).await;
        assert_eq!((status, &cleared[kind.link]), (StatusCode::OK, &Value::Null), "{cleared}");
        let (status, _, again) = desk.call("PUT", &path, json!({kind.link: link})).await;
        assert_eq!((status, &again[kind.link]), (StatusCode::OK, &link), "{again}");
    }
}

#[tokio::test]
async fn a_plan_is_not_applied_with_other_credentials_than_it_was_made_with() {
    let desk = Desk::new().await;
    let (_, _, workspace) = desk.workspace("net", json!({})).await;
    let run = json!({"workspace_id": workspace["id"], "command": "apply"});
    assert_eq!(desk.call("POST", "runs", run).await.0, StatusCode::CREATED);
    let path = format!("workspaces/{}", workspace["id"].as_str().unwrap());
    for kind in &KINDS {
        let account = desk.register(kind.path, (kind.new)()).await;
        let change = json!({kind.link: value_of(kind, &account)});
        let (status, _, problem) = desk.call("PUT", &path, change).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "run-active"), "{problem}");
    }
}

#[tokio::test]
async fn a_key_of_some_workspaces_gives_them_no_other_credentials() {
    let desk = Desk::new().await;
    desk.register("aws-accounts", aws()).await;
    let (_, _, workspace) = desk.workspace("net", json!({})).await;
    let new = json!({"name": "k", "capability": "admin", "workspace_ids": [workspace["id"]]});
    let (status, _, key) = desk.call("POST", "api-keys", new).await;
    assert_eq!(status, StatusCode::CREATED, "{key}");
    let key = key["token"].as_str().unwrap();
    let path = format!("workspaces/{}", workspace["id"].as_str().unwrap());
    for change in [json!({"state_aws_account_id": ACCOUNT}), json!({"aws_account_id": ACCOUNT})] {
        let (status, _, problem) = desk.call_as(key, "PUT", &path, change).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"), "{problem}");
    }
    let (status, ..) = desk.call_as(key, "PUT", &path, json!({"environment": "prod"})).await;
    assert_eq!(status, StatusCode::OK, "everything else of its own");
    assert_eq!(desk.call_as(key, "GET", "aws-accounts", None).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn what_is_used_cannot_be_forgotten_and_the_answer_names_by_whom() {
    let desk = Desk::new().await;
    for kind in &KINDS {
        let account = desk.register(kind.path, (kind.new)()).await;
        let own = format!("{}/{}", kind.path, account["id"].as_str().unwrap());
        let mut made = Vec::new();
        for name in ["web", "app"] {
            let name = format!("{name}-{}", kind.path);
            let (status, _, workspace) =
                desk.workspace(&name, json!({kind.link: value_of(kind, &account)})).await;
            assert_eq!(status, StatusCode::CREATED, "{workspace}");
            made.push(format!("workspaces/{}", workspace["id"].as_str().unwrap()));
        }
        let (status, _, problem) = desk.call("DELETE", &own, None).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "cloud-account-in-use"));
        let names = json!([format!("app-{}", kind.path), format!("web-{}", kind.path)]);
        assert_eq!(problem["workspaces"], names, "{problem}");
        for workspace in made {
            assert_eq!(desk.call("DELETE", &workspace, None).await.0, StatusCode::NO_CONTENT);
        }
        assert_eq!(desk.call("DELETE", &own, None).await.0, StatusCode::NO_CONTENT);
    }
    // An AWS account is used by those that lie in it, too.
    let account = desk.register("aws-accounts", aws()).await;
    desk.workspace("inside", json!({"aws_account_id": ACCOUNT})).await;
    let own = format!("aws-accounts/{}", account["id"].as_str().unwrap());
    let (status, _, problem) = desk.call("DELETE", &own, None).await;
    assert_eq!((status, &problem["workspaces"]), (StatusCode::CONFLICT, &json!(["inside"])));
}

#[tokio::test]
async fn of_a_link_and_a_removal_at_once_one_wins_and_nothing_is_left_dangling() {
    let desk = Desk::new().await;
    for kind in &KINDS {
        for round in 0..4 {
            let account = desk.register(kind.path, (kind.new)()).await;
            let own = format!("{}/{}", kind.path, account["id"].as_str().unwrap());
            let name = format!("{}-{round}", kind.path);
            let (linked, removed) = futures::future::join(
                desk.workspace(&name, json!({kind.link: value_of(kind, &account)})),
                desk.call("DELETE", &own, None),
            )
            .await;
            match (linked.0, removed.0) {
                (StatusCode::CREATED, StatusCode::CONFLICT) => {
                    let workspace = format!("workspaces/{}", linked.2["id"].as_str().unwrap());
                    assert_eq!(desk.call("DELETE", &workspace, None).await.0, StatusCode::NO_CONTENT);
                    assert_eq!(desk.call("DELETE", &own, None).await.0, StatusCode::NO_CONTENT);
                }
                (StatusCode::UNPROCESSABLE_ENTITY, StatusCode::NO_CONTENT) => {}
                other => panic!("{}: {other:?} {} {}", kind.path, linked.2, removed.2),
            }
        }
    }
}
