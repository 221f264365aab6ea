//! Signing in through the identity provider: the whole way of a browser, with a real provider of ours on loopback.

mod codes;
mod cookies;
mod mapping;
mod modes;
mod people;
mod providers;
mod refusals;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, Request, StatusCode, header};
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use serde_json::{Value, json};

use crate::idp::{CLIENT_ID, CLIENT_SECRET, Idp};
use crate::plane::{ADMIN_EMAIL, Answer, TestPlane, read};

const LOGIN: &str = "/api/v1/auth/oidc/login";
const CALLBACK: &str = "/api/v1/auth/oidc/callback";
/// What a browser says that it takes.
const HTML: &str = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";

/// A plane that is connected to a provider.
pub struct World {
    pub plane: TestPlane,
    pub idp: Idp,
}

impl World {
    /// `None`, with the reason printed, where there can be no provider.
    pub async fn start() -> Option<Self> {
        let idp = Idp::start().await?;
        // Every browser here is at the same address.
        let limits = Limits { bcrypt_cost: 4, logins_per_minute: 1000, ..Limits::default() };
        Self::start_with(idp, limits).await
    }

    /// The same with other limits.
    pub async fn start_with(idp: Idp, limits: Limits) -> Option<Self> {
        let mut plane = TestPlane::start_with(limits, 8).await;
        // The provider is on this machine, and without encryption.
        plane.deps.allow_private_addresses = true;
        let world = Self { plane, idp };
        world.set("auth.provider", json!("both")).await;
        world.set("auth.oidc.issuer", json!(world.idp.issuer)).await;
        world.set("auth.oidc.client_id", json!(CLIENT_ID)).await;
        world.set("auth.oidc.client_secret", json!(CLIENT_SECRET)).await;
        // Whoever comes is a member of something: nobody else can ask for anything.
        world.plane.unit("default").await;
        world.set("auth.oidc.default_business_unit", json!("default")).await;
        Some(world)
    }

    /// Sets a tunable as the superadmin.
    pub async fn set(&self, key: &str, value: Value) {
        let admin = self.plane.admin_token().await;
        let path = format!("/api/v1/runtime-config/{key}");
        let headers = [("if-match", "*")];
        let body = json!({ "value": value });
        let (status, _, body) = self.plane.call_with("PUT", &path, admin.as_str(), body, &headers).await;
        assert_eq!(status, StatusCode::OK, "{key}: {body}");
    }

    /// Maps groups.
    pub async fn map(&self, mapping: Value) {
        self.set("auth.oidc.role_mapping", json!(mapping.to_string())).await;
    }

    /// Somebody who signs in the whole way, as their browser does; gives their tokens.
    pub async fn sign_in(&self) -> Value {
        let mut browser = Browser::default();
        let code = browser.sign_in(self).await.code();
        let (status, _, body) = self.trade(json!({ "code": code })).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }

    /// The same, and who they are now, as a superadmin sees them: also those who are a member of nothing.
    pub async fn who_signs_in(&self) -> Value {
        let tokens = self.sign_in().await;
        let claims = tokens["access_token"].as_str().unwrap().split('.').nth(1).unwrap();
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        let path = format!("/api/v1/users/{}", claims["sub"].as_str().unwrap());
        let admin = self.plane.login(ADMIN_EMAIL).await;
        let (status, _, body) = self.plane.call("GET", &path, admin.as_str(), None).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }

    pub async fn me(&self, token: &str) -> Answer {
        self.plane.call("GET", "/api/v1/me", token, None).await
    }

    pub async fn trade(&self, body: Value) -> Answer {
        self.plane.call("POST", "/api/v1/auth/oidc/token", None, body).await
    }

    /// The details of the entries of an action, newest first.
    pub async fn entries(&self, action: &str) -> Vec<Value> {
        let admin = self.plane.admin_token().await;
        let path = format!("/api/v1/audit?action={action}");
        let (status, _, log) = self.plane.call("GET", &path, admin.as_str(), None).await;
        assert_eq!(status, StatusCode::OK, "{log}");
        log["items"].as_array().unwrap().clone()
    }

