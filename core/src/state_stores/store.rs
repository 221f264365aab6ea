//! SQL of `state_stores`, and of what the accounts' rows say about places.

use super::{Offer, Offers, StateBackend, StatePlace, StoreAccount};
use crate::db::{DbError, Query, Row};
use crate::ids::{
    AwsAccountId, AzureSubscriptionId, BusinessUnitId, GcpProjectId, StateStoreId, WorkspaceId,
};

/// An account as far as its places are concerned.
#[derive(Clone)]
pub(super) struct AccountRow {
    /// Rises whenever the account is edited.
    pub version: i32,
    /// Its number or id in its cloud.
    pub number: String,
    pub ways_in: WaysIn,
}

/// What of an account lets us in, sealed.
#[derive(Clone)]
pub(super) enum WaysIn {
    Aws {
        id: AwsAccountId,
        keys_sealed: Option<String>,
        apply_role_arn: Option<String>,
        external_id: String,
        oidc_audience: Option<String>,
        default_region: String,
    },
    Azure {
        id: AzureSubscriptionId,
        tenant_id: String,
        client_id: String,
        client_secret_sealed: Option<String>,
    },
    Gcp {
        id: GcpProjectId,
        service_account_sealed: Option<String>,
    },
}

impl AccountRow {
    pub(super) fn account(&self) -> StoreAccount {
        match self.ways_in {
            WaysIn::Aws { id, .. } => StoreAccount::Aws(id),
            WaysIn::Azure { id, .. } => StoreAccount::Azure(id),
            WaysIn::Gcp { id, .. } => StoreAccount::Gcp(id),
        }
    }
}

/// Where a workspace's accounts would put its state.
pub(super) struct WorkspacePlaces {
    pub business_unit_id: BusinessUnitId,
    pub backend: StateBackend,
    pub offers: Offers<(AccountRow, StatePlace)>,
}

fn offer(account: Option<AccountRow>, place: Option<StatePlace>) -> Offer<(AccountRow, StatePlace)> {
    match (account, place) {
        (None, _) => Offer::NoAccount,
        (Some(_), None) => Offer::NoStore,
        (Some(account), Some(place)) => Offer::Store((account, place)),
    }
}

const OF_WORKSPACE: &str = include_str!("sql/of_workspace.sql");

/// `None`: the workspace is gone.
pub(super) async fn of_workspace(
    query: &impl Query,
    id: WorkspaceId,
) -> Result<Option<WorkspacePlaces>, DbError> {
    let Some(row) = query.query_opt(OF_WORKSPACE, &[&id]).await? else { return Ok(None) };
    let word: &str = row.get("state_backend");
    let backend =
        StateBackend::parse(word).ok_or_else(|| DbError::Row(["unknown state_backend ", word].concat()))?;
    let s3 = |bucket: String| StatePlace::S3 { bucket, region: row.get("state_bucket_region") };
    let gcs = |bucket: String| StatePlace::Gcs { bucket, prefix: row.get("state_prefix") };
    let azureblob = row
        .get::<_, Option<String>>("state_storage_account")
        .zip(row.get::<_, Option<String>>("state_container"))
        .map(|(storage_account, container)| StatePlace::AzureBlob { storage_account, container });
    Ok(Some(WorkspacePlaces {
        business_unit_id: row.get("business_unit_id"),
        backend,
        offers: Offers {
            s3: offer(aws(&row), row.get::<_, Option<String>>("state_bucket").map(s3)),
            azureblob: offer(azure(&row), azureblob),
            gcs: offer(gcp(&row), row.get::<_, Option<String>>("gcp_state_bucket").map(gcs)),
        },
    }))
}

const FIND: &str = include_str!("sql/find.sql");

/// A place that was used, and its account. The caller has the id from a row of the unit whose place it is.
pub(super) async fn find(
    query: &impl Query,
    id: StateStoreId,
) -> Result<Option<(AccountRow, StatePlace)>, DbError> {
    let Some(row) = query.query_opt(FIND, &[&id]).await? else { return Ok(None) };
    let bucket = row.get("bucket");
    if let Some(account) = aws(&row) {
        return Ok(Some((account, StatePlace::S3 { bucket, region: row.get("region") })));
    }
    if let Some(account) = azure(&row) {
        let storage_account = row.get("storage_account");
        return Ok(Some((account, StatePlace::AzureBlob { storage_account, container: bucket })));
    }
    Ok(gcp(&row).map(|account| (account, StatePlace::Gcs { bucket, prefix: row.get("prefix") })))
}

