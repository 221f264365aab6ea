//! SQL of clusters.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{ClusterFields, ClusterSettings};
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, ClusterId, UserId};

/// A row.
#[derive(Clone)]
pub(in crate::cloud_accounts) struct StoredCluster {
    pub id: ClusterId,
    pub business_unit_id: BusinessUnitId,
    pub server_url: String,
    pub fields: ClusterFields,
    pub kubeconfig_sealed: String,
    pub version: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, business_unit_id, server_url, name, description, default_namespace, aws_account_id, allow_insecure_tls,
                    kubeconfig_sealed, version, created_at, updated_at
             FROM clusters ",
            $rest
        )
    };
}

fn cluster(row: &Row) -> StoredCluster {
    StoredCluster {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        server_url: row.get("server_url"),
        fields: ClusterFields {
            name: row.get("name"),
            description: row.get("description"),
            default_namespace: row.get("default_namespace"),
            aws_account_id: row.get("aws_account_id"),
            allow_insecure_tls: row.get("allow_insecure_tls"),
        },
        kubeconfig_sealed: row.get("kubeconfig_sealed"),
        version: row.get("version"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

const FIND: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2)");

pub(in crate::cloud_accounts) async fn find(
    query: &impl Query,
    scope: Scope,
    id: ClusterId,
) -> Result<Option<StoredCluster>, DbError> {
    Ok(query.query_opt(FIND, &[&id, &scope.unit()]).await?.as_ref().map(cluster))
}

// FOR UPDATE: a row that is about to refer to the cluster waits.
const LOCK: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) FOR UPDATE");

pub(super) async fn lock(tx: &Tx<'_>, scope: Scope, id: ClusterId) -> Result<Option<StoredCluster>, DbError> {
    Ok(tx.query_opt(LOCK, &[&id, &scope.unit()]).await?.as_ref().map(cluster))
}

const LIST: &str =
    select!("WHERE ($1::uuid IS NULL OR business_unit_id = $1) AND id < $2 ORDER BY id DESC LIMIT $3");

pub(super) async fn list(
    query: &impl Query,
    scope: Scope,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<StoredCluster>, DbError> {
    let before = before.unwrap_or(Uuid::max());
    Ok(query.query(LIST, &[&scope.unit(), &before, &limit]).await?.iter().map(cluster).collect())
}

/// What is stored of a new cluster beside its settings.
pub(super) struct InsertCluster<'a> {
    pub id: ClusterId,
    pub unit: BusinessUnitId,
    pub server_url: &'a str,
    pub kubeconfig_sealed: &'a str,
    pub created_by: Option<UserId>,
}

const INSERT: &str = "
    INSERT INTO clusters
        (id, business_unit_id, server_url, kubeconfig_sealed, created_by, name, description, default_namespace,
         aws_account_id, allow_insecure_tls)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

pub(super) async fn insert(
    tx: &Tx<'_>,
    new: &InsertCluster<'_>,
    settings: &ClusterSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        INSERT,
        &[
            &new.id,
            &new.unit,
            &new.server_url,
            &new.kubeconfig_sealed,
            &new.created_by,
            &fields.name,
            &fields.description,
            &fields.default_namespace,
            &fields.aws_account_id,
            &fields.allow_insecure_tls,
        ],
    )
    .await?;
    Ok(())
}

const UPDATE: &str = "
    UPDATE clusters
    SET kubeconfig_sealed = $2, server_url = $3, name = $4, description = $5, default_namespace = $6,
        aws_account_id = $7, allow_insecure_tls = $8, version = version + 1, updated_at = plumbline_now()
    WHERE id = $1";

/// The caller has locked the row.
pub(super) async fn update(
    tx: &Tx<'_>,
    id: ClusterId,
    server_url: &str,
    kubeconfig_sealed: &str,
    settings: &ClusterSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        UPDATE,
        &[
            &id,
            &kubeconfig_sealed,
            &server_url,
            &fields.name,
            &fields.description,
            &fields.default_namespace,
            &fields.aws_account_id,
            &fields.allow_insecure_tls,
        ],
    )
    .await?;
    Ok(())
}

const DELETE: &str = "DELETE FROM clusters WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: ClusterId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}
