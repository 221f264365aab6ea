//! SQL of people and their memberships.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::model::{MembershipView, UserView};
use crate::access::Role;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, UserId};

const EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM users)";
// Bootstraps wait for each other; readers do not wait for them.
const LOCK_TABLE: &str = "LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE";

/// Whether there is any user; nobody else can add one until the transaction ends.
pub(super) async fn lock_and_look(tx: &Tx<'_>) -> Result<bool, DbError> {
    tx.execute(LOCK_TABLE, &[]).await?;
    Ok(tx.query_one(EXISTS, &[]).await?.get(0))
}

/// A row to insert.
pub(super) struct InsertUser<'a> {
    pub id: UserId,
    pub email: &'a str,
    pub display_name: Option<&'a str>,
    pub password_hash: Option<&'a str>,
    /// Who gave the password, which must then be changed.
    pub password_set_by: Option<UserId>,
    pub is_superadmin: bool,
}

const INSERT: &str = "
    INSERT INTO users (id, email, display_name, password_hash, password_set_by, must_change_password, is_superadmin)
    VALUES ($1, $2, $3, $4, $5, $5 IS NOT NULL, $6)";

pub(super) async fn insert(tx: &Tx<'_>, user: &InsertUser<'_>) -> Result<(), DbError> {
    tx.execute(
        INSERT,
        &[
            &user.id,
            &user.email,
            &user.display_name,
            &user.password_hash,
            &user.password_set_by,
            &user.is_superadmin,
        ],
    )
    .await?;
    Ok(())
}

/// A locked user.
#[derive(Clone, Debug)]
pub(super) struct StoredUser {
    pub id: UserId,
    pub email: String,
    pub display_name: Option<String>,
    pub is_superadmin: bool,
    pub disabled_at: Option<DateTime<Utc>>,
    pub can_sign_in: bool,
    pub must_change_password: bool,
    pub password_set_by: Option<UserId>,
}

fn stored(row: &Row) -> StoredUser {
    StoredUser {
        id: row.get("id"),
        email: row.get("email"),
        display_name: row.get("display_name"),
        is_superadmin: row.get("is_superadmin"),
        disabled_at: row.get("disabled_at"),
        can_sign_in: row.get("can_sign_in"),
        must_change_password: row.get("must_change_password"),
        password_set_by: row.get("password_set_by"),
    }
}

// By id, so that no two of these wait for each other in a circle. Two demotions of two superadmins meet here: the second
// one finds that the first is no superadmin any more. Whoever opens a session of one of them waits.
const LOCK: &str = "
    SELECT id, email, display_name, is_superadmin, disabled_at, must_change_password, password_set_by,
           disabled_at IS NULL AND has_password AS can_sign_in
    FROM users WHERE id = $1 OR ($2 AND is_superadmin) ORDER BY id FOR NO KEY UPDATE";

/// The user, and every superadmin if that is asked for, locked until the transaction ends.
pub(super) async fn lock(
    tx: &Tx<'_>,
    id: UserId,
    with_superadmins: bool,
) -> Result<Vec<StoredUser>, DbError> {
    Ok(tx.query(LOCK, &[&id, &with_superadmins]).await?.iter().map(stored).collect())
}

const UPDATE: &str = "
    UPDATE users SET display_name = $2, is_superadmin = $3, superadmin_by_group = superadmin_by_group AND $3,
        updated_at = plumbline_now()
    WHERE id = $1";

pub(super) async fn update(
    tx: &Tx<'_>,
    id: UserId,
    display_name: Option<&str>,
    is_superadmin: bool,
) -> Result<(), DbError> {
    tx.execute(UPDATE, &[&id, &display_name, &is_superadmin]).await?;
    Ok(())
}

const SET_DISABLED: &str = "
    UPDATE users SET disabled_at = CASE WHEN $2 THEN plumbline_now() END, updated_at = plumbline_now() WHERE id = $1";

pub(super) async fn set_disabled(tx: &Tx<'_>, id: UserId, disabled: bool) -> Result<(), DbError> {
    tx.execute(SET_DISABLED, &[&id, &disabled]).await?;
    Ok(())
}

const DELETE: &str = "DELETE FROM users WHERE id = $1";

