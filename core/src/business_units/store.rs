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
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

const INSERT: &str = "
    INSERT INTO business_units (id, slug, name) VALUES ($1, $2, $3)
    RETURNING id, slug, name, created_at, updated_at";

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: BusinessUnitId,
    slug: &str,
    name: &str,
) -> Result<BusinessUnitView, DbError> {
    Ok(unit(&tx.query_one(INSERT, &[&id, &slug, &name]).await?))
}

const UPDATE: &str = "
    UPDATE business_units SET slug = $2, name = $3, updated_at = plumbline_now()
    WHERE id = $1 AND archived_at IS NULL
    RETURNING id, slug, name, created_at, updated_at";

pub(super) async fn update(
    tx: &Tx<'_>,
    id: BusinessUnitId,
    slug: &str,
    name: &str,
) -> Result<Option<BusinessUnitView>, DbError> {
    Ok(tx.query_opt(UPDATE, &[&id, &slug, &name]).await?.as_ref().map(unit))
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
    SELECT id, slug, name, created_at, updated_at FROM business_units
    WHERE id = $1 AND archived_at IS NULL
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

const FIND_BY_SLUG: &str = "SELECT id FROM business_units WHERE slug = $1";

pub(super) async fn find_by_slug(query: &impl Query, slug: &str) -> Result<Option<BusinessUnitId>, DbError> {
    Ok(query.query_opt(FIND_BY_SLUG, &[&slug]).await?.map(|row| row.get("id")))
}

const LIST: &str = "
    SELECT id, slug, name, created_at, updated_at FROM business_units
    WHERE archived_at IS NULL
      AND ($1::uuid IS NULL OR id IN (SELECT business_unit_id FROM memberships WHERE user_id = $1))
      AND ($2::uuid IS NULL OR id = $2)
      AND ($3::uuid IS NULL OR id < $3)
    ORDER BY id DESC LIMIT $4";

pub(super) async fn list(
    query: &impl Query,
    sight: Sight,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<BusinessUnitView>, DbError> {
    let (member, only) = sight.params();
    Ok(query.query(LIST, &[&member, &only, &before, &limit]).await?.iter().map(unit).collect())
}
