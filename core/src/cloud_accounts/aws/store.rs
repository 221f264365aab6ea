//! SQL of AWS accounts.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{AwsFields, AwsSettings};
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{AwsAccountId, BusinessUnitId, UserId};

/// A row.
#[derive(Clone)]
pub(in crate::cloud_accounts) struct StoredAwsAccount {
    pub id: AwsAccountId,
    pub business_unit_id: BusinessUnitId,
    pub account_id: String,
    pub fields: AwsFields,
    pub keys_sealed: Option<String>,
    pub external_id: String,
    pub version: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, business_unit_id, account_id, name, description, default_region, state_bucket,
                    state_bucket_region, aws_profile_name, keys_sealed, plan_role_arn, apply_role_arn, external_id,
                    session_duration_seconds, session_policy, oidc_audience, version, created_at, updated_at
             FROM aws_accounts ",
            $rest
        )
    };
}

fn account(row: &Row) -> StoredAwsAccount {
    StoredAwsAccount {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        account_id: row.get("account_id"),
        fields: AwsFields {
            name: row.get("name"),
            description: row.get("description"),
            default_region: row.get("default_region"),
            state_bucket: row.get("state_bucket"),
            state_bucket_region: row.get("state_bucket_region"),
            aws_profile_name: row.get("aws_profile_name"),
            plan_role_arn: row.get("plan_role_arn"),
            apply_role_arn: row.get("apply_role_arn"),
            session_duration_seconds: row.get("session_duration_seconds"),
            session_policy: row.get("session_policy"),
            oidc_audience: row.get("oidc_audience"),
        },
        keys_sealed: row.get("keys_sealed"),
        external_id: row.get("external_id"),
        version: row.get("version"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

const FIND: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2)");

pub(in crate::cloud_accounts) async fn find(
    query: &impl Query,
    scope: Scope,
    id: AwsAccountId,
) -> Result<Option<StoredAwsAccount>, DbError> {
    Ok(query.query_opt(FIND, &[&id, &scope.unit()]).await?.as_ref().map(account))
}

const FIND_BY_NUMBER: &str = select!("WHERE business_unit_id = $1 AND account_id = $2");

/// The unit's account with this number. There is no way to another unit's.
pub(in crate::cloud_accounts) async fn find_by_number(
    query: &impl Query,
    unit: BusinessUnitId,
    account_id: &str,
) -> Result<Option<StoredAwsAccount>, DbError> {
    Ok(query.query_opt(FIND_BY_NUMBER, &[&unit, &account_id]).await?.as_ref().map(account))
}

// FOR UPDATE: a row that is about to refer to the account waits.
const LOCK: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) FOR UPDATE");

pub(super) async fn lock(
    tx: &Tx<'_>,
    scope: Scope,
    id: AwsAccountId,
) -> Result<Option<StoredAwsAccount>, DbError> {
    Ok(tx.query_opt(LOCK, &[&id, &scope.unit()]).await?.as_ref().map(account))
}

const LIST: &str =
    select!("WHERE ($1::uuid IS NULL OR business_unit_id = $1) AND id < $2 ORDER BY id DESC LIMIT $3");

pub(super) async fn list(
    query: &impl Query,
    scope: Scope,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<StoredAwsAccount>, DbError> {
    let before = before.unwrap_or(Uuid::max());
    Ok(query.query(LIST, &[&scope.unit(), &before, &limit]).await?.iter().map(account).collect())
}

/// What is stored of a new account beside its settings.
pub(super) struct InsertAwsAccount<'a> {
    pub id: AwsAccountId,
    pub unit: BusinessUnitId,
    pub account_id: &'a str,
    pub keys_sealed: Option<&'a str>,
    pub external_id: &'a str,
    pub created_by: Option<UserId>,
}

const INSERT: &str = "
    INSERT INTO aws_accounts
        (id, business_unit_id, account_id, keys_sealed, external_id, created_by, name, description, default_region,
         state_bucket, state_bucket_region, aws_profile_name, plan_role_arn, apply_role_arn, session_duration_seconds,
         session_policy, oidc_audience)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

pub(super) async fn insert(
    tx: &Tx<'_>,
    new: &InsertAwsAccount<'_>,
    settings: &AwsSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        INSERT,
        &[
            &new.id,
            &new.unit,
            &new.account_id,
            &new.keys_sealed,
            &new.external_id,
            &new.created_by,
            &fields.name,
            &fields.description,
            &fields.default_region,
            &fields.state_bucket,
            &fields.state_bucket_region,
            &fields.aws_profile_name,
            &fields.plan_role_arn,
            &fields.apply_role_arn,
            &fields.session_duration_seconds,
            &fields.session_policy,
            &fields.oidc_audience,
        ],
    )
    .await?;
    Ok(())
}

const UPDATE: &str = "
    UPDATE aws_accounts
    SET keys_sealed = $2, name = $3, description = $4, default_region = $5, state_bucket = $6, state_bucket_region = $7,
        aws_profile_name = $8, plan_role_arn = $9, apply_role_arn = $10, session_duration_seconds = $11,
        session_policy = $12, oidc_audience = $13, version = version + 1, updated_at = plumbline_now()
    WHERE id = $1";

/// The caller has locked the row.
pub(super) async fn update(
    tx: &Tx<'_>,
    id: AwsAccountId,
    keys_sealed: Option<&str>,
    settings: &AwsSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        UPDATE,
        &[
            &id,
            &keys_sealed,
            &fields.name,
            &fields.description,
            &fields.default_region,
            &fields.state_bucket,
            &fields.state_bucket_region,
            &fields.aws_profile_name,
            &fields.plan_role_arn,
            &fields.apply_role_arn,
            &fields.session_duration_seconds,
            &fields.session_policy,
            &fields.oidc_audience,
        ],
    )
    .await?;
    Ok(())
}

const DELETE: &str = "DELETE FROM aws_accounts WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: AwsAccountId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}
