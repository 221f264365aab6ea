//! Signing people in: the authorization code flow with PKCE, checked as a provider checks it, and its faults.

use std::collections::{BTreeMap, HashMap};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use plumbline_core::digest::Sha256Digest;
use serde_json::{Value, json};

use super::Idp;

pub const CLIENT_ID: &str = "plumbline-at-the-idp";
pub const CLIENT_SECRET: &str = "what only plumbline and the idp know";

/// What it does wrong.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    Nothing,
    /// Its token is about another sign-in.
    Nonce,
    /// Its token is about no sign-in at all.
    NoNonce,
    /// Its token has this claim, instead of the right one; `null` takes it away.
    Claim(&'static str, Value),
    /// Its token says it needs no signature.
    Unsigned,
    /// Its token is signed with its public key.
    PublicKeyAsSecret,
    /// Its token is signed by a stranger.
    Forged,
    /// Its token is none.
    Babble,
    /// Its answer has no token.
    NoToken,
    /// It refuses its own code.
    RefusesCode,
    /// The place where codes are exchanged answers with this status and nothing else.
    TokenStatus(u16),
    /// That place sends its callers elsewhere.
    TokenRedirects(String),
    /// That place answers with a flood of bytes.
    TokenFloods,
    /// That place answers with something that is no document.
    TokenBabbles,
    /// That place takes the call and says nothing.
    TokenHangs,
    /// The person does not want to.
    Denied,
    /// `userinfo` is about somebody else.
    UserinfoOfAnother,
    /// `userinfo` answers with this status and nothing else.
    UserinfoStatus(u16),
}

/// A person who is about to be handed over.
struct Pending {
    nonce: Option<String>,
    challenge: String,
    redirect_uri: String,
    claims: Value,
}

#[derive(Default)]
pub(super) struct Flow {
    fault: Fault,
    /// Who sits before the browser.
    person: Value,
    /// What only `userinfo` says of them.
    more: Value,
    codes: HashMap<String, Pending>,
    tokens: HashMap<String, Value>,
    asked_to_sign_in: Vec<BTreeMap<String, String>>,
}

impl Idp {
    /// Who signs in from now on: claims without those that the provider itself adds.
    pub fn person(&self, claims: Value) {
        self.inner().flow.person = claims;
    }

    /// What its `userinfo` says of them beside that.
    pub fn also_in_userinfo(&self, claims: Value) {
        self.inner().flow.more = claims;
    }

    /// What it does wrong from now on.
    pub fn set_fault(&self, fault: Fault) {
        self.inner().flow.fault = fault;
    }

    /// The parameters with which people were sent here.
    pub fn departures(&self) -> Vec<BTreeMap<String, String>> {
        self.inner().flow.asked_to_sign_in.clone()
    }
}

