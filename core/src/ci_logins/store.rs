//! SQL of trust rules and of issuers' keys.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::model::{NewTrustRule, TrustRuleView};
use crate::access::Capability;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, TrustRuleId, UserId};

macro_rules! select {
    () => {
        "SELECT rule.*,
                CASE WHEN rule.confined
                     THEN ARRAY(SELECT workspace_id FROM ci_trust_rule_workspaces
                                WHERE trust_rule_id = rule.id ORDER BY workspace_id) END AS workspaces
         FROM ci_trust_rules rule "
    };
}

fn view(row: &Row) -> Result<TrustRuleView, DbError> {
    // No claims, or another capability, would be another rule.
    let claims = serde_json::from_value::<BTreeMap<_, _>>(row.get("claims"));
    let claims = claims.map_err(|_| DbError::Row("the claims of a trust rule are not texts".into()))?;
    let capability = Capability::parse(row.get("capability"));
    let capability = capability.ok_or_else(|| DbError::Row("a trust rule has no known capability".into()))?;
    Ok(TrustRuleView {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        name: row.get("name"),
        issuer: row.get("issuer"),
        audience: row.get("audience"),
        subject: row.get("subject"),
        claims,
        capability,
        workspace_ids: row.get("workspaces"),
        key_minutes: row.get("key_minutes"),
        created_by: row.get("created_by"),
        created_at: row.get("created_at"),
    })
}

const INSERT: &str = "
    INSERT INTO ci_trust_rules (id, business_unit_id, name, issuer, audience, subject, claims, capability, confined,
                                key_minutes, created_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: TrustRuleId,
    unit: BusinessUnitId,
    new: &NewTrustRule,
    made_by: Option<UserId>,
) -> Result<(), DbError> {
    let claims = serde_json::json!(new.claims);
    tx.execute(
        INSERT,
        &[
            &id,
            &unit,
            &new.name,
            &new.issuer,
            &new.audience,
            &new.subject,
            &claims,
            &new.capability.as_str(),
            &new.workspace_ids.is_some(),
            &new.key_minutes,
            &made_by,
        ],
    )
    .await?;
    Ok(())
}

// Only what is the unit's own; the caller compares how many there were.
const CONFINE: &str = "
    INSERT INTO ci_trust_rule_workspaces (business_unit_id, trust_rule_id, workspace_id)
    SELECT $1, $2, id FROM workspaces WHERE business_unit_id = $1 AND id = ANY ($3)";

pub(super) async fn confine(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    rule: TrustRuleId,
    workspaces: Vec<Uuid>,
) -> Result<u64, DbError> {
    tx.execute(CONFINE, &[&unit, &rule, &workspaces]).await
}

const FIND: &str =
    concat!(select!(), "WHERE rule.id = $2 AND ($1::uuid IS NULL OR rule.business_unit_id = $1)");

pub(super) async fn find(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: TrustRuleId,
) -> Result<Option<TrustRuleView>, DbError> {
    query.query_opt(FIND, &[&unit, &id]).await?.as_ref().map(view).transpose()
}

const LIST: &str = concat!(
    select!(),
    "WHERE rule.business_unit_id = $1 AND ($2::uuid IS NULL OR rule.id < $2) ORDER BY rule.id DESC LIMIT $3"
);

pub(super) async fn list(
    query: &impl Query,
    unit: BusinessUnitId,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<TrustRuleView>, DbError> {
    query.query(LIST, &[&unit, &before, &limit]).await?.iter().map(view).collect()
}

const DELETE: &str = "DELETE FROM ci_trust_rules WHERE id = $2 AND business_unit_id = $1";

/// Removes a rule with the keys that it gave. Whether it was there.
pub(super) async fn delete(tx: &Tx<'_>, unit: BusinessUnitId, id: TrustRuleId) -> Result<bool, DbError> {
    Ok(tx.execute(DELETE, &[&unit, &id]).await? == 1)
}

// The unit is locked: two at once would both be the last one.
const COUNT: &str = "
    SELECT (SELECT count(*) FROM ci_trust_rules WHERE business_unit_id = unit.id)
    FROM business_units unit WHERE unit.id = $1 FOR UPDATE";

/// How many rules a unit has.
pub(super) async fn count(tx: &Tx<'_>, unit: BusinessUnitId) -> Result<i64, DbError> {
    Ok(tx.query_one(COUNT, &[&unit]).await?.get(0))
}

/// The rules of an issuer that are meant: those of one unit, or one.
pub(super) async fn rules_of_issuer(
    query: &impl Query,
    issuer: &str,
    slug: Option<&str>,
    id: Option<TrustRuleId>,
) -> Result<Vec<TrustRuleView>, DbError> {
    let rows = query.query(include_str!("sql/rules_of_issuer.sql"), &[&issuer, &slug, &id]).await?;
    rows.iter().map(view).collect()
}

/// What is known of an issuer.
pub(super) struct Issuer {
    pub jwks: Option<Value>,
    pub fetched_at: Option<DateTime<Utc>>,
    /// When the unit asked for them last.
    pub asked_at: Option<DateTime<Utc>>,
    /// The database's clock.
    pub at: DateTime<Utc>,
}

// A row also for an issuer of which nothing is known yet: the clock is needed in any case.
const ISSUER: &str = "
    SELECT known.jwks, known.fetched_at, wish.asked_at, clock.at
    FROM (SELECT plumbline_now() AS at) AS clock
    LEFT JOIN ci_issuers known ON known.issuer = $1
    LEFT JOIN ci_issuer_wishes wish ON wish.issuer = $1 AND wish.business_unit_id = $2";

/// What is known of an issuer, and what the unit has done about it.
pub(super) async fn issuer(
    query: &impl Query,
    issuer: &str,
    unit: BusinessUnitId,
) -> Result<Issuer, DbError> {
    let row = query.query_one(ISSUER, &[&issuer, &unit]).await?;
    Ok(Issuer {
        jwks: row.get("jwks"),
        fetched_at: row.get("fetched_at"),
        asked_at: row.get("asked_at"),
        at: row.get("at"),
    })
}

const ADD_ISSUER: &str = "INSERT INTO ci_issuers (issuer) VALUES ($1) ON CONFLICT DO NOTHING";
const ASKED: &str = "
    INSERT INTO ci_issuer_wishes (business_unit_id, issuer, asked_at) VALUES ($1, $2, plumbline_now())
    ON CONFLICT (business_unit_id, issuer) DO UPDATE SET asked_at = plumbline_now()";

/// Notes that a unit asked for the keys of an issuer.
pub(super) async fn asked(tx: &Tx<'_>, unit: BusinessUnitId, issuer: &str) -> Result<(), DbError> {
    tx.execute(ADD_ISSUER, &[&issuer]).await?;
    tx.execute(ASKED, &[&unit, &issuer]).await?;
    Ok(())
}

const FETCHED: &str = "
    UPDATE ci_issuers SET jwks = $2, fetched_at = plumbline_now() WHERE issuer = $1";

/// Keeps the keys of an issuer.
pub(super) async fn fetched(query: &impl Query, issuer: &str, jwks: &Value) -> Result<(), DbError> {
    query.execute(FETCHED, &[&issuer, jwks]).await?;
    Ok(())
}
