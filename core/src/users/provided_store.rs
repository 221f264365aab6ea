//! SQL of people whom the identity provider vouches for. No password hash is read here: whoever runs these statements
//! may not.

use std::collections::BTreeMap;

use crate::access::Role;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, UserId};
use crate::oidc_logins::Identity;

/// Somebody we know.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub id: UserId,
    pub email: String,
    pub display_name: Option<String>,
    pub is_superadmin: bool,
    pub superadmin_by_group: bool,
    pub disabled: bool,
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub generation: i32,
}

impl Known {
    /// Whether they were linked to this identity.
    pub(super) fn is(&self, who: &Identity) -> bool {
        self.issuer.as_deref() == Some(&who.issuer) && self.subject.as_deref() == Some(&who.subject)
    }
}

fn known(row: &Row) -> Known {
    Known {
        id: row.get("id"),
        email: row.get("email"),
        display_name: row.get("display_name"),
        is_superadmin: row.get("is_superadmin"),
        superadmin_by_group: row.get("superadmin_by_group"),
        disabled: row.get("disabled"),
        issuer: row.get("oidc_issuer"),
        subject: row.get("oidc_subject"),
        generation: row.get("token_generation"),
    }
}

const FIND_BY_IDENTITY: &str = "
    SELECT id, email, display_name, is_superadmin, superadmin_by_group, disabled_at IS NOT NULL AS disabled,
           oidc_issuer, oidc_subject, token_generation
    FROM users WHERE oidc_issuer = $1 AND oidc_subject = $2";

pub(super) async fn find_by_identity(
    query: &impl Query,
    issuer: &str,
    subject: &str,
) -> Result<Option<Known>, DbError> {
    Ok(query.query_opt(FIND_BY_IDENTITY, &[&issuer, &subject]).await?.as_ref().map(known))
}

const FIND_BY_EMAIL: &str = "
    SELECT id, email, display_name, is_superadmin, superadmin_by_group, disabled_at IS NOT NULL AS disabled,
           oidc_issuer, oidc_subject, token_generation
    FROM users WHERE email = $1";

pub(super) async fn find_by_email(query: &impl Query, email: &str) -> Result<Option<Known>, DbError> {
    Ok(query.query_opt(FIND_BY_EMAIL, &[&email]).await?.as_ref().map(known))
}

const FIND_BY_ID: &str = "
    SELECT id, email, display_name, is_superadmin, superadmin_by_group, disabled_at IS NOT NULL AS disabled,
           oidc_issuer, oidc_subject, token_generation
    FROM users WHERE id = $1";

pub(super) async fn find_by_id(query: &impl Query, id: UserId) -> Result<Option<Known>, DbError> {
    Ok(query.query_opt(FIND_BY_ID, &[&id]).await?.as_ref().map(known))
}

const INSERT: &str = "
    INSERT INTO users (id, email, display_name, oidc_issuer, oidc_subject) VALUES ($1, $2, $3, $4, $5)";

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: UserId,
    email: &str,
    display_name: Option<&str>,
    issuer: &str,
    subject: &str,
) -> Result<(), DbError> {
    tx.execute(INSERT, &[&id, &email, &display_name, &issuer, &subject]).await?;
    Ok(())
}

const LINK: &str = "
    UPDATE users SET oidc_issuer = $2, oidc_subject = $3, updated_at = plumbline_now() WHERE id = $1";

pub(super) async fn link(tx: &Tx<'_>, id: UserId, issuer: &str, subject: &str) -> Result<(), DbError> {
    tx.execute(LINK, &[&id, &issuer, &subject]).await?;
    Ok(())
}

const UPDATE: &str = "
    UPDATE users SET email = $2, display_name = $3, is_superadmin = $4, superadmin_by_group = $5,
        updated_at = plumbline_now()
    WHERE id = $1";

pub(super) async fn update(
    tx: &Tx<'_>,
    id: UserId,
    email: &str,
    display_name: Option<&str>,
    is_superadmin: bool,
    by_group: bool,
) -> Result<(), DbError> {
    tx.execute(UPDATE, &[&id, &email, &display_name, &is_superadmin, &by_group]).await?;
    Ok(())
}

/// A unit that groups are mapped to.
#[derive(Clone, Debug)]
pub(super) struct MappedUnit {
    pub id: BusinessUnitId,
    pub slug: String,
    pub archived: bool,
}

const FIND_UNITS: &str = "
    SELECT id, slug, archived_at IS NOT NULL AS archived FROM business_units WHERE slug = ANY ($1) ORDER BY id";

/// Those of the units that exist.
pub(super) async fn find_units(query: &impl Query, slugs: &[String]) -> Result<Vec<MappedUnit>, DbError> {
    let rows = query.query(FIND_UNITS, &[&slugs.to_vec()]).await?;
    let unit =
        |row: &Row| MappedUnit { id: row.get("id"), slug: row.get("slug"), archived: row.get("archived") };
    Ok(rows.iter().map(unit).collect())
}

/// A membership, and whether a person gave it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapped {
    pub role: Role,
    pub is_manual: bool,
}

const MEMBERSHIPS: &str = "
    SELECT business_unit_id, role, source = 'manual' AS is_manual FROM memberships WHERE user_id = $1";

pub(super) async fn memberships(
    query: &impl Query,
    user: UserId,
) -> Result<BTreeMap<BusinessUnitId, Mapped>, DbError> {
    let rows = query.query(MEMBERSHIPS, &[&user]).await?;
    let read = |row: &Row| {
        let role = Role::parse(row.get("role")).ok_or_else(|| DbError::Row("an unknown role".into()))?;
        Ok((row.get("business_unit_id"), Mapped { role, is_manual: row.get("is_manual") }))
    };
    rows.iter().map(read).collect()
}

// A membership that a person gave is never reached here: the caller leaves it out, and this says so once more.
const GIVE: &str = "
    INSERT INTO memberships AS known (user_id, business_unit_id, role, source) VALUES ($1, $2, $3, 'oidc')
    ON CONFLICT (user_id, business_unit_id) DO UPDATE SET role = excluded.role WHERE known.source = 'oidc'";

pub(super) async fn give(tx: &Tx<'_>, user: UserId, unit: BusinessUnitId, role: Role) -> Result<(), DbError> {
    tx.execute(GIVE, &[&user, &unit, &role.as_str()]).await?;
    Ok(())
}

const TAKE: &str = "
    DELETE FROM memberships WHERE user_id = $1 AND business_unit_id = $2 AND source = 'oidc'";

pub(super) async fn take(tx: &Tx<'_>, user: UserId, unit: BusinessUnitId) -> Result<(), DbError> {
    tx.execute(TAKE, &[&user, &unit]).await?;
    Ok(())
}
