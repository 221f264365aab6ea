//! People as plain data.

use serde::{Deserialize, Serialize};

use crate::access::Role;
use crate::ids::{BusinessUnitId, UserId};

/// One person's place in one business unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MembershipView {
    /// The unit.
    pub business_unit_id: BusinessUnitId,
    /// Its short name.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What the person may do there.
    pub role: Role,
}

/// The caller, as they see themselves.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Me {
    /// Their id.
    pub id: UserId,
    /// Their e-mail.
    pub email: String,
    /// Their name, if they have one.
    pub display_name: Option<String>,
    /// Whether they stand above all business units.
    pub is_superadmin: bool,
    /// Their units, ordered by slug.
    pub memberships: Vec<MembershipView>,
    /// Their role in this request's scope.
    pub role: Role,
    /// The slug of this request's unit; absent in all units.
    pub business_unit: Option<String>,
}
