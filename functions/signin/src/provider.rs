//! The provider: its documents, kept for an hour, and what its tokens say.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken, CoreJwsSigningAlgorithm,
    CoreProviderMetadata,
};
use openidconnect::{
    AccessToken, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    DiscoveryError, IssuerUrl, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RequestTokenError, Scope, SignatureVerificationError, TokenResponse as _,
};
use plumbline_core::Deps;
use plumbline_core::oidc_logins::settings::Provider;
use plumbline_core::oidc_logins::{Identity, OidcError, Refusal};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use url::Url;

use crate::claims;
use crate::cookie::Begun;
use crate::web::{Web, WebError};

/// How long documents and keys are believed.
const DOCUMENTS_AGE: Duration = Duration::from_secs(3600);
/// How soon keys are read again because a token names an unknown one, after that was done last.
const REREAD_PAUSE: Duration = Duration::from_secs(60);
/// How soon a provider whose documents could not be read is asked again. Anybody can begin a sign-in: without this,
/// anybody could make us ask all the time.
const FAILED_PAUSE: Duration = Duration::from_secs(2);
/// How far the provider's clock may be from ours.
const SKEW: TimeDelta = TimeDelta::seconds(60);

/// The one algorithm that is believed: every provider has it, and nobody can sign with what is published of its key.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 1] = [CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256];

/// What is known of the provider that was asked last. One process speaks with one; another one takes its place.
#[derive(Default)]
pub(crate) struct Providers {
    // Held while documents are read: many who come at once ask once.
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    known: Option<Known>,
    failed: Option<Failed>,
}

/// The last time that documents could not be read.
struct Failed {
    issuer: String,
    at: Instant,
    away: bool,
}

struct Known {
    issuer: String,
    documents: CoreProviderMetadata,
    read_at: Instant,
    reread_at: Option<Instant>,
}

/// Where to send somebody, and what to remember meanwhile.
pub(crate) struct Departure {
    pub(crate) url: Url,
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
}

impl Providers {
    async fn documents(&self, web: &Web, issuer: &str) -> Result<CoreProviderMetadata, OidcError> {
        let mut asked = self.asked.lock().await;
        if let Some(known) = asked.known.as_ref().filter(|known| known.is_good_for(issuer)) {
            return Ok(known.documents.clone());
        }
        let documents = asked.read(web, issuer).await?;
        let (issuer, read_at) = (issuer.to_owned(), Instant::now());
        asked.known = Some(Known { issuer, documents: documents.clone(), read_at, reread_at: None });
        Ok(documents)
    }

    /// The documents once more, because a token names a key that they do not have; `None` if that was just done.
    async fn reread(&self, web: &Web, issuer: &str) -> Result<Option<CoreProviderMetadata>, OidcError> {
        let mut asked = self.asked.lock().await;
        let known = asked.known.as_ref().filter(|known| known.issuer == issuer);
        let last = known.and_then(|known| known.reread_at);
        if last.is_some_and(|last| last.elapsed() < REREAD_PAUSE) {
            return Ok(None);
        }
        let documents = asked.read(web, issuer).await?;
        let (issuer, now) = (issuer.to_owned(), Instant::now());
        asked.known =
            Some(Known { issuer, documents: documents.clone(), read_at: now, reread_at: Some(now) });
        Ok(Some(documents))
    }

    /// Begins a sign-in.
    pub(crate) async fn depart(&self, deps: &Deps, provider: &Provider) -> Result<Departure, OidcError> {
        let web = web(deps)?;
        let documents = self.documents(&web, &provider.issuer).await?;
        if !web.may_use(documents.authorization_endpoint().url()) {
            return Err(misconfigured("the provider's page for signing in is not encrypted"));
        }
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let client = CoreClient::from_provider_metadata(
            documents,
            ClientId::new(provider.client_id.clone()),
            Some(ClientSecret::new(provider.client_secret.expose().to_owned())),
        )
        .set_redirect_uri(redirect_uri(provider)?);
        let mut request = client.authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            CsrfToken::new_random,
            Nonce::new_random,
        );
        // The library asks for `openid` by itself.
        for scope in provider.scopes.iter().filter(|scope| *scope != "openid") {
            request = request.add_scope(Scope::new(scope.clone()));
        }
        let (url, state, nonce) = request.set_pkce_challenge(challenge).url();
        Ok(Departure {
            url,
            state: state.into_secret(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
        })
    }

