//! Opening the place where a body lies, or where new ones go.
//!
//! Nothing that takes [`Deps`] may be called while a connection of the pool is held: a function may have only one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::described::Described;
use super::rules::session_policy;
use super::store::{self, AccountRow, WaysIn};
use super::{Chosen, StateAccess, StatePlace, StateStoreError, StoreAccount, choose};
use crate::Deps;
use crate::cloud_accounts::{aws, azure, gcp};
use crate::db::{DbError, Query};
use crate::ids::{BusinessUnitId, StateStoreId, WorkspaceId};
use crate::ports::{BlobError, BlobStore, OpenError};
use crate::protocol::AwsRole;
use crate::secrets::{SealError, SecretText};

/// A session of ours for a bucket. It is renewed when half of it is over.
const SESSION_SECONDS: i32 = 3600;
/// Tries to make a row that others may be making at the same time.
const ENSURE_TRIES: usize = 3;
/// Workspaces that are named to whoever would delete an account.
const HOLDERS_MAX: i64 = 20;

/// Where new bodies go: a store, and its row unless it is the platform's own.
#[derive(Clone, Debug)]
pub struct Home {
    /// `None`: the platform's own.
    pub store_id: Option<StateStoreId>,
    /// The store.
    pub blobs: Arc<dyn BlobStore>,
}

impl Home {
    /// The platform's own store.
    pub fn platform(deps: &Deps) -> Self {
        Self { store_id: None, blobs: Arc::clone(&deps.blobs) }
    }
}

/// Where new bodies of a workspace go, as its accounts say now. Of one that is gone: to the platform's store, since whoever
/// asks will find under its lock that it is gone.
pub async fn home_of(deps: &Deps, workspace_id: WorkspaceId) -> Result<Home, StateStoreError> {
    let places = {
        let conn = deps.db.conn().await?;
        store::of_workspace(&conn, workspace_id).await?
    };
    let Some(places) = places else { return Ok(Home::platform(deps)) };
    let (account, place) = match choose(places.backend, places.offers) {
        Chosen::Platform => return Ok(Home::platform(deps)),
        Chosen::Nowhere(why) => {
            let name = "the store that the workspace asks for".into();
            return Err(BlobError::Unusable { name, reason: why.into() }.into());
        }
        Chosen::Place(chosen) => chosen,
    };
    let id = match deps.state_stores.id_of(account.account(), &place) {
        Some(id) => id,
        None => ensure(deps, places.business_unit_id, account.account(), &place).await?,
    };
    Ok(Home { store_id: Some(id), blobs: open(deps, id, account, place).await? })
}

/// A store where a body lies, to be opened once no connection is held.
pub struct Located(Option<(StateStoreId, AccountRow, StatePlace)>);

/// The store where a body lies, which the caller has from a row: `None` names the platform's own, and is no question to the
/// database.
pub async fn locate(query: &impl Query, id: Option<StateStoreId>) -> Result<Located, DbError> {
    let Some(id) = id else { return Ok(Located(None)) };
    // It cannot go while a body lies there.
    let found = store::find(query, id).await?;
    let (account, place) =
        found.ok_or_else(|| DbError::Row("a body lies in a store without a row".into()))?;
    Ok(Located(Some((id, account, place))))
}

/// Opens what was located.
pub async fn open_located(
    deps: &Deps,
    Located(located): Located,
) -> Result<Arc<dyn BlobStore>, StateStoreError> {
    let Some((id, account, place)) = located else { return Ok(Arc::clone(&deps.blobs)) };
    open(deps, id, account, place).await
}

/// The same for whoever asks nothing else.
pub async fn opened(deps: &Deps, id: Option<StateStoreId>) -> Result<Arc<dyn BlobStore>, StateStoreError> {
    let located = match id {
        None => Located(None),
        Some(_) => locate(&deps.db.conn().await?, id).await?,
    };
    open_located(deps, located).await
}

/// Names of workspaces whose bodies lie in places of an account, the first few.
pub async fn holders(query: &impl Query, account: StoreAccount) -> Result<Vec<String>, DbError> {
    store::holders(query, account, HOLDERS_MAX).await
}

async fn ensure(
    deps: &Deps,
    unit: BusinessUnitId,
    account: StoreAccount,
    place: &StatePlace,
) -> Result<StateStoreId, StateStoreError> {
    let conn = deps.db.conn().await?;
    for _ in 0..ENSURE_TRIES {
        if let Some(id) = store::ensure(&conn, deps.ids.mint(), unit, account, place).await? {
            return Ok(id);
        }
    }
    Err(BlobError::Unavailable("many ask for the same new store at once".into()).into())
}