pub(super) fn document(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

pub(super) fn routes() -> Router<Idp> {
    Router::new()
        .route("/authorize", get(authorize))
        .route("/token", post(token))
        .route("/userinfo", get(userinfo))
}

async fn authorize(State(idp): State<Idp>, Query(asked): Query<BTreeMap<String, String>>) -> Response {
    let mut inner = idp.inner();
    inner.flow.asked_to_sign_in.push(asked.clone());
    let of = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    let is_right = of("response_type") == "code"
        && of("client_id") == CLIENT_ID
        && of("code_challenge_method") == "S256"
        && of("code_challenge").len() == 43
        && of("scope").split(' ').any(|scope| scope == "openid");
    if !is_right {
        return (StatusCode::BAD_REQUEST, format!("{asked:?}")).into_response();
    }
    let mut back = url::Url::parse(of("redirect_uri")).unwrap();
    back.query_pairs_mut().append_pair("state", of("state"));
    if inner.flow.fault == Fault::Denied {
        back.query_pairs_mut().append_pair("error", "access_denied");
    } else {
        let code = hex::encode(rand::random::<[u8; 16]>());
        back.query_pairs_mut().append_pair("code", &code);
        let pending = Pending {
            nonce: asked.get("nonce").cloned(),
            challenge: of("code_challenge").to_owned(),
            redirect_uri: of("redirect_uri").to_owned(),
            claims: inner.flow.person.clone(),
        };
        inner.flow.codes.insert(code, pending);
    }
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}

async fn token(State(idp): State<Idp>, headers: HeaderMap, body: String) -> Response {
    let asked: BTreeMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let fault = idp.inner().flow.fault.clone();
    match fault {
        Fault::TokenStatus(status) => return StatusCode::from_u16(status).unwrap().into_response(),
        Fault::TokenRedirects(to) => {
            return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response();
        }
        Fault::TokenFloods => return vec![b' '; 2 << 20].into_response(),
        Fault::TokenBabbles => return Json(json!(["token"])).into_response(),
        Fault::TokenHangs => std::future::pending().await,
        _ => {}
    }
    let refused = |why: &str| {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant", "error_description": why })))
            .into_response()
    };
    let basic = STANDARD.encode(format!(
        "{}:{}",
        url::form_urlencoded::byte_serialize(CLIENT_ID.as_bytes()).collect::<String>(),
        url::form_urlencoded::byte_serialize(CLIENT_SECRET.as_bytes()).collect::<String>()
    ));
    if headers.get(header::AUTHORIZATION).unwrap().to_str().unwrap() != format!("Basic {basic}") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let of = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    // A code is good once.
    let Some(pending) = idp.inner().flow.codes.remove(of("code")) else { return refused("code") };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256Digest::of(of("code_verifier").as_bytes()).0);
    if fault == Fault::RefusesCode
        || challenge != pending.challenge
        || of("redirect_uri") != pending.redirect_uri
    {
        return refused("not yours");
    }
    let access = hex::encode(rand::random::<[u8; 16]>());
    let mut about = pending.claims.clone();
    if let Some(more) = idp.inner().flow.more.as_object() {
        more.iter().for_each(|(name, value)| about[name] = value.clone());
    }
    idp.inner().flow.tokens.insert(access.clone(), about);
    let mut answer = json!({ "access_token": access, "token_type": "Bearer", "expires_in": 60 });
    if fault != Fault::NoToken {
        answer["id_token"] = json!(id_token(&idp, &fault, pending));
    }
    Json(answer).into_response()
}

fn id_token(idp: &Idp, fault: &Fault, pending: Pending) -> String {
    let now = chrono::Utc::now().timestamp();
    let mut claims = pending.claims;
    claims["iss"] = json!(idp.issuer);
    claims["aud"] = json!(CLIENT_ID);
    claims["iat"] = json!(now);
    claims["exp"] = json!(now + 300);
    claims["nonce"] = json!(pending.nonce);
    match fault {
        Fault::Nonce => claims["nonce"] = json!("of another sign-in"),
        Fault::NoNonce => drop(claims.as_object_mut().unwrap().remove("nonce")),
        Fault::Claim(name, Value::Null) => drop(claims.as_object_mut().unwrap().remove(*name)),
        Fault::Claim(name, value) => claims[*name] = value.clone(),
        _ => {}
    }
    match fault {
        Fault::Unsigned => idp.unsigned(&claims),
        Fault::PublicKeyAsSecret => idp.sign_with_public_key(&claims),
        Fault::Forged => idp.forge(&claims),
        Fault::Babble => "a.b.c".into(),
        _ => idp.sign(&claims),
    }
}

async fn userinfo(State(idp): State<Idp>, headers: HeaderMap) -> Response {
    let inner = idp.inner();
    if let Fault::UserinfoStatus(status) = inner.flow.fault {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some(claims) = inner.flow.tokens.get(bearer.trim_start_matches("Bearer ")) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let mut claims = claims.clone();
    if inner.flow.fault == Fault::UserinfoOfAnother {
        claims["sub"] = json!("somebody else");
    }
    Json(claims).into_response()
}
