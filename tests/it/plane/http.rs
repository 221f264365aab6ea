//! Calling the functions of a plane over HTTP, in process, as their gateway would.

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::ids::{BusinessUnitId, UserId};
use plumbline_core::users;
use plumbline_runtime::Function;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::TestPlane;

/// The first user of every plane that asks for one.
pub const ADMIN_EMAIL: &str = "admin@plumbline.test";
/// The password of every user of every plane.
pub const PASSWORD: &str = "correct horse battery";

/// An answer: status, headers, JSON body (`Null` if it is empty or no JSON).
pub type Answer = (StatusCode, HeaderMap, Value);

impl TestPlane {
    /// Sends a request to the function that the gateway would send it to.
    pub async fn send(&self, request: Request<Body>) -> Response<Body> {
        let path = request.uri().path();
        let router: Router = if path.starts_with("/executor/") {
            plumbline_callback::router(self.as_function(Function::Callback))
        } else if path.starts_with("/api/v1/state/") {
            plumbline_tfstate::router(self.as_function(Function::Tfstate))
        } else if plumbline_signin::serves(path) {
            plumbline_signin::router(self.as_function(Function::Signin))
        } else {
            plumbline_api::router(self.as_function(Function::Api))
        };
        router.oneshot(request).await.expect("a router cannot fail")
    }

    /// Calls a path with a JSON body.
    pub async fn call<'a>(
        &self,
        method: &str,
        path: &str,
        token: impl Into<Option<&'a str>>,
        body: impl Into<Option<Value>>,
    ) -> Answer {
        self.call_with(method, path, token, body, &[]).await
    }

    /// Calls a path with a JSON body and more headers.
    pub async fn call_with<'a>(
        &self,
        method: &str,
        path: &str,
        token: impl Into<Option<&'a str>>,
        body: impl Into<Option<Value>>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token.into() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body.into() {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        read(self.send(request.body(body).expect("a request")).await).await
    }

    /// An access token of a superadmin, the first user of the plane; made at the first call.
    pub async fn admin_token(&self) -> String {
        self.admin
            .get_or_init(async || {
                let made = users::service::bootstrap_admin(&self.deps, ADMIN_EMAIL, PASSWORD).await;
                made.expect("the first user");
                self.login(ADMIN_EMAIL).await
            })
            .await
            .clone()
    }

    /// An access token of a new member of the unit `default`.
    pub async fn user(&self, role: Role) -> String {
        self.admin_token().await;
        let unit = self.unit("default").await;
        self.member(unit, role).await
    }

    /// An access token of a new member of a unit.
    pub async fn member(&self, unit: BusinessUnitId, role: Role) -> String {
        let (id, email) = self.insert_user().await;
        let conn = self.db().conn().await.expect("a connection");
        const JOIN: &str = "INSERT INTO memberships (user_id, business_unit_id, role) VALUES ($1, $2, $3)";
        conn.execute(JOIN, &[&id, &unit, &role.as_str()]).await.expect("a membership");
        drop(conn);
        self.login(&email).await
    }

    /// A new user without memberships: id and e-mail.
    pub async fn insert_user(&self) -> (UserId, String) {
        let id: UserId = self.deps.ids.mint();
        let email = format!("{}@plumbline.test", id.0.simple());
        let cost = self.deps.limits.bcrypt_cost;
        let hash = users::passwords::hash(PASSWORD.into(), cost).await.expect("a hash");
        let conn = self.db().conn().await.expect("a connection");
        const INSERT: &str = "INSERT INTO users (id, email, password_hash) VALUES ($1, $2, $3)";
        conn.execute(INSERT, &[&id, &email, &hash]).await.expect("a user");
        (id, email)
    }

    /// The id of a unit by its slug; made if it is missing.
    pub async fn unit(&self, slug: &str) -> BusinessUnitId {
        const ENSURE: &str = "
            INSERT INTO business_units AS known (id, slug, name) VALUES ($1, $2, $2)
            ON CONFLICT (slug) DO UPDATE SET name = known.name RETURNING id";
        let id: BusinessUnitId = self.deps.ids.mint();
        let conn = self.db().conn().await.expect("a connection");
        conn.query_one(ENSURE, &[&id, &slug]).await.expect("a unit").get("id")
    }

    /// Signs in with [`PASSWORD`] and gives the access token.
    pub async fn login(&self, email: &str) -> String {
        let body = json!({ "email": email, "password": PASSWORD });
        let (status, _, body) = self.call("POST", "/api/v1/auth/token", None, body).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body["access_token"].as_str().expect("a token").to_owned()
    }
}

/// Reads an answer whole.
pub async fn read(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    (parts.status, parts.headers, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// The slug of a problem document.
pub fn slug(body: &Value) -> &str {
    body["type"].as_str().unwrap_or_default().trim_start_matches("urn:plumbline:problem:")
}
