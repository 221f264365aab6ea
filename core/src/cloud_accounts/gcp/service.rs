//! Use cases of GCP projects.

use serde_json::json;

use super::rules::{check_client_email, check_project_id};
use super::store::{self, InsertGcpProject, StoredGcpProject};
use super::{GcpProject, GcpProjectChange, GcpSettings, NewGcpProject, ServiceAccount};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::business_units;
use crate::cloud_accounts::service::{
    and_states, changed_fields, check_version, enqueue_test, entry, masked, require_issuer, require_unused,
};
use crate::cloud_accounts::store::users_of_gcp_project;
use crate::cloud_accounts::{CloudAccountError, MaskedSecret};
use crate::db::Tx;
use crate::ids::{GcpProjectId, TaskId};
use crate::page::{Page, PageRequest};
use crate::secrets::{Domain, Place, SealError};
use crate::state_stores::StoreAccount;
use crate::tasks::TaskKind;

const RESOURCE: &str = "gcp_project";
/// The field that says so where runs need no key.
const TRUST: &str = "workload_identity_provider";
const MISSING: CloudAccountError = CloudAccountError::NotFound("GCP project");

/// Registers a project in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: NewGcpProject,
) -> Result<GcpProject, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let unit = ctx.unit()?;
    let (project_id, fields, access) = new.split();
    check_project_id(&project_id)?;
    let key = access.key.flatten().map(|key| ServiceAccount::parse(&key, &project_id)).transpose()?;
    let settings = GcpSettings::validate(fields, key.is_some())?;
    let of_key = key.as_ref().map(ServiceAccount::client_email);
    let client_email = check_client_email(of_key, access.client_email, None)?;
    require_issuer(deps, TRUST, settings.fields().workload_identity_provider.as_deref())?;
    let id: GcpProjectId = deps.ids.mint();
    let sealed = key.map(|key| seal(deps, id, &key)).transpose()?;
    let insert = InsertGcpProject {
        id,
        unit,
        project_id: &project_id,
        client_email: &client_email,
        service_account_sealed: sealed.as_deref(),
        created_by: ctx.actor.user_id(),
    };
    store::insert(tx, &insert, &settings).await?;
    let made = view(deps, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
    let details =
        json!({ "project_id": project_id, "name": made.fields.name, "client_email": made.client_email });
    audit::service::record(tx, &entry(ctx, unit, Action::GcpProjectCreate, RESOURCE, id, details)).await?;
    Ok(made)
}

/// One project.
pub async fn get(deps: &Deps, ctx: &Ctx, id: GcpProjectId) -> Result<GcpProject, CloudAccountError> {
    ctx.require(Permission::Read)?;
    view(deps, store::find(&deps.db.conn().await?, ctx.scope, id).await?.ok_or(MISSING)?)
}

/// The projects of the scope, newest first.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<GcpProject>, CloudAccountError> {
    ctx.require(Permission::Read)?;
    let rows = store::list(&deps.db.conn().await?, ctx.scope, page.cursor, page.limit + 1).await?;
    let shown = rows.into_iter().map(|row| view(deps, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_rows(shown, page.limit, |project| project.id.into()))
}

/// Edits a project. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: GcpProjectId,
    version: Option<i32>,
    change: GcpProjectChange,
) -> Result<GcpProject, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, before.business_unit_id)
                .await?;
            check_version(version, before.version)?;
            let (fields, access) = change.over(before.fields.clone());
            let replaces_key = access.key.is_some();
            let was = before.client_email.clone();
            let (of_key, sealed) = match access.key {
                None => {
                    let sealed = before.service_account_sealed.clone();
                    (sealed.is_some().then(|| was.clone()), sealed)
                }
                Some(None) => (None, None),
                Some(Some(key)) => {
                    let key = ServiceAccount::parse(&key, &before.project_id)?;
                    (Some(key.client_email().to_owned()), Some(seal(deps, id, &key)?))
                }
            };
            let settings = GcpSettings::validate(fields, sealed.is_some())?;
            let email = check_client_email(of_key.as_deref(), access.client_email, Some(was))?;
            require_issuer(deps, TRUST, settings.fields().workload_identity_provider.as_deref())?;
            store::update(tx, id, &email, sealed.as_deref(), &settings).await?;
            let mut changed = changed_fields(&json!(before.fields), &json!(settings.fields()));
            changed.extend(replaces_key.then(|| "service_account_json".to_owned()));
            let details =
                json!({ "project_id": before.project_id, "changed": changed, "client_email": email });
            let entry = entry(ctx, before.business_unit_id, Action::GcpProjectUpdate, RESOURCE, id, details);
            let after = view(deps, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
            audit::service::record(tx, &entry).await?;
            Ok(after)
        })
        .await
}

/// Forgets a project that nobody uses, with its key.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: GcpProjectId) -> Result<(), CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let found = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, found.business_unit_id)
                .await?;
            let unit = found.business_unit_id;
            let used = users_of_gcp_project(tx, unit, &found.project_id).await?;
            require_unused(and_states(tx, used, StoreAccount::Gcp(id)).await?)?;
            store::delete(tx, id).await?;
            let details = json!({ "project_id": found.project_id, "name": found.fields.name });
            audit::service::record(tx, &entry(ctx, unit, Action::GcpProjectDelete, RESOURCE, id, details))
                .await?;
            Ok(())
        })
        .await
}

/// Asks Google whether the key works, by a short task.
pub async fn request_test(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    id: GcpProjectId,
) -> Result<TaskId, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let found = store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?;
    let unit = found.business_unit_id;
    let task_id = enqueue_test(tx, deps, ctx, TaskKind::GcpProjectTest, (unit, id.into())).await?;
    let details = json!({ "project_id": found.project_id, "task_id": task_id });
    audit::service::record(tx, &entry(ctx, unit, Action::GcpProjectTest, RESOURCE, id, details)).await?;
    Ok(task_id)
}

/// The key of the service account; `None` where a pool trusts tokens.
pub(in crate::cloud_accounts) fn open(
    deps: &Deps,
    project: &StoredGcpProject,
) -> Result<Option<ServiceAccount>, SealError> {
    let sealed = project.service_account_sealed.as_deref();
    sealed.map(|sealed| open_sealed(deps, project.id, sealed)).transpose()
}

/// What is sealed in the row of a project.
pub(crate) fn open_sealed(deps: &Deps, id: GcpProjectId, sealed: &str) -> Result<ServiceAccount, SealError> {
    let text = deps.keys.open(Domain::Gcp, place(id), sealed)?;
    serde_json::from_str(&text).map_err(|_| SealError::Unreadable("it is not the key of a service account"))
}

fn seal(deps: &Deps, id: GcpProjectId, key: &ServiceAccount) -> Result<String, SealError> {
    deps.keys.seal(Domain::Gcp, place(id), &key.to_json())
}

fn place(id: GcpProjectId) -> Place {
    Place { table: "gcp_projects", column: "service_account_sealed", row: id.0 }
}

fn view(deps: &Deps, stored: StoredGcpProject) -> Result<GcpProject, CloudAccountError> {
    let mask = |key: &Option<ServiceAccount>| match key {
        None => MaskedSecret::absent(),
        Some(key) => key.private_key_id().map_or_else(MaskedSecret::hidden, MaskedSecret::of),
    };
    Ok(GcpProject {
        service_account_json: masked(open(deps, &stored), mask)?,
        id: stored.id,
        business_unit_id: stored.business_unit_id,
        project_id: stored.project_id,
        client_email: stored.client_email,
        fields: stored.fields,
        version: stored.version,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    })
}
