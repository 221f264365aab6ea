//! SQL of business units.

use uuid::Uuid;

use super::model::BusinessUnitView;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, UserId};

fn unit(row: &Row) -> BusinessUnitView {
    BusinessUnitView {
        id: row.get("id"),
        slug: row.get("slug"),
        name: row.get("name"),
        archived_at: row.get("archived_at"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

const INSERT: &str = "
    INSERT INTO business_units (id, slug, name) VALUES ($1, $2, $3)
    RETURNING id, slug, name, archived_at, created_at, updated_at";

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: BusinessUnitId,
    slug: &str,
    name: &str,
) -> Result<BusinessUnitView, DbError> {
    Ok(unit(&tx.query_one(INSERT, &[&id, &slug, &name]).await?))
}

const LOCK: &str = "
    SELECT id, slug, name, archived_at, created_at, updated_at FROM business_units WHERE id = $1 FOR NO KEY UPDATE";

pub(super) async fn lock(tx: &Tx<'_>, id: BusinessUnitId) -> Result<Option<BusinessUnitView>, DbError> {
    Ok(tx.query_opt(LOCK, &[&id]).await?.as_ref().map(unit))
}

const RENAME: &str = "
    UPDATE business_units SET name = $2, updated_at = plumbline_now() WHERE id = $1
    RETURNING id, slug, name, archived_at, created_at, updated_at";

pub(super) async fn rename(tx: &Tx<'_>, id: BusinessUnitId, name: &str) -> Result<BusinessUnitView, DbError> {
    Ok(unit(&tx.query_one(RENAME, &[&id, &name]).await?))
}

const SET_ARCHIVED: &str = "
    UPDATE business_units SET archived_at = CASE WHEN $2 THEN plumbline_now() END, updated_at = plumbline_now()
    WHERE id = $1
    RETURNING id, slug, name, archived_at, created_at, updated_at";

pub(super) async fn set_archived(
    tx: &Tx<'_>,
    id: BusinessUnitId,
    archived: bool,
) -> Result<BusinessUnitView, DbError> {
    Ok(unit(&tx.query_one(SET_ARCHIVED, &[&id, &archived]).await?))
}

const FIND_ARCHIVED: &str = "
    SELECT id, archived_at IS NOT NULL AS archived FROM business_units WHERE id = ANY ($1)";

/// Those of the units that exist, and whether they are archived.
pub(super) async fn find_archived(
    query: &impl Query,
    ids: &[BusinessUnitId],
) -> Result<Vec<(BusinessUnitId, bool)>, DbError> {
    let rows = query.query(FIND_ARCHIVED, &[&ids.to_vec()]).await?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("archived"))).collect())
}

/// Which units somebody sees.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sight {
    /// Every unit.
    All,
    /// Those where they are a member.
    Member(UserId),
    /// One.
    Unit(BusinessUnitId),
}

impl Sight {
    /// As parameters: the member, the unit; NULL does not restrict.
    fn params(self) -> (Option<UserId>, Option<BusinessUnitId>) {
        match self {
            Self::All => (None, None),
            Self::Member(user) => (Some(user), None),
            Self::Unit(unit) => (None, Some(unit)),
        }
    }
}

const GET: &str = "
    SELECT id, slug, name, archived_at, created_at, updated_at FROM business_units
    WHERE id = $1
      AND ($2::uuid IS NULL OR id IN (SELECT business_unit_id FROM memberships WHERE user_id = $2))
      AND ($3::uuid IS NULL OR id = $3)";

pub(super) async fn find(
    query: &impl Query,
    id: BusinessUnitId,
    sight: Sight,
) -> Result<Option<BusinessUnitView>, DbError> {
    let (member, only) = sight.params();
    Ok(query.query_opt(GET, &[&id, &member, &only]).await?.as_ref().map(unit))
}

const FIND_SEEN: &str = "
    SELECT id FROM business_units
    WHERE slug = $1 AND archived_at IS NULL
      AND ($2::uuid IS NULL OR id IN (SELECT business_unit_id FROM memberships WHERE user_id = $2))
      AND ($3::uuid IS NULL OR id = $3)";

/// The unit in use with this slug that somebody sees.
pub(super) async fn find_seen(
    query: &impl Query,
    slug: &str,
    sight: Sight,
) -> Result<Option<BusinessUnitId>, DbError> {
    let (member, only) = sight.params();
    Ok(query.query_opt(FIND_SEEN, &[&slug, &member, &only]).await?.map(|row| row.get("id")))
}

const FIND_BY_SLUG: &str = "SELECT id FROM business_units WHERE slug = $1";

pub(super) async fn find_by_slug(query: &impl Query, slug: &str) -> Result<Option<BusinessUnitId>, DbError> {
    Ok(query.query_opt(FIND_BY_SLUG, &[&slug]).await?.map(|row| row.get("id")))
}

const LIST: &str = "
    SELECT id, slug, name, archived_at, created_at, updated_at FROM business_units
    WHERE (archived_at IS NOT NULL) = $1
      AND ($2::uuid IS NULL OR id IN (SELECT business_unit_id FROM memberships WHERE user_id = $2))
      AND ($3::uuid IS NULL OR id = $3)
      AND ($4::uuid IS NULL OR id < $4)
    ORDER BY id DESC LIMIT $5";

pub(super) async fn list(
    query: &impl Query,
    archived: bool,
    sight: Sight,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<BusinessUnitView>, DbError> {
    let (member, only) = sight.params();
    let rows = query.query(LIST, &[&archived, &member, &only, &before, &limit]).await?;
    Ok(rows.iter().map(unit).collect())
}
