//! SQL of people.

use super::model::MembershipView;
use crate::access::Role;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, UserId};

const COUNT_LOCKED: &str = "SELECT EXISTS (SELECT 1 FROM users)";
// Bootstraps wait for each other; readers do not wait for them.
const LOCK: &str = "LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE";

/// Whether there is any user; nobody else can add one until the transaction ends.
pub(super) async fn lock_and_look(tx: &Tx<'_>) -> Result<bool, DbError> {
    tx.execute(LOCK, &[]).await?;
    Ok(tx.query_one(COUNT_LOCKED, &[]).await?.get(0))
}

const INSERT: &str = "
    INSERT INTO users (id, email, display_name, password_hash, is_superadmin) VALUES ($1, $2, $3, $4, $5)";

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: UserId,
    email: &str,
    display_name: Option<&str>,
    password_hash: &str,
    is_superadmin: bool,
) -> Result<(), DbError> {
    tx.execute(INSERT, &[&id, &email, &display_name, &password_hash, &is_superadmin]).await?;
    Ok(())
}

const ADD_MEMBERSHIP: &str = "
    INSERT INTO memberships (user_id, business_unit_id, role) VALUES ($1, $2, $3)
    ON CONFLICT (user_id, business_unit_id) DO UPDATE SET role = excluded.role";

pub(super) async fn add_membership(
    tx: &Tx<'_>,
    user: UserId,
    unit: BusinessUnitId,
    role: Role,
) -> Result<(), DbError> {
    tx.execute(ADD_MEMBERSHIP, &[&user, &unit, &role.as_str()]).await?;
    Ok(())
}

const DISPLAY_NAME: &str = "SELECT display_name FROM users WHERE id = $1";

pub(super) async fn find_display_name(query: &impl Query, id: UserId) -> Result<Option<String>, DbError> {
    Ok(query.query_opt(DISPLAY_NAME, &[&id]).await?.and_then(|row| row.get(0)))
}

const MEMBERSHIPS: &str = "
    SELECT unit.id, unit.slug, unit.name, memberships.role
    FROM memberships JOIN business_units unit ON unit.id = memberships.business_unit_id
    WHERE memberships.user_id = $1 AND unit.archived_at IS NULL
    ORDER BY unit.slug";

pub(super) async fn list_memberships(
    query: &impl Query,
    user: UserId,
) -> Result<Vec<MembershipView>, DbError> {
    query.query(MEMBERSHIPS, &[&user]).await?.iter().map(membership).collect()
}

fn membership(row: &Row) -> Result<MembershipView, DbError> {
    Ok(MembershipView {
        business_unit_id: row.get("id"),
        slug: row.get("slug"),
        name: row.get("name"),
        role: Role::parse(row.get("role")).ok_or_else(|| DbError::Row("an unknown role".into()))?,
    })
}