const ENSURE: &str = include_str!("sql/ensure.sql");

/// The row of a place, made if it is missing. `None`: somebody has just made it.
pub(super) async fn ensure(
    query: &impl Query,
    new_id: StateStoreId,
    unit: BusinessUnitId,
    account: StoreAccount,
    place: &StatePlace,
) -> Result<Option<StateStoreId>, DbError> {
    let (aws, azure, gcp) = ids(account);
    let (bucket, region, storage_account, prefix) = match place {
        StatePlace::S3 { bucket, region } => (bucket, Some(region.as_str()), None, None),
        StatePlace::AzureBlob { storage_account, container } => {
            (container, None, Some(storage_account.as_str()), None)
        }
        StatePlace::Gcs { bucket, prefix } => (bucket, None, None, prefix.as_deref()),
    };
    let row = query
        .query_opt(ENSURE, &[&new_id, &unit, &aws, &azure, &gcp, bucket, &region, &storage_account, &prefix])
        .await?;
    Ok(row.map(|row| row.get("id")))
}

// Expired rows count: their bodies are still to be removed.
const HELD: &str = "
    SELECT DISTINCT w.name FROM state_stores s
    JOIN LATERAL (
        SELECT v.workspace_id FROM state_versions v WHERE v.store_id = s.id
        UNION SELECT q.workspace_id FROM quarantined_states q WHERE q.store_id = s.id
    ) held ON true
    JOIN workspaces w ON w.id = held.workspace_id
    WHERE s.aws_account_id = $1 OR s.azure_subscription_id = $2 OR s.gcp_project_id = $3
    ORDER BY w.name LIMIT $4";

/// Names of workspaces with bodies in places of an account, the first few.
pub(super) async fn holders(
    query: &impl Query,
    account: StoreAccount,
    limit: i64,
) -> Result<Vec<String>, DbError> {
    let (aws, azure, gcp) = ids(account);
    Ok(query.query(HELD, &[&aws, &azure, &gcp, &limit]).await?.iter().map(|row| row.get("name")).collect())
}

fn ids(account: StoreAccount) -> (Option<AwsAccountId>, Option<AzureSubscriptionId>, Option<GcpProjectId>) {
    match account {
        StoreAccount::Aws(id) => (Some(id), None, None),
        StoreAccount::Azure(id) => (None, Some(id), None),
        StoreAccount::Gcp(id) => (None, None, Some(id)),
    }
}

fn aws(row: &Row) -> Option<AccountRow> {
    let id = row.get::<_, Option<_>>("aws_id")?;
    Some(AccountRow {
        version: row.get("aws_version"),
        number: row.get("aws_number"),
        ways_in: WaysIn::Aws {
            id,
            keys_sealed: row.get("keys_sealed"),
            apply_role_arn: row.get("apply_role_arn"),
            external_id: row.get("external_id"),
            oidc_audience: row.get("oidc_audience"),
            default_region: row.get("default_region"),
        },
    })
}

fn azure(row: &Row) -> Option<AccountRow> {
    let id = row.get::<_, Option<_>>("azure_id")?;
    Some(AccountRow {
        version: row.get("azure_version"),
        number: row.get("subscription_id"),
        ways_in: WaysIn::Azure {
            id,
            tenant_id: row.get("tenant_id"),
            client_id: row.get("client_id"),
            client_secret_sealed: row.get("client_secret_sealed"),
        },
    })
}

fn gcp(row: &Row) -> Option<AccountRow> {
    let id = row.get::<_, Option<_>>("gcp_id")?;
    Some(AccountRow {
        version: row.get("gcp_version"),
        number: row.get("project_id"),
        ways_in: WaysIn::Gcp { id, service_account_sealed: row.get("service_account_sealed") },
    })
}
