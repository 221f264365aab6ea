//! The provider's documents: read once, read again when a key is new, and believed only if they are its own.

use axum::Router;
use axum::body::Body;
use http::{Request, header};
use plumbline_runtime::Function;
use serde_json::json;
use tower::ServiceExt as _;

use super::{Browser, HTML, LOGIN, World, ada};
use crate::idp::{Fault, Mood};
use crate::plane::slug;

/// One process of the function, which keeps what it has read.
struct Process(Router);

impl Process {
    fn start(world: &World) -> Self {
        Self(plumbline_signin::router(world.plane.as_function(Function::Signin)))
    }

    async fn get(&self, path: &str, cookie: Option<&str>) -> http::Response<Body> {
        let mut request = Request::get(path).header(header::ACCEPT, HTML);
        if let Some(cookie) = cookie {
            request = request.header(header::COOKIE, cookie);
        }
        self.0.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    /// The whole way; gives the address at the end.
    async fn sign_in(&self) -> String {
        let left = self.get(LOGIN, None).await;
        let to = |response: &http::Response<Body>, name: header::HeaderName| {
            response.headers()[name].to_str().unwrap().to_owned()
        };
        let cookie = to(&left, header::SET_COOKIE);
        let back = Browser::default().at_provider(&to(&left, header::LOCATION)).await;
        let end = self.get(&back, cookie.split(';').next()).await;
        to(&end, header::LOCATION)
    }
}

#[tokio::test]
async fn documents_are_read_once_and_once_more_when_a_token_names_a_new_key() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let process = Process::start(&world);
    for _ in 0..3 {
        assert!(process.sign_in().await.contains("#code="));
    }
    assert_eq!(world.idp.asked(), 1);
    world.idp.rotate();
    assert!(process.sign_in().await.contains("#code="), "the new key is found");
    assert_eq!(world.idp.asked(), 2);
    // Somebody who names one new key after the other does not make us ask each time.
    world.idp.rotate();
    for _ in 0..3 {
        assert!(process.sign_in().await.ends_with("#error=oidc-refused"));
    }
    assert_eq!(world.idp.asked(), 2);
    assert_eq!(world.entries("session.login_failed").await[0]["details"]["reason"], "unknown_key");
}

#[tokio::test]
async fn a_provider_that_does_not_answer_is_said_to_be_away() {
    let Some(world) = World::start().await else { return };
    for mood in [Mood::Fails(500), Mood::Fails(503), Mood::Hangs] {
        world.idp.set_mood(mood.clone());
        let (status, headers, body) = world.plane.call("GET", LOGIN, None, None).await;
        assert_eq!((status.as_u16(), slug(&body)), (503, "oidc-provider-away"), "{mood:?}");
        assert!(headers.contains_key(header::RETRY_AFTER));
    }
    world.set("auth.oidc.issuer", json!("http://127.0.0.1:1")).await;
    assert_eq!(Browser::default().get(&world.plane, LOGIN).await.error(), "oidc-provider-away");
}

#[tokio::test]
async fn a_provider_in_trouble_is_not_asked_by_everybody_who_begins_a_sign_in() {
    let Some(world) = World::start().await else { return };
    let process = Process::start(&world);
    for mood in [Mood::Fails(503), Mood::Fails(404)] {
        world.idp.set_mood(mood);
        let left = process.get(LOGIN, None).await;
        assert!(left.headers()[header::LOCATION].to_str().unwrap().ends_with("#error=oidc-provider-away"));
    }
    assert_eq!(world.idp.asked(), 1, "the second one was told what the first one learned");
    // Another provider is another one.
    let other = crate::idp::Idp::start().await.unwrap();
    world.set("auth.oidc.issuer", json!(other.issuer)).await;
    assert!(
        process.get(LOGIN, None).await.headers()[header::LOCATION]
            .to_str()
            .unwrap()
            .starts_with(&other.issuer)
    );
}

#[tokio::test]
async fn documents_that_are_not_the_issuers_own_are_believed_by_nobody() {
    let Some(world) = World::start().await else { return };
    for mood in [
        Mood::Pretends("https://other.example.com".into()),
        Mood::Redirects(format!("{}/.well-known/openid-configuration?", world.idp.issuer)),
        Mood::Fails(404),
        Mood::Floods,
        Mood::Babbles,
        Mood::KeysAt(format!("{}/nowhere", world.idp.issuer)),
    ] {
        world.idp.set_mood(mood.clone());
        let (status, _, body) = world.plane.call("GET", LOGIN, None, None).await;
        assert_eq!((status.as_u16(), slug(&body)), (424, "oidc-misconfigured"), "{mood:?}");
    }
}

#[tokio::test]
async fn nothing_is_asked_and_nobody_is_sent_anywhere_without_encryption() {
    let Some(mut world) = World::start().await else { return };
    world.idp.set_mood(Mood::SendsTo("ftp://127.0.0.1/authorize".into()));
    let (status, _, body) = world.plane.call("GET", LOGIN, None, None).await;
    assert_eq!((status.as_u16(), slug(&body)), (424, "oidc-misconfigured"));
    world.idp.set_mood(Mood::Right);
    world.plane.deps.allow_private_addresses = false;
    let asked = world.idp.asked();
    let (status, _, body) = world.plane.call("GET", LOGIN, None, None).await;
    assert_eq!((status.as_u16(), slug(&body)), (424, "oidc-misconfigured"), "as on AWS");
    assert_eq!(world.idp.asked(), asked, "nobody was asked");
}

#[tokio::test]
async fn what_the_token_does_not_say_is_asked_of_userinfo() {
    let Some(world) = World::start().await else { return };
    world.plane.unit("default").await;
    world.map(json!({ "engineers": { "default": "admin" } })).await;
    world.idp.person(json!({ "sub": "ada-1" }));
    let more = json!({ "email": "ada@plumbline.test", "email_verified": true, "groups": ["Engineers"] });
    world.idp.also_in_userinfo(more);
    world.idp.set_fault(Fault::UserinfoOfAnother);
    assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-refused");
    let failed = world.entries("session.login_failed").await;
    assert_eq!(failed[0]["details"]["reason"], "userinfo_of_somebody_else");
    world.idp.set_fault(Fault::Nothing);
    let me = world.who_signs_in().await;
    assert_eq!(
        (&me["email"], &me["memberships"][0]["role"]),
        (&json!("ada@plumbline.test"), &json!("admin"))
    );
}