    /// Whom and what there is: users with their memberships, and sessions. Equal before and after if nobody came in.
    pub async fn everybody(&self) -> String {
        const ALL: &str = "
            SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM (
                SELECT users::text FROM users UNION ALL SELECT memberships::text FROM memberships
                UNION ALL SELECT id::text FROM sessions
                UNION ALL SELECT code_hash::text FROM oidc_sign_ins WHERE code_hash IS NOT NULL) t";
        self.plane.db().conn().await.unwrap().query_one(ALL, &[]).await.unwrap().get(0)
    }
}

/// Where a browser was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Sent {
    /// The address that it was sent to.
    pub fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{:?}", self.body);
        self.headers[header::LOCATION].to_str().unwrap()
    }

    fn fragment(&self, name: &str) -> String {
        let place = self.location().to_owned();
        let rest = place.strip_prefix("http://127.0.0.1:9/auth/oidc-finish#").expect(&place);
        let rest = rest.strip_prefix(&format!("{name}=")).expect(&place);
        rest.to_owned()
    }

    /// The one-time code that it was given.
    pub fn code(&self) -> String {
        let code = self.fragment("code");
        assert!(code.starts_with("plo_") && code.len() > 40, "{code}");
        code
    }

    /// The reason that it was given.
    pub fn error(&self) -> String {
        self.fragment("error")
    }
}

/// A browser: it keeps our cookie, and follows where it is sent one step at a time.
#[derive(Default)]
pub struct Browser {
    pub cookie: Option<String>,
}

impl Browser {
    /// Asks for a page of ours.
    pub async fn get(&mut self, plane: &TestPlane, path_and_query: &str) -> Sent {
        let mut request = Request::get(path_and_query).header(header::ACCEPT, HTML);
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, cookie);
        }
        let response = plane.send(request.body(Body::empty()).unwrap()).await;
        for set in response.headers().get_all(header::SET_COOKIE) {
            let set = set.to_str().unwrap();
            let pair = set.split(';').next().unwrap().to_owned();
            self.cookie = (!set.contains("Max-Age=0")).then_some(pair);
        }
        let (status, headers, body) = read(response).await;
        Sent { status, headers, body }
    }

    /// Leaves for the provider; gives the address there.
    pub async fn leave(&mut self, world: &World, query: &str) -> String {
        let sent = self.get(&world.plane, &format!("{LOGIN}{query}")).await;
        sent.location().to_owned()
    }

    /// Signs in at the provider; gives path and query of the return.
    pub async fn at_provider(&self, address: &str) -> String {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let answer = http.get(address).send().await.unwrap();
        assert_eq!(answer.status(), 302);
        let back = url::Url::parse(answer.headers()["location"].to_str().unwrap()).unwrap();
        assert_eq!(back.host_str(), Some("127.0.0.1"));
        format!("{}?{}", back.path(), back.query().unwrap())
    }

    /// The whole way.
    pub async fn sign_in(&mut self, world: &World) -> Sent {
        let address = self.leave(world, "").await;
        let back = self.at_provider(&address).await;
        self.get(&world.plane, &back).await
    }
}

/// Ada at the provider.
pub fn ada() -> Value {
    json!({
        "sub": "ada-1", "email": "Ada@Plumbline.Test", "email_verified": true, "name": "Ada L",
        "groups": ["Engineers"],
    })
}

/// An account that was linked, and a code that came twice: for the audit log's list of actions.
pub async fn story() -> TestPlane {
    let world = World::start().await.expect("an identity provider needs openssl");
    let (_, email) = world.plane.insert_user().await;
    world.idp.person(json!({ "sub": "story", "email": email, "email_verified": true }));
    let code = Browser::default().sign_in(&world).await.code();
    assert_eq!(world.trade(json!({ "code": code })).await.0, StatusCode::OK);
    assert_eq!(world.trade(json!({ "code": code })).await.0, StatusCode::UNAUTHORIZED);
    world.plane
}
