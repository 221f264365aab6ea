//! How people sign in, and who says so.

use axum::body::Body;
use http::{Request, StatusCode, header};
use plumbline_core::config::Overrides;
use serde_json::{Value, json};

use super::{Browser, CALLBACK, LOGIN, World, ada};
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane, slug};

async fn advertised(plane: &TestPlane) -> Value {
    let (status, _, body) = plane.call("GET", "/api/v1/auth/config", None, None).await;
    assert_eq!(status, StatusCode::OK);
    body
}

#[tokio::test]
async fn an_installation_that_nobody_has_set_up_signs_in_with_passwords_only() {
    let plane = TestPlane::start().await;
    let expected =
        json!({ "mode": "local", "oidc_enabled": false, "oidc_issuer": null, "cli_loopback": false });
    assert_eq!(advertised(&plane).await, expected);
    for path in [LOGIN, CALLBACK] {
        let (status, _, body) = plane.call("GET", path, None, None).await;
        assert_eq!((status, slug(&body)), (StatusCode::NOT_FOUND, "oidc-off"), "{path}");
    }
}

#[tokio::test]
async fn in_every_mode_a_superadmins_password_opens_the_door_in_an_emergency() {
    let Some(world) = World::start().await else { return };
    let issuer = json!(world.idp.issuer);
    world.idp.person(ada());
    for mode in ["both", "oidc"] {
        world.set("auth.provider", json!(mode)).await;
        let expected =
            json!({ "mode": mode, "oidc_enabled": true, "oidc_issuer": issuer, "cli_loopback": true });
        assert_eq!(advertised(&world.plane).await, expected);
        world.plane.login(ADMIN_EMAIL).await;
        world.who_signs_in().await;
    }
    world.set("auth.provider", json!("local")).await;
    assert_eq!(advertised(&world.plane).await["oidc_enabled"], false);
    assert_eq!(Browser::default().get(&world.plane, LOGIN).await.error(), "oidc-off");
    world.plane.login(ADMIN_EMAIL).await;
}

#[tokio::test]
async fn where_people_sign_in_through_the_provider_nobody_elses_password_is_taken() {
    let Some(world) = World::start().await else { return };
    let (_, email) = world.plane.insert_user().await;
    // A local account that the provider vouches for, too.
    world.idp.person(json!({ "sub": "e", "email": email, "email_verified": true }));
    world.who_signs_in().await;
    let token = world.plane.login(&email).await;
    world.set("auth.provider", json!("oidc")).await;
    let enter = async |email: &str, password: &str| {
        let body = json!({ "email": email, "password": password });
        let (status, _, body) = world.plane.call("POST", "/api/v1/auth/token", None, body).await;
        (status, slug(&body).to_owned())
    };
    assert_eq!(enter(&email, PASSWORD).await, (StatusCode::FORBIDDEN, "passwords-off".into()));
    let failed = world.entries("session.login_failed").await;
    assert_eq!(failed[0]["details"]["reason"], "passwords_off");
    // A wrong one says nothing of who is superadmin.
    for email in [email.as_str(), ADMIN_EMAIL, "nobody@plumbline.test"] {
        assert_eq!(
            enter(email, "wrong").await,
            (StatusCode::UNAUTHORIZED, "wrong-credentials".into()),
            "{email}"
        );
    }
    // Who is signed in stays so: that can be ended by whoever changes the mode.
    assert_eq!(world.me(&token).await.0, StatusCode::OK);
    // The provider's word lets them in, with the same account.
    assert_eq!(world.who_signs_in().await["email"], json!(email));
}

#[tokio::test]
async fn what_is_missing_is_named_to_programs_and_browsers_are_told_that_something_is() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for (key, value) in [("auth.provider", "oidc"), ("auth.oidc.issuer", "https://id.example.com")] {
        let path = format!("/api/v1/runtime-config/{key}");
        let (status, _, body) = plane
            .call_with("PUT", &path, admin.as_str(), json!({ "value": value }), &[("if-match", "*")])
            .await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    for path in [LOGIN, CALLBACK] {
        let (status, _, body) = plane.call("GET", path, None, None).await;
        assert_eq!((status, slug(&body)), (StatusCode::FAILED_DEPENDENCY, "oidc-misconfigured"));
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains("auth.oidc.client_id, auth.oidc.client_secret is not set"), "{detail}");
        assert_eq!(Browser::default().get(&plane, path).await.error(), "oidc-misconfigured");
    }
    // The emergency exit is open.
    plane.login(ADMIN_EMAIL).await;
}

