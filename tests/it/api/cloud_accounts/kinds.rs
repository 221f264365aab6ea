//! What holds for every kind of account.

use http::{StatusCode, header};
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::secrets::{Domain, Place};
use serde_json::{Value, json};

use super::*;
use crate::plane::slug;

#[tokio::test]
async fn an_account_is_registered_read_masked_edited_and_forgotten_and_each_is_recorded() {
    let desk = Desk::new().await;
    for kind in &KINDS {
        let (path, made) = (kind.path, desk.register(kind.path, (kind.new)()).await);
        let own = format!("{path}/{}", made["id"].as_str().unwrap());
        let secret = &made[kind.secret];
        assert_eq!((&secret["configured"], &secret["unreadable"]), (&json!(true), &json!(false)), "{made}");
        assert_eq!(secret["masked_tail"], json!("abcd"), "{made}");
        let (status, headers, read) = desk.call("GET", &own, None).await;
        assert_eq!((status, &read), (StatusCode::OK, &made), "{path}");
        assert_eq!(headers[header::ETAG], "\"v1\"");
        let (_, _, list) = desk.call("GET", path, None).await;
        assert_eq!(list["items"], json!([made]), "{path}");

        let (status, _, edited) =
            desk.call("PUT", &own, json!({"description": "of the payments team"})).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
        assert_eq!((&edited["description"], &edited["version"]), (&json!("of the payments team"), &json!(2)));
        assert_eq!(edited[kind.secret], made[kind.secret], "secrets stay");
        let (_, _, edited) = desk.call("PUT", &own, json!({"description": null})).await;
        assert_eq!(edited["description"], Value::Null);
        let (status, _, edited) = desk.call("PUT", &own, (kind.replacement)()).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
        assert_eq!(edited[kind.secret]["masked_tail"], json!("9876"), "{path}");

        assert_eq!(desk.call("DELETE", &own, None).await.0, StatusCode::NO_CONTENT);
        assert_eq!(desk.call("GET", &own, None).await.0, StatusCode::NOT_FOUND);
        for (verb, times) in [("create", 1), ("update", 3), ("delete", 1)] {
            let entries = desk.entries(&format!("{}.{verb}", kind.audited)).await;
            assert_eq!(entries.len(), times, "{path} {verb}");
            assert!(!json!(entries).to_string().contains(MARK), "{entries:?}");
        }
        let replaced = &desk.entries(&format!("{}.update", kind.audited)).await[0]["details"]["changed"];
        assert!(!replaced.as_array().unwrap().is_empty(), "{replaced}");
    }
}

#[tokio::test]
async fn secrets_are_sealed_in_the_domain_of_their_kind_and_bound_to_their_row() {
    let desk = Desk::new().await;
    let domains = [Domain::Aws, Domain::Azure, Domain::Gcp, Domain::Kubernetes];
    for (kind, domain) in KINDS.iter().zip(domains) {
        let made = desk.register(kind.path, (kind.new)()).await;
        let (table, column) = kind.sealed;
        let conn = desk.plane.db().conn().await.unwrap();
        let row = conn.query_one(&format!("SELECT id, {column} AS sealed FROM {table}"), &[]).await.unwrap();
        let (id, sealed): (uuid::Uuid, String) = (row.get("id"), row.get("sealed"));
        assert_eq!(made["id"], json!(id));
        let keys = &desk.plane.deps.keys;
        let opened = keys.open(domain, Place { table, column, row: id }, &sealed).unwrap();
        assert!(opened.contains(MARK), "it round-trips");
        assert!(keys.open(domain, Place { table, column, row: uuid::Uuid::now_v7() }, &sealed).is_err());
        assert!(keys.open(Domain::Config, Place { table, column, row: id }, &sealed).is_err());
    }
    assert!(!desk.dump().await.contains(MARK), "no secret stands in the database");
}

