//! Sessions as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::access::Role;
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

/// What the database says about the bearer of a token, and about the unit that the request names.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Their e-mail.
    pub email: String,
    /// Whether they stand above all units.
    pub is_superadmin: bool,
    /// Whether they may not act at all any more.
    pub disabled: bool,
    /// Their token generation now.
    pub generation: i32,
    /// The installation's epoch now.
    pub epoch: i32,
    /// Neither ended nor expired.
    pub session_live: bool,
    /// The database's clock.
    pub at: DateTime<Utc>,
    /// The unit that the request names, or their first one; with their role there, if they are a member.
    pub unit: Option<(BusinessUnitId, Option<Role>)>,
}
