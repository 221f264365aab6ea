//! Use cases of AWS accounts.

use serde_json::json;

use super::rules::{check_account_id, check_keys};
use super::store::{self, InsertAwsAccount, StoredAwsAccount};
use super::{AwsAccount, AwsAccountChange, AwsSettings, NewAwsAccount};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::business_units;
use crate::cloud_accounts::service::{
    administers, and_states, changed_fields, check_version, enqueue_test, entry, masked, require_issuer,
    require_unused,
};
use crate::cloud_accounts::store::users_of_aws_account;
use crate::cloud_accounts::{CloudAccountError, MaskedSecret};
use crate::db::Tx;
use crate::ids::{AwsAccountId, TaskId};
use crate::page::{Page, PageRequest};
use crate::protocol::AwsKeys;
use crate::secrets::{Domain, Place, SealError};
use crate::state_stores::StoreAccount;
use crate::tasks::TaskKind;

const RESOURCE: &str = "aws_account";
const MISSING: CloudAccountError = CloudAccountError::NotFound("AWS account");

/// Registers an account in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: NewAwsAccount,
) -> Result<AwsAccount, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let unit = ctx.unit()?;
    let (account_id, fields, keys) = new.split();
    check_account_id(&account_id)?;
    let keys = check_keys(keys)?;
    let settings = AwsSettings::validate(&account_id, fields, keys.is_some())?;
    require_issuer(deps, "oidc_audience", settings.fields().oidc_audience.as_deref())?;
    let id: AwsAccountId = deps.ids.mint();
    let sealed = keys.map(|keys| seal(deps, id, &keys)).transpose()?;
    let insert = InsertAwsAccount {
        id,
        unit,
        account_id: &account_id,
        keys_sealed: sealed.as_deref(),
        // Random: whoever knows one account's knows nothing of another's.
        external_id: &format!("plumbline-{}", hex::encode(rand::random::<[u8; 16]>())),
        created_by: ctx.actor.user_id(),
    };
    store::insert(tx, &insert, &settings).await?;
    let made = view(deps, ctx, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
    let details = json!({
        "account_id": account_id, "name": made.fields.name, "with_keys": made.access_key_id.configured,
        "plan_role_arn": made.fields.plan_role_arn, "apply_role_arn": made.fields.apply_role_arn,
    });
    audit::service::record(tx, &entry(ctx, unit, Action::AwsAccountCreate, RESOURCE, id, details)).await?;
    Ok(made)
}

/// One account.
pub async fn get(deps: &Deps, ctx: &Ctx, id: AwsAccountId) -> Result<AwsAccount, CloudAccountError> {
    ctx.require(Permission::Read)?;
    view(deps, ctx, store::find(&deps.db.conn().await?, ctx.scope, id).await?.ok_or(MISSING)?)
}

/// The accounts of the scope, newest first.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<AwsAccount>, CloudAccountError> {
    ctx.require(Permission::Read)?;
    let rows = store::list(&deps.db.conn().await?, ctx.scope, page.cursor, page.limit + 1).await?;
    let shown = rows.into_iter().map(|row| view(deps, ctx, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_rows(shown, page.limit, |account| account.id.into()))
}

/// Edits an account. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: AwsAccountId,
    version: Option<i32>,
    change: AwsAccountChange,
) -> Result<AwsAccount, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, before.business_unit_id)
                .await?;
            check_version(version, before.version)?;
            let (fields, wished) = change.over(before.fields.clone());
            let replaces_keys = wished.is_some();
            let sealed = match wished {
                None => before.keys_sealed.clone(),
                Some(keys) => check_keys(keys)?.map(|keys| seal(deps, id, &keys)).transpose()?,
            };
            let settings = AwsSettings::validate(&before.account_id, fields, sealed.is_some())?;
            require_issuer(deps, "oidc_audience", settings.fields().oidc_audience.as_deref())?;
            store::update(tx, id, sealed.as_deref(), &settings).await?;
            let mut changed = changed_fields(&json!(before.fields), &json!(settings.fields()));
            changed.extend(replaces_keys.then(|| "access_key_id".to_owned()));
            let details = json!({ "account_id": before.account_id, "changed": changed });
            let entry = entry(ctx, before.business_unit_id, Action::AwsAccountUpdate, RESOURCE, id, details);
            let after = view(deps, ctx, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
            audit::service::record(tx, &entry).await?;
            Ok(after)
        })
        .await
}

/// Forgets an account that nobody uses, with its secrets.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: AwsAccountId) -> Result<(), CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let account = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, account.business_unit_id)
                .await?;
            let unit = account.business_unit_id;
            let used = users_of_aws_account(tx, unit, &account.account_id).await?;
            require_unused(and_states(tx, used, StoreAccount::Aws(id)).await?)?;
            store::delete(tx, id).await?;
            let details = json!({ "account_id": account.account_id, "name": account.fields.name });
            audit::service::record(tx, &entry(ctx, unit, Action::AwsAccountDelete, RESOURCE, id, details))
                .await?;
            Ok(())
        })
        .await
}

/// Asks AWS who the credentials are, by a short task.
pub async fn request_test(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    id: AwsAccountId,
) -> Result<TaskId, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let account = store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?;
    let subject = (account.business_unit_id, id.into());
    let task_id = enqueue_test(tx, deps, ctx, TaskKind::AwsAccountTest, subject).await?;
    let details = json!({ "account_id": account.account_id, "task_id": task_id });
    let entry = entry(ctx, account.business_unit_id, Action::AwsAccountTest, RESOURCE, id, details);
    audit::service::record(tx, &entry).await?;
    Ok(task_id)
}

/// The static keys of an account, if it has some.
pub(in crate::cloud_accounts) fn open(
    deps: &Deps,
    account: &StoredAwsAccount,
) -> Result<Option<AwsKeys>, SealError> {
    let sealed = account.keys_sealed.as_deref();
    sealed.map(|sealed| open_sealed(deps, account.id, sealed)).transpose()
}

/// What is sealed in the row of an account.
pub(crate) fn open_sealed(deps: &Deps, id: AwsAccountId, sealed: &str) -> Result<AwsKeys, SealError> {
    let text = deps.keys.open(Domain::Aws, place(id), sealed)?;
    serde_json::from_str(&text).map_err(|_| SealError::Unreadable("it is not a pair of keys"))
}

fn seal(deps: &Deps, id: AwsAccountId, keys: &AwsKeys) -> Result<String, SealError> {
    let text = serde_json::to_string(keys).expect("plain strings are JSON");
    deps.keys.seal(Domain::Aws, place(id), &text)
}

fn place(id: AwsAccountId) -> Place {
    Place { table: "aws_accounts", column: "keys_sealed", row: id.0 }
}

fn view(deps: &Deps, ctx: &Ctx, stored: StoredAwsAccount) -> Result<AwsAccount, CloudAccountError> {
    let mask = |part: fn(&AwsKeys) -> &str| {
        masked(open(deps, &stored), |keys| {
            keys.as_ref().map_or_else(MaskedSecret::absent, |keys| MaskedSecret::of(part(keys)))
        })
    };
    Ok(AwsAccount {
        access_key_id: mask(|keys| &keys.access_key_id)?,
        secret_access_key: mask(|keys| &keys.secret_access_key)?,
        id: stored.id,
        business_unit_id: stored.business_unit_id,
        account_id: stored.account_id,
        external_id: administers(ctx).then_some(stored.external_id),
        fields: stored.fields,
        version: stored.version,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    })
}
