//! Roles that trust an issuer: what AWS does with a token. The issuer's keys are fetched as AWS fetches them.

use std::collections::BTreeMap;

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::Value;

use super::{FakeSts, Service, roles};

type Refused = (&'static str, String);

/// Whom a role trusts, as its policy says.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The provider's URL.
    pub issuer: String,
    /// Its client id.
    pub audience: String,
    /// The condition on the subject, compared letter by letter.
    pub subject: String,
}

impl FakeSts {
    /// A role that trusts tokens.
    pub fn trusting_role(&self, role_arn: &str, trust: Trust) {
        self.service().trusts.insert(role_arn.to_owned(), trust);
    }
}

/// What the token says, if its issuer has signed it.
pub(super) async fn judge(form: &BTreeMap<String, String>) -> Result<Value, Refused> {
    let invalid = |why: &str| ("InvalidIdentityToken", why.to_owned());
    if ["ExternalId", "Tags.member.1.Key"].iter().any(|name| form.contains_key(*name)) {
        return Err(("ValidationError", "this action knows neither tags nor external ids".into()));
    }
    let token = form.get("WebIdentityToken").ok_or_else(|| invalid("no token"))?;
    let header = jsonwebtoken::decode_header(token).map_err(|_| invalid("no JWT"))?;
    let claims =
        jsonwebtoken::dangerous::insecure_decode::<Value>(token).map_err(|_| invalid("no JWT"))?.claims;
    let issuer = claims["iss"].as_str().unwrap_or_default().to_owned();
    let discovery = fetch(&format!("{issuer}/.well-known/openid-configuration")).await?;
    let keys = fetch(discovery["jwks_uri"].as_str().unwrap_or_default()).await?;
    let key = keys["keys"]
        .as_array()
        .and_then(|keys| keys.iter().find(|key| key["kid"].as_str() == header.kid.as_deref()));
    let key = key.ok_or_else(|| invalid("No OpenIDConnect key found"))?;
    let part = |name: &str| key[name].as_str().unwrap_or_default();
    let key = DecodingKey::from_rsa_components(part("n"), part("e")).map_err(|_| invalid("no key"))?;
    let mut validation = Validation::new(Algorithm::RS256);
    validation.validate_aud = false;
    validation.set_issuer(&[&issuer]);
    jsonwebtoken::decode::<Value>(token, &key, &validation)
        .map(|data| data.claims)
        .map_err(|error| invalid(&error.to_string()))
}

async fn fetch(url: &str) -> Result<Value, Refused> {
    let away = |error: reqwest::Error| ("IDPCommunicationError", error.to_string());
    let http = reqwest::Client::builder().no_proxy().build().map_err(away)?;
    http.get(url).send().await.map_err(away)?.json().await.map_err(away)
}

/// The session, if the role trusts what the token says.
pub(super) fn assume(
    service: &mut Service,
    url: &str,
    claims: &Value,
    form: &BTreeMap<String, String>,
) -> Result<String, Refused> {
    let role_arn = form.get("RoleArn").cloned().unwrap_or_default();
    let is_trusted = service.trusts.get(&role_arn).is_some_and(|trust| {
        claims["iss"] == trust.issuer.as_str()
            && claims["aud"] == trust.audience.as_str()
            && claims["sub"] == trust.subject.as_str()
    });
    if !is_trusted {
        return Err(("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity".into()));
    }
    let tags = &claims["https://aws.amazon.com/tags"]["principal_tags"];
    let tags = tags.as_object().into_iter().flatten();
    let tags =
        tags.map(|(key, values)| (key.clone(), values[0].as_str().unwrap_or_default().to_owned())).collect();
    let subject = claims["sub"].as_str().unwrap_or_default().to_owned();
    Ok(roles::give(service, url, &subject, form, tags, "AssumeRoleWithWebIdentity"))
}