async fn open(
    deps: &Deps,
    id: StateStoreId,
    account: AccountRow,
    place: StatePlace,
) -> Result<Arc<dyn BlobStore>, StateStoreError> {
    if let Some(blobs) = deps.state_stores.find(id, account.version, Instant::now()) {
        return Ok(blobs);
    }
    let name = format!("{place} of {}", called(&account));
    let unusable = |reason: String| BlobError::Unusable { name: name.clone(), reason };
    let access = access(deps, &account, &place).map_err(|error| match error {
        NoAccess::Mend(why) => unusable(why),
        // A key that this function lacks is a defect of ours.
        NoAccess::Defect(error) => BlobError::Refused(error.to_string()),
    })?;
    let opener = deps
        .state_stores
        .opener()
        .ok_or_else(|| BlobError::Refused("this process opens no stores of accounts".into()))?;
    let mut opened = opener.open(&place, &access).await.map_err(|error| match error {
        OpenError::Refused(why) => unusable(why),
        OpenError::Unavailable(why) => BlobError::Unavailable(format!("{name}: {why}")),
    })?;
    opened.blobs = Arc::new(Described::new(opened.blobs, name));
    let blobs = Arc::clone(&opened.blobs);
    deps.state_stores.keep(id, (account.account(), account.version), place, opened);
    Ok(blobs)
}

fn called(account: &AccountRow) -> String {
    let kind = match account.account() {
        StoreAccount::Aws(_) => "AWS account",
        StoreAccount::Azure(_) => "Azure subscription",
        StoreAccount::Gcp(_) => "GCP project",
    };
    format!("{kind} {}", account.number)
}

/// Why there is no way in.
enum NoAccess {
    /// Somebody has to mend the account.
    Mend(String),
    /// This function is not wired as it must be.
    Defect(SealError),
}

impl From<SealError> for NoAccess {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Unreadable(why) => {
                Self::Mend(format!("its credentials cannot be opened ({why}): replace them"))
            }
            SealError::Key(_) => Self::Defect(error),
        }
    }
}

fn access(deps: &Deps, account: &AccountRow, place: &StatePlace) -> Result<StateAccess, NoAccess> {
    match (&account.ways_in, place) {
        (
            WaysIn::Aws { id, keys_sealed, apply_role_arn, external_id, oidc_audience, default_region },
            StatePlace::S3 { bucket, .. },
        ) => {
            if oidc_audience.is_some() {
                return Err(trusts_runs("keys"));
            }
            let sealed = keys_sealed.as_deref();
            let keys = sealed.map(|sealed| aws::service::open_sealed(deps, *id, sealed)).transpose()?;
            let role = apply_role_arn.as_ref().map(|role_arn| role(role_arn, external_id, bucket));
            Ok(StateAccess::Aws { keys, role, sts_region: default_region.clone() })
        }
        (WaysIn::Azure { id, tenant_id, client_id, client_secret_sealed }, StatePlace::AzureBlob { .. }) => {
            let sealed = client_secret_sealed.as_deref().ok_or_else(|| trusts_runs("a client_secret"))?;
            Ok(StateAccess::Azure {
                tenant_id: tenant_id.clone(),
                client_id: client_id.clone(),
                client_secret: azure::service::open_sealed(deps, *id, sealed)?,
            })
        }
        (WaysIn::Gcp { id, service_account_sealed }, StatePlace::Gcs { .. }) => {
            let sealed =
                service_account_sealed.as_deref().ok_or_else(|| trusts_runs("a key of a service account"))?;
            let key = gcp::service::open_sealed(deps, *id, sealed)?;
            Ok(StateAccess::Gcp { service_account: SecretText::new(key.to_json()) })
        }
        _ => Err(NoAccess::Mend("it is of another kind than its account".into())),
    }
}

/// Only runs have tokens, and only while they last; the state is also read when nothing runs.
fn trusts_runs(what: &str) -> NoAccess {
    NoAccess::Mend(format!(
        "the account trusts tokens of runs and has no credentials that the control plane could use: give it {what}, or \
         take the place for states away from it"
    ))
}

/// The role that applies act in, which may write. Its session is ours alone, and may do nothing but keep states here.
fn role(role_arn: &str, external_id: &str, bucket: &str) -> AwsRole {
    AwsRole {
        role_arn: role_arn.to_owned(),
        external_id: external_id.to_owned(),
        session_name: "plumbline-states".to_owned(),
        duration_seconds: SESSION_SECONDS,
        session_policy: Some(session_policy(role_arn, bucket)),
        tags: BTreeMap::from([("plumbline:phase".to_owned(), "state".to_owned())]),
    }
}