    /// Who came back, given the provider's code and what was remembered of the departure.
    pub(crate) async fn arrive(
        &self,
        deps: &Deps,
        provider: &Provider,
        begun: &Begun,
        code: String,
        now: DateTime<Utc>,
    ) -> Result<Identity, OidcError> {
        let web = web(deps)?;
        let documents = self.documents(&web, &provider.issuer).await?;
        let (token, access) = exchange(&web, &documents, provider, begun, code).await?;
        let verified = match verify(&documents, provider, &token, &begun.nonce, now) {
            Err(Unverified::UnknownKey) => match self.reread(&web, &provider.issuer).await? {
                Some(fresh) => verify(&fresh, provider, &token, &begun.nonce, now),
                None => Err(Unverified::UnknownKey),
            },
            other => other,
        };
        verified.map_err(|why| Refusal::Answer(why.as_str()))?;
        let mut claims = claims::of_token(&token.to_string()).ok_or(Refusal::Answer("malformed_token"))?;
        // The library leaves this one to its callers: a token that was made for another of the provider's clients.
        if claims.get("azp").is_some_and(|party| party.as_str() != Some(&provider.client_id)) {
            return Err(Refusal::Answer(Unverified::Audience.as_str()).into());
        }
        let has_all = claims.contains_key(&provider.role_claim) && claims.contains_key("email");
        if let Some(place) = documents.userinfo_endpoint().filter(|_| !has_all) {
            let more = userinfo(&web, place.url(), &access).await?;
            if !claims::add(&mut claims, more) {
                return Err(Refusal::Answer("userinfo_of_somebody_else").into());
            }
        }
        Identity::read(&provider.issuer, &claims, &provider.role_claim)
            .map_err(|_| Refusal::Answer("no_subject").into())
    }
}

impl Asked {
    async fn read(&mut self, web: &Web, issuer: &str) -> Result<CoreProviderMetadata, OidcError> {
        let last = self.failed.as_ref().filter(|failed| failed.issuer == issuer);
        match last.filter(|failed| failed.at.elapsed() < FAILED_PAUSE) {
            Some(Failed { away: true, .. }) => return Err(OidcError::Away),
            Some(_) => return Err(misconfigured("the provider's documents could not be used a moment ago")),
            None => {}
        }
        let documents = read(web, issuer).await;
        self.failed = documents.as_ref().err().map(|error| Failed {
            issuer: issuer.to_owned(),
            at: Instant::now(),
            away: matches!(error, OidcError::Away),
        });
        documents
    }
}

impl Known {
    fn is_good_for(&self, issuer: &str) -> bool {
        self.issuer == issuer && self.read_at.elapsed() < DOCUMENTS_AGE
    }
}

fn web(deps: &Deps) -> Result<Web, OidcError> {
    Web::new(deps).map_err(|_| OidcError::Away)
}

fn misconfigured(why: &str) -> OidcError {
    OidcError::Misconfigured(why.to_owned())
}

fn redirect_uri(provider: &Provider) -> Result<RedirectUrl, OidcError> {
    RedirectUrl::new(provider.redirect_uri.clone())
        .map_err(|_| misconfigured("the redirect URI is no address"))
}

/// Discovery document and keys.
async fn read(web: &Web, issuer: &str) -> Result<CoreProviderMetadata, OidcError> {
    let url = IssuerUrl::new(issuer.to_owned()).map_err(|_| misconfigured("the issuer is no address"))?;
    CoreProviderMetadata::discover_async(url, web).await.map_err(|error| {
        tracing::warn!(error = %error, "the identity provider's documents cannot be read");
        match error {
            DiscoveryError::Request(WebError::Away) => OidcError::Away,
            DiscoveryError::Request(WebError::Plain) => {
                misconfigured("an address of the provider is not encrypted")
            }
            _ => misconfigured("the provider's documents are not those of the issuer"),
        }
    })
}

/// The provider's token for its code, and the token that opens `userinfo`.
async fn exchange(
    web: &Web,
    documents: &CoreProviderMetadata,
    provider: &Provider,
    begun: &Begun,
    code: String,
) -> Result<(CoreIdToken, AccessToken), OidcError> {
    let client = CoreClient::from_provider_metadata(
        documents.clone(),
        ClientId::new(provider.client_id.clone()),
        Some(ClientSecret::new(provider.client_secret.expose().to_owned())),
    )
    .set_redirect_uri(redirect_uri(provider)?)
    .set_auth_type(auth_type(documents));
    let request = client
        .exchange_code(AuthorizationCode::new(code))
        .map_err(|_| misconfigured("the provider has no place where codes are exchanged"))?;
    let answer = request
        .set_pkce_verifier(PkceCodeVerifier::new(begun.verifier.clone()))
        .request_async(web)
        .await
        .map_err(|error| match error {
            RequestTokenError::Request(WebError::Away) => OidcError::Away,
            RequestTokenError::Request(WebError::Plain) => {
                misconfigured("an address of the provider is not encrypted")
            }
            RequestTokenError::Request(WebError::TooLong) => Refusal::Answer("token_answer_too_long").into(),
            // Its word for what is wrong is logged; what it says beside that may quote what we sent.
            RequestTokenError::ServerResponse(said) => {
                tracing::warn!(error = %said.error(), "the identity provider refused its own code");
                Refusal::Answer("code_refused").into()
            }
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
                Refusal::Answer("token_answer_malformed").into()
            }
        })?;
    let token = answer.id_token().ok_or(Refusal::Answer("no_id_token"))?.clone();
    Ok((token, answer.access_token().clone()))
}

