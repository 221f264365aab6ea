//! API keys as plain data.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::access::{Capability, Role};
use crate::ids::{ApiKeyId, BusinessUnitId, UserId, WorkspaceId};

/// A key as people see it: everything but the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApiKeyView {
    /// Its id.
    pub id: ApiKeyId,
    /// What it is for.
    pub name: String,
    /// The first characters of its token.
    pub token_prefix: String,
    /// How far it goes.
    pub capability: Capability,
    /// The only workspaces that it reaches; absent for all of the unit.
    pub workspace_ids: Option<Vec<WorkspaceId>>,
    /// Its unit.
    pub business_unit_id: BusinessUnitId,
    /// Whose power it borrows.
    pub user_id: UserId,
    /// Who made it.
    pub created_by: Option<UserId>,
    /// When.
    pub created_at: DateTime<Utc>,
    /// When it was last used, at most a minute behind.
    pub last_used_at: Option<DateTime<Utc>>,
    /// From when on it is void.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// When a successor was made.
    pub rotated_at: Option<DateTime<Utc>>,
    /// The successor.
    pub superseded_by_id: Option<ApiKeyId>,
}

/// A key to make.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    /// What it is for, 1 to 255 characters.
    pub name: String,
    /// How far it goes; `read` unless given.
    #[serde(default = "read")]
    pub capability: Capability,
    /// The only workspaces that it reaches; all of the unit unless given.
    #[serde(default)]
    pub workspace_ids: Option<Vec<WorkspaceId>>,
    /// From when on it is void; never unless given.
    #[serde(default)]
    pub expires_at: Option<DateTime<Utc>>,
}

fn read() -> Capability {
    Capability::Read
}

/// How to replace a key while its users move to the new one.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rotation {
    /// How long the old token stays good, in hours: 24 unless given, at most 168. It never outlives its own expiry.
    #[serde(default)]
    pub overlap_hours: Option<u32>,
    /// From when on the successor is void; as the old key unless given.
    #[serde(default)]
    pub expires_at: Option<DateTime<Utc>>,
}

/// A key that has just got a token.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct MintedKey {
    /// The key.
    #[serde(flatten)]
    pub key: ApiKeyView,
    /// Its token, shown this once.
    pub token: String,
}

impl std::fmt::Debug for MintedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MintedKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What the database says about the bearer of a key's token.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub id: ApiKeyId,
    pub name: String,
    pub business_unit_id: BusinessUnitId,
    pub capability: Capability,
    pub workspaces: Option<Arc<[WorkspaceId]>>,
    pub revoked: bool,
    pub expired: bool,
    /// Made before the installation was restored.
    pub outdated: bool,
    pub unit_archived: bool,
    pub owner: UserId,
    /// What the owner may do in the unit now; `None` if nothing.
    pub owner_role: Option<Role>,
    /// The database's clock.
    pub at: DateTime<Utc>,
}

/// What decides whether a key may get a new token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub revoked: bool,
    pub expired: bool,
    pub rotated: bool,
}
