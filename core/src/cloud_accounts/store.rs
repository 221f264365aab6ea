//! SQL of who uses which account.

use super::UsedBy;
use crate::db::{DbError, Param, Query as _, Tx};
use crate::ids::{BusinessUnitId, ClusterId};

/// Names that are told at most.
const NAMES_MAX: i64 = 20;

// Also those that name the account as their place: their runs would get no credentials any more.
const WORKSPACES_OF_AWS_ACCOUNT: &str = "
    SELECT name FROM workspaces
    WHERE business_unit_id = $1 AND (state_aws_account_id = $2 OR (aws_account_id = $2 AND state_aws_account_id IS NULL))
    ORDER BY name, id LIMIT $3";
const CLUSTERS_OF_AWS_ACCOUNT: &str = "
    SELECT name FROM clusters WHERE business_unit_id = $1 AND aws_account_id = $2 ORDER BY name LIMIT $3";
const WORKSPACES_OF_AZURE_SUBSCRIPTION: &str = "
    SELECT name FROM workspaces WHERE business_unit_id = $1 AND azure_subscription_id = $2 ORDER BY name, id LIMIT $3";
const WORKSPACES_OF_GCP_PROJECT: &str = "
    SELECT name FROM workspaces WHERE business_unit_id = $1 AND gcp_project_id = $2 ORDER BY name, id LIMIT $3";
const WORKSPACES_OF_CLUSTER: &str = "
    SELECT name FROM workspaces WHERE business_unit_id = $1 AND cluster_id = $2 ORDER BY name, id LIMIT $3";

/// Whose runs or plugins use an AWS account.
pub(super) async fn users_of_aws_account(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    account_id: &str,
) -> Result<UsedBy, DbError> {
    Ok(UsedBy {
        workspaces: names(tx, WORKSPACES_OF_AWS_ACCOUNT, unit, &account_id).await?,
        clusters: names(tx, CLUSTERS_OF_AWS_ACCOUNT, unit, &account_id).await?,
        ..UsedBy::default()
    })
}

/// Whose runs use an Azure subscription.
pub(super) async fn users_of_azure_subscription(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    subscription_id: &str,
) -> Result<UsedBy, DbError> {
    workspaces(tx, WORKSPACES_OF_AZURE_SUBSCRIPTION, unit, &subscription_id).await
}

/// Whose runs use a GCP project.
pub(super) async fn users_of_gcp_project(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    project_id: &str,
) -> Result<UsedBy, DbError> {
    workspaces(tx, WORKSPACES_OF_GCP_PROJECT, unit, &project_id).await
}

/// Whose runs use a cluster.
pub(super) async fn users_of_cluster(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    id: ClusterId,
) -> Result<UsedBy, DbError> {
    workspaces(tx, WORKSPACES_OF_CLUSTER, unit, &id).await
}

async fn workspaces(
    tx: &Tx<'_>,
    sql: &str,
    unit: BusinessUnitId,
    account: &dyn Param,
) -> Result<UsedBy, DbError> {
    Ok(UsedBy { workspaces: names(tx, sql, unit, account).await?, ..UsedBy::default() })
}

async fn names(
    tx: &Tx<'_>,
    sql: &str,
    unit: BusinessUnitId,
    account: &dyn Param,
) -> Result<Vec<String>, DbError> {
    Ok(tx.query(sql, &[&unit, account, &NAMES_MAX]).await?.iter().map(|row| row.get("name")).collect())
}
