//! The caller of one request.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{ApiKeyId, BusinessUnitId, SessionId, UserId, WorkspaceId};

/// What a member may do in one business unit. Ordered: a higher role can do all that a lower one can.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Triggers, approves, rejects and cancels runs.
    Operator,
    /// Creates and deletes workspaces, changes settings.
    Admin,
}

impl Role {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Viewer, Self::Operator, Self::Admin].into_iter().find(|role| role.as_str() == word)
    }
}

/// How far an API key goes, within what its owner may do. Ordered: a higher capability can do all that a lower one can.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Reads what a viewer reads.
    Read,
    /// Plans, but applies nothing.
    Plan,
    /// Plans, approves and applies.
    Apply,
    /// All that an admin of the unit does, but for people, keys and units.
    Admin,
}

impl Capability {
    /// Every capability, from the least.
    pub const ALL: [Self; 4] = [Self::Read, Self::Plan, Self::Apply, Self::Admin];

    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Admin => "admin",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.as_str() == word)
    }

    /// The highest role that a key of this capability acts with.
    pub fn ceiling(self) -> Role {
        match self {
            Self::Read => Role::Viewer,
            Self::Plan | Self::Apply => Role::Operator,
            Self::Admin => Role::Admin,
        }
    }
}

/// What a request proved who it is by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A person's session.
    Session(SessionId),
    /// An API key.
    Key {
        /// How far it goes.
        capability: Capability,
        /// The only workspaces that it reaches; `None` is all of its unit. An empty list reaches none.
        workspaces: Option<Arc<[WorkspaceId]>>,
    },
}

/// Which business units a request may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Exactly one unit.
    One(BusinessUnitId),
    /// Every unit; superadmins only.
    All,
}

impl Scope {
    /// The unit as a SQL parameter: NULL means every unit, so statements filter with
    /// `($1::uuid IS NULL OR business_unit_id = $1)`.
    pub fn unit(self) -> Option<BusinessUnitId> {
        match self {
            Self::One(unit) => Some(unit),
            Self::All => None,
        }
    }
}

/// Who is recorded as the author of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A person.
    User {
        /// Their id.
        id: UserId,
        /// Their e-mail, for display.
        email: String,
    },
    /// A program with an API key.
    Key {
        /// The key.
        id: ApiKeyId,
        /// Its name, for display.
        name: String,
        /// The person whose power it borrows; `None` for a key that a CI system got for a token of its own.
        owner: Option<UserId>,
    },
    /// Plumbline itself: sweeps, promotions of waiting runs, executors' reports.
    System,
}

impl Actor {
    /// The user to record; `None` for the system.
    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::User { id, .. } => Some(*id),
            Self::Key { owner, .. } => *owner,
            Self::System => None,
        }
    }

    /// The key to record; `None` where none was used.
    pub fn api_key_id(&self) -> Option<ApiKeyId> {
        match self {
            Self::Key { id, .. } => Some(*id),
            Self::User { .. } | Self::System => None,
        }
    }
}

/// A W3C `traceparent` header, kept as it came. Stored on tasks, so a trace crosses the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TraceParent(String);

impl TraceParent {
    /// `None` unless the text has the shape of version 00 of the header.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('-').collect();
        let hex = |part: &str, len: usize| {
            part.len() == len && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let [version, trace, span, flags] = parts[..] else { return None };
        let valid = version == "00"
            && hex(trace, 32)
            && hex(span, 16)
            && hex(flags, 2)
            && trace.bytes().any(|b| b != b'0')
            && span.bytes().any(|b| b != b'0');
        valid.then(|| Self(text.to_owned()))
    }

    /// The header's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The caller of one request, resolved once by the edge.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// Who acts.
    pub actor: Actor,
    /// How they proved it.
    pub credential: Credential,
    /// Where they act.
    pub scope: Scope,
    /// The role in that scope. Superadmins have `Admin`; a key has no more than its capability's ceiling.
    pub role: Role,
    /// Whether the caller stands above all business units. Never with a key.
    pub is_superadmin: bool,
    /// The trace that this request belongs to.
    pub traceparent: Option<TraceParent>,
    /// For display only; what decides uses the database's clock.
    pub now: DateTime<Utc>,
}
