//! Sessions as plain data.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::access::{Role, Scope};
use crate::ids::{BusinessUnitId, SessionId, UserId};

/// What an access token says. Only `sub`, `jti`, `gen`, `epoch` and the times are believed; the rest is for display.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Who made it.
    pub iss: String,
    /// Whom it is for.
    pub aud: String,
    /// The user.
    pub sub: UserId,
    /// Their e-mail.
    pub email: String,
    /// Their name, if they have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their role at sign-in, in their first unit.
    pub role: Role,
    /// Whether they stood above all units at sign-in.
    pub is_superadmin: bool,
    /// The session.
    pub jti: SessionId,
    /// The user's token generation.
    #[serde(rename = "gen")]
    pub generation: i32,
    /// The installation's epoch.
    pub epoch: i32,
    /// `access`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was made, in seconds since 1970.
    pub iat: i64,
    /// When it ends, in seconds since 1970.
    pub exp: i64,
}

/// What sign-in and refresh give.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct TokenPair {
    /// Sent as `Authorization: Bearer`.
    pub access_token: String,
    /// Good once, to get the next pair.
    pub refresh_token: String,
    /// `bearer`.
    pub token_type: &'static str,
    /// Life of the access token in seconds.
    pub expires_in: u64,
}

impl std::fmt::Debug for TokenPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenPair").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

/// Where a sign-in comes from, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The network address that the gateway saw.
    pub address: Option<IpAddr>,
    /// What the program calls itself.
    pub user_agent: Option<String>,
}

impl Origin {
    /// Takes what an edge knows. A user agent is cut to what is kept, without control characters.
    pub fn new(address: Option<&str>, user_agent: Option<&str>) -> Self {
        const USER_AGENT_CHARS_MAX: usize = 255;
        let readable = |text: &str| -> String {
            text.chars().filter(|c| !c.is_control()).take(USER_AGENT_CHARS_MAX).collect()
        };
        Self {
            address: address
                .and_then(|text| text.parse::<IpAddr>().ok())
                .map(|address| address.to_canonical()),
            user_agent: user_agent.map(readable).filter(|text| !text.is_empty()),
        }
    }
}

/// The person behind an access token, wherever they act: for what is theirs alone, such as their password.
#[derive(Clone, Debug)]
pub struct Bearer {
    /// Who.
    pub id: UserId,
    /// Their e-mail.
    pub email: String,
    /// The session that the token belongs to.
    pub session: SessionId,
    /// Whether they may do nothing but change their password.
    pub must_change_password: bool,
}

/// One of a person's sessions, as they see it.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Whether it is the one that asks.
    pub current: bool,
    /// When they signed in.
    pub created_at: DateTime<Utc>,
    /// When its tokens were last renewed.
    pub refreshed_at: DateTime<Utc>,
    /// When it ends if it is not renewed again.
    pub expires_at: DateTime<Utc>,
    /// The network address of the sign-in, if it was known.
    pub address: Option<String>,
    /// What the program called itself, if it did.
    pub user_agent: Option<String>,
}

/// What the database says about the bearer of a token, and about the unit that the request names.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Their e-mail.
    pub email: String,
    /// Whether they stand above all units.
    pub is_superadmin: bool,
    /// Whether they may not act at all any more.
    pub disabled: bool,
    /// Whether they signed in with a password that they must change first.
    pub must_change_password: bool,
    /// Their token generation now.
    pub generation: i32,
    /// The installation's epoch now.
    pub epoch: i32,
    /// Neither ended nor expired.
    pub session_live: bool,
    /// The database's clock.
    pub at: DateTime<Utc>,
    /// The unit that the request names, or their first one.
    pub unit: Option<NamedUnit>,
}

/// A unit that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedUnit {
    /// Which.
    pub id: BusinessUnitId,
    /// The bearer's role there, if they are a member.
    pub role: Option<Role>,
    /// Whether it is archived.
    pub archived: bool,
}

/// Where the bearer acts, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The unit or all of them.
    pub scope: Scope,
    /// The role there.
    pub role: Role,
    /// Whether that unit is archived.
    pub archived: bool,
}
