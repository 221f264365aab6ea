//! SQL of GCP projects.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{GcpFields, GcpSettings};
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, GcpProjectId, UserId};

/// A row.
#[derive(Clone)]
pub(in crate::cloud_accounts) struct StoredGcpProject {
    pub id: GcpProjectId,
    pub business_unit_id: BusinessUnitId,
    pub project_id: String,
    pub client_email: String,
    pub fields: GcpFields,
    pub service_account_sealed: Option<String>,
    pub version: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, business_unit_id, project_id, client_email, name, description, default_region, state_bucket, state_prefix,
                    workload_identity_provider, service_account_sealed, version, created_at, updated_at
             FROM gcp_projects ",
            $rest
        )
    };
}

fn project(row: &Row) -> StoredGcpProject {
    StoredGcpProject {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        project_id: row.get("project_id"),
        client_email: row.get("client_email"),
        fields: GcpFields {
            name: row.get("name"),
            description: row.get("description"),
            default_region: row.get("default_region"),
            state_bucket: row.get("state_bucket"),
            state_prefix: row.get("state_prefix"),
            workload_identity_provider: row.get("workload_identity_provider"),
        },
        service_account_sealed: row.get("service_account_sealed"),
        version: row.get("version"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

const FIND: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2)");

pub(in crate::cloud_accounts) async fn find(
    query: &impl Query,
    scope: Scope,
    id: GcpProjectId,
) -> Result<Option<StoredGcpProject>, DbError> {
    Ok(query.query_opt(FIND, &[&id, &scope.unit()]).await?.as_ref().map(project))
}

const FIND_BY_GCP_ID: &str = select!("WHERE business_unit_id = $1 AND project_id = $2");

/// The unit's project with this id at GCP. There is no way to another unit's.
pub(in crate::cloud_accounts) async fn find_by_gcp_id(
    query: &impl Query,
    unit: BusinessUnitId,
    project_id: &str,
) -> Result<Option<StoredGcpProject>, DbError> {
    Ok(query.query_opt(FIND_BY_GCP_ID, &[&unit, &project_id]).await?.as_ref().map(project))
}

// FOR UPDATE: a row that is about to refer to the project waits.
const LOCK: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) FOR UPDATE");

pub(super) async fn lock(
    tx: &Tx<'_>,
    scope: Scope,
    id: GcpProjectId,
) -> Result<Option<StoredGcpProject>, DbError> {
    Ok(tx.query_opt(LOCK, &[&id, &scope.unit()]).await?.as_ref().map(project))
}

const LIST: &str =
    select!("WHERE ($1::uuid IS NULL OR business_unit_id = $1) AND id < $2 ORDER BY id DESC LIMIT $3");

pub(super) async fn list(
    query: &impl Query,
    scope: Scope,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<StoredGcpProject>, DbError> {
    let before = before.unwrap_or(Uuid::max());
    Ok(query.query(LIST, &[&scope.unit(), &before, &limit]).await?.iter().map(project).collect())
}

/// What is stored of a new project beside its settings.
pub(super) struct InsertGcpProject<'a> {
    pub id: GcpProjectId,
    pub unit: BusinessUnitId,
    pub project_id: &'a str,
    pub client_email: &'a str,
    pub service_account_sealed: Option<&'a str>,
    pub created_by: Option<UserId>,
}

const INSERT: &str = "
    INSERT INTO gcp_projects
        (id, business_unit_id, project_id, client_email, service_account_sealed, created_by, name, description,
         default_region, state_bucket, state_prefix, workload_identity_provider)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

pub(super) async fn insert(
    tx: &Tx<'_>,
    new: &InsertGcpProject<'_>,
    settings: &GcpSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        INSERT,
        &[
            &new.id,
            &new.unit,
            &new.project_id,
            &new.client_email,
            &new.service_account_sealed,
            &new.created_by,
            &fields.name,
            &fields.description,
            &fields.default_region,
            &fields.state_bucket,
            &fields.state_prefix,
            &fields.workload_identity_provider,
        ],
    )
    .await?;
    Ok(())
}

const UPDATE: &str = "
    UPDATE gcp_projects
    SET service_account_sealed = $2, client_email = $3, name = $4, description = $5, default_region = $6,
        state_bucket = $7, state_prefix = $8, workload_identity_provider = $9, version = version + 1,
        updated_at = plumbline_now()
    WHERE id = $1";

/// The caller has locked the row.
pub(super) async fn update(
    tx: &Tx<'_>,
    id: GcpProjectId,
    client_email: &str,
    service_account_sealed: Option<&str>,
    settings: &GcpSettings,
) -> Result<(), DbError> {
    let fields = settings.fields();
    tx.execute(
        UPDATE,
        &[
            &id,
            &service_account_sealed,
            &client_email,
            &fields.name,
            &fields.description,
            &fields.default_region,
            &fields.state_bucket,
            &fields.state_prefix,
            &fields.workload_identity_provider,
        ],
    )
    .await?;
    Ok(())
}

const DELETE: &str = "DELETE FROM gcp_projects WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: GcpProjectId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}
