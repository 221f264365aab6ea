//! Use cases of Azure subscriptions.

use serde_json::json;

use super::rules::check_secret;
use super::store::{self, InsertAzureSubscription, StoredAzureSubscription};
use super::{AzureSettings, AzureSubscription, AzureSubscriptionChange, NewAzureSubscription};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::business_units;
use crate::cloud_accounts::rules::check_uuid;
use crate::cloud_accounts::service::{
    and_states, changed_fields, check_version, enqueue_test, entry, masked, require_issuer, require_unused,
};
use crate::cloud_accounts::store::users_of_azure_subscription;
use crate::cloud_accounts::{CloudAccountError, MaskedSecret};
use crate::db::Tx;
use crate::ids::{AzureSubscriptionId, TaskId};
use crate::page::{Page, PageRequest};
use crate::secrets::{Domain, Place, SealError, SecretText};
use crate::state_stores::StoreAccount;
use crate::tasks::TaskKind;

const RESOURCE: &str = "azure_subscription";
const MISSING: CloudAccountError = CloudAccountError::NotFound("Azure subscription");

/// Registers a subscription in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: NewAzureSubscription,
) -> Result<AzureSubscription, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let unit = ctx.unit()?;
    let (subscription_id, fields, secret) = new.split();
    let subscription_id = check_uuid("subscription_id", &subscription_id)?;
    let secret = secret.map(check_secret).transpose()?;
    let settings = AzureSettings::validate(fields, secret.is_some())?;
    require_issuer(deps, "oidc_audience", settings.fields().oidc_audience.as_deref())?;
    let id: AzureSubscriptionId = deps.ids.mint();
    let sealed = secret.map(|secret| seal(deps, id, &secret)).transpose()?;
    let insert = InsertAzureSubscription {
        id,
        unit,
        subscription_id: &subscription_id,
        client_secret_sealed: sealed.as_deref(),
        created_by: ctx.actor.user_id(),
    };
    store::insert(tx, &insert, &settings).await?;
    let made = view(deps, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
    let details = json!({ "subscription_id": subscription_id, "name": made.fields.name });
    audit::service::record(tx, &entry(ctx, unit, Action::AzureSubscriptionCreate, RESOURCE, id, details))
        .await?;
    Ok(made)
}

/// One subscription.
pub async fn get(
    deps: &Deps,
    ctx: &Ctx,
    id: AzureSubscriptionId,
) -> Result<AzureSubscription, CloudAccountError> {
    ctx.require(Permission::Read)?;
    view(deps, store::find(&deps.db.conn().await?, ctx.scope, id).await?.ok_or(MISSING)?)
}

/// The subscriptions of the scope, newest first.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    page: PageRequest,
) -> Result<Page<AzureSubscription>, CloudAccountError> {
    ctx.require(Permission::Read)?;
    let rows = store::list(&deps.db.conn().await?, ctx.scope, page.cursor, page.limit + 1).await?;
    let shown = rows.into_iter().map(|row| view(deps, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_rows(shown, page.limit, |subscription| subscription.id.into()))
}

/// Edits a subscription. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: AzureSubscriptionId,
    version: Option<i32>,
    change: AzureSubscriptionChange,
) -> Result<AzureSubscription, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, before.business_unit_id)
                .await?;
            check_version(version, before.version)?;
            let (fields, secret) = change.over(before.fields.clone());
            let replaces_secret = secret.is_some();
            let sealed = match secret {
                None => before.client_secret_sealed.clone(),
                Some(None) => None,
                Some(Some(secret)) => Some(seal(deps, id, &check_secret(secret)?)?),
            };
            let settings = AzureSettings::validate(fields, sealed.is_some())?;
            require_issuer(deps, "oidc_audience", settings.fields().oidc_audience.as_deref())?;
            store::update(tx, id, sealed.as_deref(), &settings).await?;
            let mut changed = changed_fields(&json!(before.fields), &json!(settings.fields()));
            changed.extend(replaces_secret.then(|| "client_secret".to_owned()));
            let details = json!({ "subscription_id": before.subscription_id, "changed": changed });
            let unit = before.business_unit_id;
            let entry = entry(ctx, unit, Action::AzureSubscriptionUpdate, RESOURCE, id, details);
            let after = view(deps, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
            audit::service::record(tx, &entry).await?;
            Ok(after)
        })
        .await
}

/// Forgets a subscription that nobody uses, with its secret.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: AzureSubscriptionId) -> Result<(), CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let found = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, found.business_unit_id)
                .await?;
            let unit = found.business_unit_id;
            let used = users_of_azure_subscription(tx, unit, &found.subscription_id).await?;
            require_unused(and_states(tx, used, StoreAccount::Azure(id)).await?)?;
            store::delete(tx, id).await?;
            let details = json!({ "subscription_id": found.subscription_id, "name": found.fields.name });
            let entry = entry(ctx, unit, Action::AzureSubscriptionDelete, RESOURCE, id, details);
            audit::service::record(tx, &entry).await?;
            Ok(())
        })
        .await
}

/// Asks Azure whether the service principal gets in, by a short task.
pub async fn request_test(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    id: AzureSubscriptionId,
) -> Result<TaskId, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let found = store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?;
    let unit = found.business_unit_id;
    let task_id = enqueue_test(tx, deps, ctx, TaskKind::AzureSubscriptionTest, (unit, id.into())).await?;
    let details = json!({ "subscription_id": found.subscription_id, "task_id": task_id });
    audit::service::record(tx, &entry(ctx, unit, Action::AzureSubscriptionTest, RESOURCE, id, details))
        .await?;
    Ok(task_id)
}

/// The service principal's secret; `None` where it trusts tokens.
pub(in crate::cloud_accounts) fn open(
    deps: &Deps,
    subscription: &StoredAzureSubscription,
) -> Result<Option<SecretText>, SealError> {
    let sealed = subscription.client_secret_sealed.as_deref();
    sealed.map(|sealed| open_sealed(deps, subscription.id, sealed)).transpose()
}

/// What is sealed in the row of a subscription.
pub(crate) fn open_sealed(
    deps: &Deps,
    id: AzureSubscriptionId,
    sealed: &str,
) -> Result<SecretText, SealError> {
    deps.keys.open(Domain::Azure, place(id), sealed)
}

fn seal(deps: &Deps, id: AzureSubscriptionId, secret: &str) -> Result<String, SealError> {
    deps.keys.seal(Domain::Azure, place(id), secret)
}

fn place(id: AzureSubscriptionId) -> Place {
    Place { table: "azure_subscriptions", column: "client_secret_sealed", row: id.0 }
}

fn view(deps: &Deps, stored: StoredAzureSubscription) -> Result<AzureSubscription, CloudAccountError> {
    let mask =
        |secret: &Option<SecretText>| secret.as_deref().map_or_else(MaskedSecret::absent, MaskedSecret::of);
    Ok(AzureSubscription {
        client_secret: masked(open(deps, &stored), mask)?,
        id: stored.id,
        business_unit_id: stored.business_unit_id,
        subscription_id: stored.subscription_id,
        fields: stored.fields,
        version: stored.version,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    })
}