#[tokio::test]
async fn settings_of_the_environment_come_first() {
    let Some(mut world) = World::start().await else { return };
    world.set("auth.oidc.issuer", json!("https://wrong.example.com")).await;
    world.set("auth.oidc.client_secret", json!("not the right one")).await;
    world.set("auth.provider", json!("local")).await;
    let mut overrides = Overrides::default();
    overrides.take("AUTH_PROVIDER", "oidc").unwrap();
    overrides.take("AUTH_OIDC_ISSUER", &world.idp.issuer).unwrap();
    overrides.take("AUTH_OIDC_CLIENT_SECRET", crate::idp::CLIENT_SECRET).unwrap();
    world.plane.deps.overrides = overrides.into();
    world.idp.person(ada());
    assert_eq!(world.who_signs_in().await["email"], "ada@plumbline.test");
    assert_eq!(advertised(&world.plane).await["oidc_issuer"], json!(world.idp.issuer));
}

#[tokio::test]
async fn what_could_not_work_is_refused_when_it_is_written() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let twice = r#"{"devs": "superadmin", "devs": {"default": "viewer"}}"#;
    for (key, value) in [
        ("auth.provider", json!("saml")),
        ("auth.oidc.issuer", json!("id.example.com")),
        ("auth.oidc.issuer", json!("https://user:word@id.example.com")),
        ("auth.oidc.redirect_uri", json!("javascript:alert(1)")),
        ("auth.oidc.default_role", json!("superadmin")),
        ("auth.oidc.default_business_unit", json!("Not A Slug")),
        ("auth.oidc.role_mapping", json!({})),
        ("auth.oidc.role_mapping", json!("{")),
        ("auth.oidc.role_mapping", json!("[]")),
        ("auth.oidc.role_mapping", json!(r#"{"devs": "operator"}"#)),
        ("auth.oidc.role_mapping", json!(r#"{"devs": {"default": "king"}}"#)),
        ("auth.oidc.role_mapping", json!(r#"{"devs": {"Not A Slug": "viewer"}}"#)),
        ("auth.oidc.role_mapping", json!(r#"{"": "superadmin"}"#)),
        ("auth.oidc.role_mapping", json!(r#"{"devs": {}, "DEVS": {}}"#)),
        ("auth.oidc.role_mapping", json!(twice)),
    ] {
        let path = format!("/api/v1/runtime-config/{key}");
        let (status, _, body) = plane
            .call_with("PUT", &path, admin.as_str(), json!({ "value": value }), &[("if-match", "*")])
            .await;
        assert_eq!(
            (status, slug(&body)),
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"),
            "{key} {value}: {body}"
        );
    }
}

#[tokio::test]
async fn whoever_cannot_follow_pages_gets_a_problem_document_and_nobody_keeps_an_answer() {
    let Some(world) = World::start().await else { return };
    let request =
        Request::get(format!("{CALLBACK}?state=x&code=y")).header(header::ACCEPT, "application/json");
    let response = world.plane.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    let (status, _, body) = crate::plane::read(response).await;
    assert_eq!((status, slug(&body)), (StatusCode::UNAUTHORIZED, "oidc-start-again"));
    for path in [LOGIN, "/auth/oidc-finish", CALLBACK] {
        let sent = Browser::default().get(&world.plane, path).await;
        assert_eq!(sent.headers[header::CACHE_CONTROL], "no-store", "{path}");
        assert_eq!(sent.headers[header::REFERRER_POLICY], "no-referrer", "{path}");
    }
}

#[tokio::test]
async fn the_page_at_the_end_runs_its_own_script_and_no_other() {
    let plane = TestPlane::start().await;
    let request = Request::get("/auth/oidc-finish").body(Body::empty()).unwrap();
    let response = plane.send(request).await;
    let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let page = String::from_utf8(body.to_vec()).unwrap();
    let script = page.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    let digest = plumbline_core::digest::Sha256Digest::of(script.as_bytes());
    let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, digest.0);
    assert!(policy.contains(&format!("script-src 'sha256-{hash}'")), "{policy}");
    // It says something about everything that it can be told.
    for slug in [
        "oidc-off",
        "oidc-misconfigured",
        "oidc-provider-away",
        "oidc-start-again",
        "oidc-refused",
        "oidc-denied",
        "oidc-email-unverified",
        "oidc-account-linked",
        "oidc-account-disabled",
        "too-many-attempts",
    ] {
        assert!(script.contains(&format!("\"{slug}\":")), "{slug}");
    }
    assert!(!script.contains("localStorage") && !script.contains("innerHTML"));
}
