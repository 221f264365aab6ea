//! SQL of presence.

use std::time::Duration;

use super::model::PresenceView;
use crate::db::{DbError, Query, Row};
use crate::ids::{BusinessUnitId, UserId};
use crate::page::PageRequest;

const PUT: &str = "
    INSERT INTO user_presence (user_id, viewed_unit_id) VALUES ($1, $2)
    ON CONFLICT (user_id) DO UPDATE SET viewed_unit_id = excluded.viewed_unit_id, last_seen_at = plumbline_now()";

pub(super) async fn put(
    query: &impl Query,
    user: UserId,
    unit: Option<BusinessUnitId>,
) -> Result<(), DbError> {
    query.execute(PUT, &[&user, &unit]).await?;
    Ok(())
}

const LIST: &str = "
    SELECT users.id, users.email, users.display_name, unit.slug, presence.last_seen_at
    FROM user_presence presence
    JOIN users ON users.id = presence.user_id
    LEFT JOIN business_units unit ON unit.id = presence.viewed_unit_id
    WHERE presence.last_seen_at > (SELECT plumbline_now()) - $1 * interval '1 second' AND users.disabled_at IS NULL
      AND ($2::uuid IS NULL
           OR presence.viewed_unit_id IN (SELECT business_unit_id FROM memberships WHERE user_id = $2))
      AND ($3::uuid IS NULL OR users.id < $3)
    ORDER BY users.id DESC LIMIT $4";

/// Who is there, as far as a member sees it; without one, everybody.
pub(super) async fn list(
    query: &impl Query,
    seen_for: Duration,
    member: Option<UserId>,
    page: PageRequest,
) -> Result<Vec<PresenceView>, DbError> {
    let rows = query.query(LIST, &[&seconds(seen_for), &member, &page.cursor, &(page.limit + 1)]).await?;
    let view = |row: &Row| PresenceView {
        user_id: row.get("id"),
        email: row.get("email"),
        display_name: row.get("display_name"),
        bu_slug: row.get("slug"),
        last_seen_at: row.get("last_seen_at"),
    };
    Ok(rows.iter().map(view).collect())
}

const FORGET: &str = "
    DELETE FROM user_presence WHERE last_seen_at < (SELECT plumbline_now()) - $1 * interval '1 second'";

pub(super) async fn forget(query: &impl Query, kept_for: Duration) -> Result<u64, DbError> {
    query.execute(FORGET, &[&seconds(kept_for)]).await
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
