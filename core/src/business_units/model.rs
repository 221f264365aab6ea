//! Business units as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::BusinessUnitId;

/// A business unit as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BusinessUnitView {
    /// Its id.
    pub id: BusinessUnitId,
    /// Its short name: what `X-Business-Unit` takes.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// Since when it is archived: nothing new is done in it, and only superadmins look at what it has.
    pub archived_at: Option<DateTime<Utc>>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was changed last.
    pub updated_at: DateTime<Utc>,
}

/// What a unit is called.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBusinessUnit {
    /// 3 to 64 lower-case letters, digits and dashes; not `all`.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$", min_length = 3, max_length = 64)]
    pub slug: String,
    /// 1 to 255 characters.
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
}

/// What can be changed of a unit. Its slug is part of headers, settings and release names, and stays.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BusinessUnitChange {
    /// 1 to 255 characters.
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
}
