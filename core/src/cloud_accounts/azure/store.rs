//! SQL of Azure subscriptions.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{AzureFields, AzureSettings};
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{AzureSubscriptionId, BusinessUnitId, UserId};

/// A row.
#[derive(Clone)]
pub(in crate::cloud_accounts) struct StoredAzureSubscription {
    pub id: AzureSubscriptionId,
    pub business_unit_id: BusinessUnitId,
    pub subscription_id: String,
    pub fields: AzureFields,
    pub client_secret_sealed: Option<String>,
    pub version: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, business_unit_id, subscription_id, tenant_id, client_id, name, description, default_location,
                    state_storage_account, state_container, oidc_audience, client_secret_sealed, version, created_at,
                    updated_at
             FROM azure_subscriptions ",
            $rest
        )
    };
}

fn subscription(row: &Row) -> StoredAzureSubscription {
    StoredAzureSubscription {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        subscription_id: row.get("subscription_id"),
        fields: AzureFields {
            tenant_id: row.get("tenant_id"),
            client_id: row.get("client_id"),
            name: row.get("name"),
            description: row.get("description"),
            default_location: row.get("default_location"),
            state_storage_account: row.get("state_storage_account"),
            state_container: row.get("state_container"),
            oidc_audience: row.get("oidc_audience"),
        },
        client_secret_sealed: row.get("client_secret_sealed"),
        version: row.get("version"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

const FIND: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2)");

pub(in crate::cloud_accounts) async fn find(
    query: &impl Query,
    scope: Scope,
    id: AzureSubscriptionId,
) -> Result<Option<StoredAzureSubscription>, DbError> {
    Ok(query.query_opt(FIND, &[&id, &scope.unit()]).await?.as_ref().map(subscription))
}

const FIND_BY_AZURE_ID: &str = select!("WHERE business_unit_id = $1 AND subscription_id = $2");

/// The unit's subscription with this id at Azure. There is no way to another unit's.
pub(in crate::cloud_accounts) async fn find_by_azure_id(
    query: &impl Query,
    unit: BusinessUnitId,
    subscription_id: &str,
) -> Result<Option<StoredAzureSubscription>, DbError> {
    Ok(query.query_opt(FIND_BY_AZURE_ID, &[&unit, &subscription_id]).await?.as_ref().map(subscription))
}

// FOR UPDATE: a row that is about to refer to the subscription waits.
const LOCK: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) FOR UPDATE");

pub(super) async fn lock(
    tx: &Tx<'_>,
    scope: Scope,
    id: AzureSubscriptionId,
) -> Result<Option<StoredAzureSubscription>, DbError> {
    Ok(tx.query_opt(LOCK, &[&id, &scope.unit()]).await?.as_ref().map(subscription))
}

const LIST: &str =
    select!("WHERE ($1::uuid IS NULL OR business_unit_id = $1) AND id < $2 ORDER BY id DESC LIMIT $3");

pub(super) async fn list(
    query: &impl Query,
    scope: Scope,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<StoredAzureSubscription>, DbError> {
    let before = before.unwrap_or(Uuid::max());
    Ok(query.query(LIST, &[&scope.unit(), &before, &limit]).await?.iter().map(subscription).collect())
}

/// What is stored of a new subscription beside its settings.
pub(super) struct InsertAzureSubscription<'a> {
    pub id: AzureSubscriptionId,
    pub unit: BusinessUnitId,
    pub subscription_id: &'a str,
    pub client_secret_sealed: Option<&'a str>,
    pub created_by: Option<UserId>,
}

const INSERT: &str = "
    INSERT INTO azure_subscriptions
        (id, business_unit_id, subscription_id, client_secret_sealed, created_by, tenant_id, client_id, name,
         description, default_location, state_storage_account, state_container, oidc_audience)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

pub(super) async fn insert(
    tx: &Tx<'_>,
    new: &InsertAzureSubscription<'_>,
    settings: &AzureSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        INSERT,
        &[
            &new.id,
            &new.unit,
            &new.subscription_id,
            &new.client_secret_sealed,
            &new.created_by,
            &fields.tenant_id,
            &fields.client_id,
            &fields.name,
            &fields.description,
            &fields.default_location,
            &fields.state_storage_account,
            &fields.state_container,
            &fields.oidc_audience,
        ],
    )
    .await?;
    Ok(())
}

const UPDATE: &str = "
    UPDATE azure_subscriptions
    SET client_secret_sealed = $2, tenant_id = $3, client_id = $4, name = $5, description = $6, default_location = $7,
        state_storage_account = $8, state_container = $9, oidc_audience = $10, version = version + 1,
        updated_at = plumbline_now()
    WHERE id = $1";

/// The caller has locked the row.
pub(super) async fn update(
    tx: &Tx<'_>,
    id: AzureSubscriptionId,
    client_secret_sealed: Option<&str>,
    settings: &AzureSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        UPDATE,
        &[
            &id,
            &client_secret_sealed,
            &fields.tenant_id,
            &fields.client_id,
            &fields.name,
            &fields.description,
            &fields.default_location,
            &fields.state_storage_account,
            &fields.state_container,
            &fields.oidc_audience,
        ],
    )
    .await?;
    Ok(())
}

const DELETE: &str = "DELETE FROM azure_subscriptions WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: AzureSubscriptionId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}