/// Basic, as the standard has it, unless the provider says that it takes only the other one.
fn auth_type(documents: &CoreProviderMetadata) -> AuthType {
    let methods = documents.token_endpoint_auth_methods_supported();
    let takes = |method| methods.is_some_and(|all| all.contains(&method));
    if takes(CoreClientAuthMethod::ClientSecretPost) && !takes(CoreClientAuthMethod::ClientSecretBasic) {
        AuthType::RequestBody
    } else {
        AuthType::BasicAuth
    }
}

/// What is wrong with a token. The words go to the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unverified {
    UnknownKey,
    Signature,
    Algorithm,
    Issuer,
    Audience,
    Expired,
    Nonce,
    Other,
}

impl Unverified {
    fn as_str(self) -> &'static str {
        match self {
            Self::UnknownKey => "unknown_key",
            Self::Signature => "wrong_signature",
            Self::Algorithm => "algorithm_not_allowed",
            Self::Issuer => "wrong_issuer",
            Self::Audience => "wrong_audience",
            Self::Expired => "expired_token",
            Self::Nonce => "wrong_nonce",
            Self::Other => "malformed_token",
        }
    }
}

fn verify(
    documents: &CoreProviderMetadata,
    provider: &Provider,
    token: &CoreIdToken,
    nonce: &str,
    now: DateTime<Utc>,
) -> Result<(), Unverified> {
    let client = CoreClient::from_provider_metadata(
        documents.clone(),
        ClientId::new(provider.client_id.clone()),
        Some(ClientSecret::new(provider.client_secret.expose().to_owned())),
    );
    let verifier = client
        .id_token_verifier()
        .set_allowed_algs(ALGORITHMS)
        // The database's clock decides.
        .set_time_fn(move || now - SKEW)
        .set_issue_time_verifier_fn(move |issued| {
            if issued > now + SKEW { Err("it was issued in the future".to_owned()) } else { Ok(()) }
        });
    token.claims(&verifier, &Nonce::new(nonce.to_owned())).map(drop).map_err(|error| {
        tracing::warn!(error = %error, "a token of the identity provider was not accepted");
        match error {
            ClaimsVerificationError::Expired(_) => Unverified::Expired,
            ClaimsVerificationError::InvalidAudience(_) => Unverified::Audience,
            ClaimsVerificationError::InvalidIssuer(_) => Unverified::Issuer,
            ClaimsVerificationError::InvalidNonce(_) => Unverified::Nonce,
            ClaimsVerificationError::SignatureVerification(error) => match error {
                SignatureVerificationError::NoMatchingKey => Unverified::UnknownKey,
                SignatureVerificationError::DisallowedAlg(_)
                | SignatureVerificationError::UnsupportedAlg(_)
                | SignatureVerificationError::NoSignature => Unverified::Algorithm,
                _ => Unverified::Signature,
            },
            _ => Unverified::Other,
        }
    })
}

async fn userinfo(web: &Web, place: &Url, access: &AccessToken) -> Result<Map<String, Value>, OidcError> {
    let request = http::Request::get(place.as_str())
        .header(http::header::AUTHORIZATION, format!("Bearer {}", access.secret()))
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(|_| Refusal::Answer("userinfo_malformed"))?;
    // Without it somebody could seem to be in no group: an answer that does not come is no answer.
    let answer = web.send(request).await.map_err(|error| match error {
        WebError::Away => OidcError::Away,
        WebError::Plain => misconfigured("an address of the provider is not encrypted"),
        WebError::TooLong => Refusal::Answer("userinfo_too_long").into(),
    })?;
    if !answer.status().is_success() {
        return Err(Refusal::Answer("userinfo_refused").into());
    }
    serde_json::from_slice(answer.body()).map_err(|_| Refusal::Answer("userinfo_malformed").into())
}
