//! How people sign in here: the environment first, then what superadmins have set.

use std::fmt;

use chrono::{DateTime, Utc};

use super::{OidcError, RoleMapping};
use crate::Deps;
use crate::access::Role;
use crate::config::{Setting, Values, registry, service as config};
use crate::db::{DbError, Query};
use crate::secrets::SecretText;

/// The path that the provider sends people back to.
pub const CALLBACK: &str = "/api/v1/auth/oidc/callback";

/// How people sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With e-mail and password.
    Local,
    /// Through the provider. Only a superadmin's password still opens the door: somebody must be able to set right what
    /// keeps everybody out.
    Oidc,
    /// Either way.
    Both,
}

impl Mode {
    /// What holds: the environment first, then what is set.
    pub fn of(values: &Values, deps: &Deps) -> Self {
        match given(values, &registry::AUTH_PROVIDER, deps).as_deref() {
            Some("oidc") => Self::Oidc,
            Some("both") => Self::Both,
            _ => Self::Local,
        }
    }

    /// The word in the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Oidc => "oidc",
            Self::Both => "both",
        }
    }
}

/// The identity provider, and what its groups mean here.
#[derive(Clone)]
pub struct Provider {
    /// Its name, which is where its discovery document lies below.
    pub issuer: String,
    /// What it calls us.
    pub client_id: String,
    /// What we prove with that we are its client.
    pub client_secret: SecretText,
    /// Where it sends people back to.
    pub redirect_uri: String,
    /// What is asked of it.
    pub scopes: Vec<String>,
    /// The claim that holds groups.
    pub role_claim: String,
    /// What groups give.
    pub mapping: RoleMapping,
    /// What those have who are given nothing: a role in a unit, by its slug.
    pub default: Option<(String, Role)>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Everything at one moment.
#[derive(Debug)]
pub struct Settings {
    /// How people sign in.
    pub mode: Mode,
    /// The provider's name, if one is set.
    pub issuer: Option<String>,
    /// The provider; or the keys of what is missing.
    pub provider: Result<Provider, Vec<&'static str>>,
    /// The database's clock.
    pub now: DateTime<Utc>,
}

impl Settings {
    /// The provider, where people sign in through it.
    pub fn require(self) -> Result<(Provider, DateTime<Utc>), OidcError> {
        if self.mode == Mode::Local {
            return Err(OidcError::Off);
        }
        match self.provider {
            Ok(provider) => Ok((provider, self.now)),
            Err(missing) => Err(OidcError::Misconfigured(format!("{} is not set", missing.join(", ")))),
        }
    }
}

const NOW: &str = "SELECT plumbline_now()";

/// How people sign in now.
pub async fn find(query: &impl Query, deps: &Deps) -> Result<Settings, OidcError> {
    let settings = [
        &registry::AUTH_PROVIDER,
        &registry::OIDC_ISSUER,
        &registry::OIDC_CLIENT_ID,
        &registry::OIDC_CLIENT_SECRET,
        &registry::OIDC_REDIRECT_URI,
        &registry::OIDC_SCOPES,
        &registry::OIDC_ROLE_CLAIM,
        &registry::OIDC_ROLE_MAPPING,
        &registry::OIDC_DEFAULT_ROLE,
        &registry::OIDC_DEFAULT_BUSINESS_UNIT,
    ];
    let values = config::platform(query, &settings).await?;
    let now = query.query_one(NOW, &[]).await?.get(0);
    let given = Given { deps, values };
    let mode = Mode::of(&given.values, deps);
    let issuer = given.text(&registry::OIDC_ISSUER);
    Ok(Settings { mode, issuer, provider: given.provider()?, now })
}

/// The mode and the provider's name, for whoever asks before signing in: no secret is opened.
pub async fn advertised(query: &impl Query, deps: &Deps) -> Result<(Mode, Option<String>), DbError> {
    let settings = [&registry::AUTH_PROVIDER, &registry::OIDC_ISSUER];
    let values = config::platform(query, &settings).await?;
    Ok((Mode::of(&values, deps), given(&values, &registry::OIDC_ISSUER, deps)))
}

fn given(values: &Values, setting: &Setting, deps: &Deps) -> Option<String> {
    deps.overrides.text(setting).or_else(|| values.text(setting, &deps.limits))
}

struct Given<'d> {
    deps: &'d Deps,
    values: Values,
}

impl Given<'_> {
    fn text(&self, setting: &Setting) -> Option<String> {
        given(&self.values, setting, self.deps)
    }

    fn provider(&self) -> Result<Result<Provider, Vec<&'static str>>, OidcError> {
        let secret = match self.deps.overrides.secret(&registry::OIDC_CLIENT_SECRET) {
            Some(secret) => Some(secret.clone()),
            None => self.values.secret(&registry::OIDC_CLIENT_SECRET, &self.deps.keys)?,
        };
        let issuer = self.text(&registry::OIDC_ISSUER);
        let client_id = self.text(&registry::OIDC_CLIENT_ID);
        let (Some(issuer), Some(client_id), Some(secret)) = (&issuer, &client_id, &secret) else {
            let needed = [
                (&registry::OIDC_ISSUER, issuer.is_some()),
                (&registry::OIDC_CLIENT_ID, client_id.is_some()),
                (&registry::OIDC_CLIENT_SECRET, secret.is_some()),
            ];
            return Ok(Err(needed.into_iter().filter(|(_, set)| !set).map(|(key, _)| key.name).collect()));
        };
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        let role = self.text(&registry::OIDC_DEFAULT_ROLE).as_deref().and_then(Role::parse);
        let mapping = self.text(&registry::OIDC_ROLE_MAPPING).unwrap_or_else(|| "{}".into());
        let mapping = RoleMapping::parse(&mapping).map_err(|_| {
            OidcError::Misconfigured(format!("{} is malformed", registry::OIDC_ROLE_MAPPING.name))
        })?;
        Ok(Ok(Provider {
            issuer: issuer.clone(),
            client_id: client_id.clone(),
            client_secret: secret.clone(),
            redirect_uri: self
                .text(&registry::OIDC_REDIRECT_URI)
                .unwrap_or_else(|| [&*self.deps.public_url, CALLBACK].concat()),
            scopes: self.text(&registry::OIDC_SCOPES).map(words).unwrap_or_default(),
            role_claim: self.text(&registry::OIDC_ROLE_CLAIM).unwrap_or_else(|| "groups".into()),
            mapping,
            default: self.text(&registry::OIDC_DEFAULT_BUSINESS_UNIT).zip(role),
        }))
    }
}