#[tokio::test]
async fn the_same_account_twice_is_a_conflict_also_at_once_and_another_unit_may_have_it() {
    let desk = Desk::new().await;
    let other = desk.plane.unit("other").await;
    let stranger = desk.plane.member(other, Role::Admin).await;
    for kind in &KINDS {
        let asked = (0..6).map(|_| desk.call("POST", kind.path, (kind.new)()));
        let answers = futures::future::join_all(asked).await;
        let made = answers.iter().filter(|answer| answer.0 == StatusCode::CREATED).count();
        assert_eq!(made, 1, "{}: {:?}", kind.path, answers.iter().map(|answer| answer.0).collect::<Vec<_>>());
        for (_, _, problem) in answers.iter().filter(|answer| answer.0 != StatusCode::CREATED) {
            assert_eq!((slug(problem), &problem["field"]), ("cloud-account-exists", &json!(kind.identity)));
        }
        let (status, ..) = desk.call_as(&stranger, "POST", kind.path, (kind.new)()).await;
        assert_eq!(status, StatusCode::CREATED, "{}", kind.path);
    }
    // A cluster's name is its identity, and can be changed.
    let mut second = cluster();
    second["name"] = json!("second");
    let second = desk.register("clusters", second).await;
    let own = format!("clusters/{}", second["id"].as_str().unwrap());
    let (status, _, problem) = desk.call("PUT", &own, json!({"name": "prod"})).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "cloud-account-exists"));
    let mut upper = azure();
    upper["subscription_id"] = json!(SUBSCRIPTION.to_uppercase());
    assert_eq!(desk.call("POST", "azure-subscriptions", upper).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn members_read_admins_write_and_a_superadmin_names_the_unit() {
    let desk = Desk::new().await;
    let superadmin = desk.plane.admin_token().await;
    for kind in &KINDS {
        let made = desk.register(kind.path, (kind.new)()).await;
        let own = format!("{}/{}", kind.path, made["id"].as_str().unwrap());
        for role in [Role::Viewer, Role::Operator] {
            let member = desk.plane.user(role).await;
            for path in [kind.path, &own] {
                let (status, _, read) = desk.call_as(&member, "GET", path, None).await;
                assert_eq!(status, StatusCode::OK, "{path}");
                let text = read.to_string();
                assert!(!text.contains(MARK) && !text.contains("external_id"), "{text}");
            }
            for (method, path, body) in [
                ("POST", kind.path, Some((kind.new)())),
                ("PUT", &own, Some(json!({"description": "mine"}))),
                ("DELETE", &own, None),
            ] {
                let (status, ..) = desk.call_as(&member, method, path, body).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{role:?} {method} {path}");
            }
        }
        let (status, _, problem) = desk.call_as(&superadmin, "POST", kind.path, (kind.new)()).await;
        assert_eq!((status, slug(&problem)), (StatusCode::BAD_REQUEST, "unit-required"));
        assert_eq!(desk.call_as(&superadmin, "GET", &own, None).await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn an_account_that_cannot_be_opened_is_listed_as_unreadable_and_can_be_replaced() {
    let desk = Desk::new().await;
    for kind in &KINDS {
        let made = desk.register(kind.path, (kind.new)()).await;
        desk.spoil(kind.sealed).await;
        let (status, _, list) = desk.call("GET", kind.path, None).await;
        let mask = &list["items"][0][kind.secret];
        assert_eq!(status, StatusCode::OK, "{list}");
        assert_eq!(
            mask,
            &json!({"configured": true, "masked_tail": null, "unreadable": true}),
            "{}",
            kind.path
        );
        let own = format!("{}/{}", kind.path, made["id"].as_str().unwrap());
        let (status, _, edited) = desk.call("PUT", &own, json!({"description": "still there"})).await;
        // What a kubeconfig may hold depends on the other fields: it must be read, or replaced.
        let expected =
            if kind.path == "clusters" { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        assert_eq!(status, expected, "{edited}");
        let (status, _, replaced) = desk.call("PUT", &own, (kind.replacement)()).await;
        assert_eq!(status, StatusCode::OK, "{replaced}");
        assert_eq!(replaced[kind.secret]["unreadable"], json!(false));
    }
}

#[tokio::test]
async fn an_edit_is_checked_as_a_registration_is_and_against_what_was_seen() {
    let desk = Desk::new().await;
    let wrong: [(&str, &[(&str, Value)]); 4] = [
        (
            "aws-accounts",
            &[
                ("name", json!("")),
                ("state_bucket", json!("Not_A_Bucket")),
                ("default_region", json!("here")),
                ("aws_profile_name", json!("a]\n[b")),
                ("plan_role_arn", json!("arn:aws:iam::210987654321:role/x")),
                ("session_duration_seconds", json!(60)),
                ("access_key_id", json!("AKIA0123456789ABCDEF")),
                ("account_id", json!("210987654321")),
            ],
        ),
        (
            "azure-subscriptions",
            &[
                ("tenant_id", json!("contoso")),
                ("client_secret", json!("a b c d")),
                ("state_storage_account", json!("A")),
                ("subscription_id", json!(SUBSCRIPTION)),
            ],
        ),
        (
            "gcp-projects",
            &[
                ("state_bucket", json!("-x-")),
                ("service_account_json", json!("{}")),
                ("service_account_json", json!(service_account("x").replace(PROJECT, "other-project"))),
                ("service_account_json", json!(service_account("x").replace("service_account\"", "user\""))),
                ("project_id", json!("other-project")),
            ],
        ),
        (
            "clusters",
            &[
                ("default_namespace", json!("Not_One")),
                ("server_url", json!("https://elsewhere.example.com")),
                ("kubeconfig", json!("a: b")),
            ],
        ),
    ];
    for (kind, (path, fields)) in KINDS.iter().zip(wrong) {
        assert_eq!(kind.path, path);
        let made = desk.register(path, (kind.new)()).await;
        let own = format!("{path}/{}", made["id"].as_str().unwrap());
        for (field, value) in fields {
            let (status, _, problem) = desk.call("PUT", &own, json!({*field: value})).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {field}: {problem}");
            let mut new = (kind.new)();
            if new.get(*field).is_none_or(|known| known != value)
                && *field != "account_id"
                && *field != "project_id"
            {
                new[*field] = value.clone();
                if *field == "access_key_id" {
                    new.as_object_mut().unwrap().remove("secret_access_key");
                }
                let (status, _, problem) = desk.call("POST", path, new).await;
                let known = [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::CONFLICT];
                assert!(known.contains(&status), "{path} {field}: {status} {problem}");
            }
        }
        let body = json!({"description": "late"});
        let full = format!("/api/v1/{own}");
        let stale =
            desk.plane.call_with("PUT", &full, &*desk.admin, body.clone(), &[("if-match", "\"v7\"")]).await;
        assert_eq!(stale.0, StatusCode::PRECONDITION_FAILED, "{}", stale.2);
        let blind = desk.plane.call("PUT", &full, &*desk.admin, body).await;
        assert_eq!(blind.0, StatusCode::PRECONDITION_REQUIRED);
        let (_, _, now) = desk.call("GET", &own, None).await;
        assert_eq!(now, made, "nothing of it was kept");
    }
}

#[tokio::test]
async fn roles_need_no_keys_and_their_external_id_is_ours_and_for_administrators() {
    let desk = Desk::new().await;
    let role = |name: &str| format!("arn:aws:iam::{ACCOUNT}:role/{name}");
    let mut new = aws();
    for key in ["access_key_id", "secret_access_key"] {
        new.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(desk.call("POST", "aws-accounts", new.clone()).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    new["plan_role_arn"] = json!(role("plan"));
    new["apply_role_arn"] = json!(role("apply"));
    let made = desk.register("aws-accounts", new.clone()).await;
    assert_eq!(made["access_key_id"], json!({"configured": false, "masked_tail": null, "unreadable": false}));
    let external_id = made["external_id"].as_str().unwrap().to_owned();
    assert!(external_id.len() > 30, "{external_id}");
    let own = format!("aws-accounts/{}", made["id"].as_str().unwrap());
    // A person cannot choose it, and another account has another one.
    let (status, ..) = desk.call("PUT", &own, json!({"external_id": "known"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let other = desk.plane.unit("other").await;
    let stranger = desk.plane.member(other, Role::Admin).await;
    let (_, _, theirs) = desk.call_as(&stranger, "POST", "aws-accounts", new).await;
    assert_ne!(theirs["external_id"].as_str().unwrap(), external_id);
    // Without roles there must be keys, and the other way around.
    let no_roles = json!({"plan_role_arn": null, "apply_role_arn": null});
    assert_eq!(desk.call("PUT", &own, no_roles.clone()).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let mut keys = json!({"access_key_id": "AKIA0123456789ABCDEF", "secret_access_key": SECRET_KEY});
    keys.as_object_mut().unwrap().extend(no_roles.as_object().unwrap().clone());
    let (status, _, edited) = desk.call("PUT", &own, keys).await;
    assert_eq!((status, &edited["access_key_id"]["configured"]), (StatusCode::OK, &json!(true)));
    assert_eq!(edited["external_id"], json!(external_id), "it stays");
    let removed = json!({"access_key_id": null, "secret_access_key": null});
    assert_eq!(desk.call("PUT", &own, removed).await.0, StatusCode::UNPROCESSABLE_ENTITY);
}