/// Removes a user with memberships, sessions and invitation. What they did keeps their id, which points nowhere.
pub(super) async fn delete(tx: &Tx<'_>, id: UserId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}

const SET_PASSWORD: &str = "
    UPDATE users SET password_hash = $2, password_set_by = $3, must_change_password = $3 IS NOT NULL,
        updated_at = plumbline_now()
    WHERE id = $1";

/// Stores a password. One that somebody else set must be changed.
pub(super) async fn set_password(
    tx: &Tx<'_>,
    id: UserId,
    hash: &str,
    set_by: Option<UserId>,
) -> Result<(), DbError> {
    tx.execute(SET_PASSWORD, &[&id, &hash, &set_by]).await?;
    Ok(())
}

const REPLACE_PASSWORD: &str = "
    UPDATE users SET password_hash = $3, password_set_by = NULL, must_change_password = false,
        updated_at = plumbline_now()
    WHERE id = $1 AND password_hash = $2";

/// Replaces the hash that was looked at. `false` if it is another one by now.
pub(super) async fn replace_password(
    tx: &Tx<'_>,
    id: UserId,
    old_hash: &str,
    new_hash: &str,
) -> Result<bool, DbError> {
    Ok(tx.execute(REPLACE_PASSWORD, &[&id, &old_hash, &new_hash]).await? == 1)
}

const RENEW_HASH: &str = "UPDATE users SET password_hash = $3 WHERE id = $1 AND password_hash = $2";

/// Replaces the hash of a password by another one of the same password.
pub(super) async fn renew_hash(
    query: &impl Query,
    id: UserId,
    old_hash: &str,
    new_hash: &str,
) -> Result<(), DbError> {
    query.execute(RENEW_HASH, &[&id, &old_hash, &new_hash]).await?;
    Ok(())
}

const FIND_STANDING: &str = "SELECT is_superadmin FROM users WHERE id = $1 AND disabled_at IS NULL";

/// Whether an enabled user is superadmin; `None` if there is no such user.
pub(super) async fn find_standing(query: &impl Query, id: UserId) -> Result<Option<bool>, DbError> {
    Ok(query.query_opt(FIND_STANDING, &[&id]).await?.map(|row| row.get(0)))
}

const PASSWORD_HASH: &str = "SELECT password_hash FROM users WHERE id = $1";

pub(super) async fn find_password_hash(query: &impl Query, id: UserId) -> Result<Option<String>, DbError> {
    Ok(query.query_opt(PASSWORD_HASH, &[&id]).await?.and_then(|row| row.get(0)))
}

const ABOUT_ME: &str = "SELECT display_name, must_change_password FROM users WHERE id = $1";

/// Name, and whether the password must be changed.
pub(super) async fn find_about_me(
    query: &impl Query,
    id: UserId,
) -> Result<Option<(Option<String>, bool)>, DbError> {
    let row = query.query_opt(ABOUT_ME, &[&id]).await?;
    Ok(row.map(|row| (row.get("display_name"), row.get("must_change_password"))))
}

const ADD_MEMBERSHIP: &str = "
    INSERT INTO memberships (user_id, business_unit_id, role) VALUES ($1, $2, $3)
    ON CONFLICT (user_id, business_unit_id) DO UPDATE SET role = excluded.role, source = 'manual'";

pub(super) async fn add_membership(
    tx: &Tx<'_>,
    user: UserId,
    unit: BusinessUnitId,
    role: Role,
) -> Result<(), DbError> {
    tx.execute(ADD_MEMBERSHIP, &[&user, &unit, &role.as_str()]).await?;
    Ok(())
}

const REMOVE_MEMBERSHIP: &str = "DELETE FROM memberships WHERE user_id = $1 AND business_unit_id = $2";

pub(super) async fn remove_membership(
    tx: &Tx<'_>,
    user: UserId,
    unit: BusinessUnitId,
) -> Result<(), DbError> {
    tx.execute(REMOVE_MEMBERSHIP, &[&user, &unit]).await?;
    Ok(())
}

const GIVEN_BY_GROUPS: &str =
    "SELECT business_unit_id FROM memberships WHERE user_id = $1 AND source = 'oidc'";

/// The units whose membership a person has by a group.
pub(super) async fn given_by_groups(
    query: &impl Query,
    user: UserId,
) -> Result<Vec<BusinessUnitId>, DbError> {
    let rows = query.query(GIVEN_BY_GROUPS, &[&user]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

const ROLES: &str =
    "SELECT business_unit_id, role FROM memberships WHERE user_id = $1 ORDER BY business_unit_id";

/// A person's role in each of their units, archived ones included, ordered by the unit's id.
pub(super) async fn roles(query: &impl Query, user: UserId) -> Result<Vec<(BusinessUnitId, Role)>, DbError> {
    let rows = query.query(ROLES, &[&user]).await?;
    rows.iter().map(|row| Ok((row.get("business_unit_id"), role(row)?))).collect()
}

const MEMBERSHIPS: &str = "
    SELECT unit.id, unit.slug, unit.name, memberships.role, memberships.source
    FROM memberships JOIN business_units unit ON unit.id = memberships.business_unit_id
    WHERE memberships.user_id = $1 AND unit.archived_at IS NULL
    ORDER BY unit.slug";

pub(super) async fn list_memberships(
    query: &impl Query,
    user: UserId,
) -> Result<Vec<MembershipView>, DbError> {
    query.query(MEMBERSHIPS, &[&user]).await?.iter().map(membership).collect()
}

/// Which people to look at.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// Only members of these; `None` is everybody.
    pub units: Option<Vec<BusinessUnitId>>,
    /// Only this one.
    pub id: Option<UserId>,
    /// Only who has this e-mail.
    pub email: Option<String>,
    /// Only those after this one.
    pub before: Option<Uuid>,
    /// Rows at most.
    pub limit: i64,
}

const LIST: &str = "
    SELECT u.id, u.email, u.display_name, u.is_superadmin, u.disabled_at, u.must_change_password,
           u.has_password, u.oidc_subject, invites.expires_at AS invite_expires_at, u.created_at,
           u.updated_at
    FROM users u
    LEFT JOIN invites ON invites.user_id = u.id AND invites.expires_at > (SELECT plumbline_now())
    WHERE ($1 OR EXISTS (SELECT 1 FROM memberships m WHERE m.user_id = u.id AND m.business_unit_id = ANY ($2)))
      AND ($3::uuid IS NULL OR u.id = $3)
      AND ($4::text IS NULL OR u.email = $4)
      AND ($5::uuid IS NULL OR u.id < $5)
    ORDER BY u.id DESC LIMIT $6";

// Of every person of a page at once, and only in units that the caller sees.
const LIST_MEMBERSHIPS: &str = "
    SELECT memberships.user_id, unit.id, unit.slug, unit.name, memberships.role, memberships.source
    FROM memberships JOIN business_units unit ON unit.id = memberships.business_unit_id
    WHERE memberships.user_id = ANY ($1) AND ($2 OR memberships.business_unit_id = ANY ($3))
    ORDER BY unit.slug";

/// People, newest first. `seen` are the only units of theirs that are shown; `None` shows all.
pub(super) async fn list(
    query: &impl Query,
    selection: &Selection,
    seen: Option<&[BusinessUnitId]>,
) -> Result<Vec<UserView>, DbError> {
    let Selection { units, id, email, before, limit } = selection;
    let everybody = units.is_none();
    let units = units.clone().unwrap_or_default();
    let rows = query.query(LIST, &[&everybody, &units, id, email, before, limit]).await?;
    let mut users: Vec<UserView> = rows.iter().map(user).collect();
    let ids: Vec<UserId> = users.iter().map(|user| user.id).collect();
    let seen_units = seen.map(<[_]>::to_vec).unwrap_or_default();
    for row in query.query(LIST_MEMBERSHIPS, &[&ids, &seen.is_none(), &seen_units]).await? {
        let whose: UserId = row.get("user_id");
        if let Some(user) = users.iter_mut().find(|user| user.id == whose) {
            user.memberships.push(membership(&row)?);
        }
    }
    Ok(users)
}

fn user(row: &Row) -> UserView {
    let external_id: Option<String> = row.get("oidc_subject");
    UserView {
        id: row.get("id"),
        email: row.get("email"),
        display_name: row.get("display_name"),
        is_superadmin: row.get("is_superadmin"),
        disabled_at: row.get("disabled_at"),
        has_password: row.get("has_password"),
        auth_provider: if external_id.is_some() { "oidc" } else { "local" },
        external_id,
        must_change_password: row.get("must_change_password"),
        invite_expires_at: row.get("invite_expires_at"),
        memberships: Vec::new(),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

fn membership(row: &Row) -> Result<MembershipView, DbError> {
    Ok(MembershipView {
        business_unit_id: row.get("id"),
        slug: row.get("slug"),
        name: row.get("name"),
        role: role(row)?,
        source: if row.get::<_, &str>("source") == "oidc" { "oidc" } else { "manual" },
    })
}

fn role(row: &Row) -> Result<Role, DbError> {
    Role::parse(row.get("role")).ok_or_else(|| DbError::Row("an unknown role".into()))
}
