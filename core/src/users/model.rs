//! People as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

use crate::access::Role;
use crate::ids::{BusinessUnitId, UserId};

/// One person's place in one business unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct MembershipView {
    /// The unit.
    pub business_unit_id: BusinessUnitId,
    /// Its short name.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What the person may do there.
    pub role: Role,
    /// `manual`, or `oidc` if a group at the identity provider gave it, and will take it.
    pub source: &'static str,
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
    /// Whether this session can do nothing but change the password.
    pub must_change_password: bool,
    /// Their units, ordered by slug.
    pub memberships: Vec<MembershipView>,
    /// Their role in this request's scope.
    pub role: Role,
    /// The slug of this request's unit; absent in all units.
    pub business_unit: Option<String>,
}

/// A person, as those who administer people see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct UserView {
    /// Their id. The audit log keeps it when the person is gone.
    pub id: UserId,
    /// Their e-mail.
    pub email: String,
    /// Their name, if they have one.
    pub display_name: Option<String>,
    /// Whether they stand above all business units.
    pub is_superadmin: bool,
    /// Since when they may not sign in.
    pub disabled_at: Option<DateTime<Utc>>,
    /// Whether they have a password at all.
    pub has_password: bool,
    /// `oidc` if they are linked to an identity at the provider, else `local`.
    pub auth_provider: &'static str,
    /// Who they are at the provider.
    pub external_id: Option<String>,
    /// Whether they must change it before anything else.
    pub must_change_password: bool,
    /// Until when an invitation waits to be accepted.
    pub invite_expires_at: Option<DateTime<Utc>>,
    /// Their units as far as the caller sees them, ordered by slug.
    pub memberships: Vec<MembershipView>,
    /// When they were made.
    pub created_at: DateTime<Utc>,
    /// When they were changed last.
    pub updated_at: DateTime<Utc>,
}

/// A password on its way to being hashed or checked: its `Debug` says nothing, and it has no `Serialize`.
#[derive(Clone, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(format = Password, value_type = String)]
pub struct Password(pub String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(..)")
    }
}

/// A membership to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMembership {
    /// The unit.
    pub business_unit_id: BusinessUnitId,
    /// The role there; takes the place of another one.
    pub role: Role,
}

/// Somebody new.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Their e-mail, in any case.
    pub email: String,
    /// Their name, at most 255 characters.
    #[serde(default)]
    pub display_name: Option<String>,
    /// A password that they must change when they sign in. Without one they need an invitation.
    #[serde(default)]
    pub password: Option<Password>,
    /// Whether they stand above all business units; only superadmins give this.
    #[serde(default)]
    pub is_superadmin: bool,
    /// Their units; those who are not superadmins name at least one of their own.
    #[serde(default)]
    pub memberships: Vec<NewMembership>,
}

/// What to change of a person. What is absent stays.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// Their name; `null` takes it away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub display_name: Option<Option<String>>,
    /// Whether they stand above all business units.
    #[serde(default)]
    pub is_superadmin: Option<bool>,
    /// Memberships to give; one in a unit where they have another role changes it.
    #[serde(default)]
    pub add_memberships: Vec<NewMembership>,
    /// Units to take their membership in away; that they have none is no error.
    #[serde(default)]
    #[schema(value_type = Vec<uuid::Uuid>)]
    pub remove_memberships: Vec<BusinessUnitId>,
}

/// Tells `null` from an absent field.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// A one-time way in. Shown once.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct Invite {
    /// Whom it is for.
    pub user_id: UserId,
    /// Hand it to the person, and to nobody else: whoever has it sets the password.
    pub token: String,
    /// Until when it is good.
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for Invite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invite").field("user_id", &self.user_id).finish_non_exhaustive()
    }
}

/// Which people to list.
#[derive(Clone, Debug, Default)]
pub struct UserFilter {
    /// The one with this e-mail.
    pub email: Option<String>,
    /// Members of one unit.
    pub business_unit_id: Option<BusinessUnitId>,
}
