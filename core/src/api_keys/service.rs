//! Use cases of API keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::model::{ApiKeyView, KeyOfRule, MintedKey, NewApiKey, Rotation, RuleKey};
use super::store::{self, Secret};
use super::{ApiKeyError, rules};
use crate::Deps;
use crate::access::{Actor, Credential, Ctx, Permission, Scope};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::db::{DbError, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{ApiKeyId, BusinessUnitId, UserId};
use crate::page::{Page, PageRequest};
use crate::sessions::SessionError;

/// The caller behind a key's token, in one round trip to the database. A key acts in its own unit, whatever a request's
/// header names.
pub async fn authenticate(deps: &Deps, token: &str) -> Result<Ctx, SessionError> {
    let conn = deps.db.conn().await?;
    let standing = store::standing(&conn, Sha256Digest::of(token.as_bytes()))
        .await?
        .ok_or(SessionError::Unauthenticated("there is no such API key; it may have been regenerated"))?;
    let role = rules::judge(&standing)?;
    Ok(Ctx {
        actor: Actor::Key { id: standing.id, name: standing.name, owner: standing.owner },
        credential: Credential::Key { capability: standing.capability, workspaces: standing.workspaces },
        scope: Scope::One(standing.business_unit_id),
        // A key of an archived unit is dead.
        unit_archived: false,
        role,
        is_superadmin: false,
        traceparent: None,
        now: standing.at,
    })
}

/// The keys that people of the unit made, newest first, the dead ones included. Those of trust rules live for minutes.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<ApiKeyView>, ApiKeyError> {
    ctx.require(Permission::AdministerKeys)?;
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, ctx.unit()?, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |key| key.id.into()))
}

/// One key.
pub async fn get(deps: &Deps, ctx: &Ctx, id: ApiKeyId) -> Result<ApiKeyView, ApiKeyError> {
    ctx.require(Permission::AdministerKeys)?;
    let conn = deps.db.conn().await?;
    store::find(&conn, ctx.scope.unit(), id).await?.ok_or(ApiKeyError::NotFound)
}

/// Makes a key that acts for the caller.
pub async fn create(deps: &Deps, ctx: &Ctx, new: &NewApiKey) -> Result<MintedKey, ApiKeyError> {
    ctx.require(Permission::AdministerKeys)?;
    let (unit, owner) = (ctx.unit()?, ctx.person()?);
    rules::check(new)?;
    let (secret, token) = mint();
    deps.db
        .transaction(async |tx| {
            let key = insert(deps, tx, unit, new, &secret, owner).await?;
            let details = json!({
                "name": key.name, "token_prefix": key.token_prefix, "capability": key.capability,
                "workspace_ids": key.workspace_ids, "expires_at": key.expires_at,
            });
            audit::service::record(
                tx,
                &entry(ctx.actor.clone(), Action::ApiKeyCreate, unit, key.id, details),
            )
            .await?;
            Ok(MintedKey { key, token })
        })
        .await
}

/// Gives a key another token; the old one is dead at once. It acts for the caller from now on: whoever is shown a token
/// answers for what is done with it.
pub async fn regenerate(deps: &Deps, ctx: &Ctx, id: ApiKeyId) -> Result<MintedKey, ApiKeyError> {
    ctx.require(Permission::AdministerKeys)?;
    let owner = ctx.person()?;
    let (secret, token) = mint();
    deps.db
        .transaction(async |tx| {
            let life = store::lock(tx, ctx.scope.unit(), id).await?.ok_or(ApiKeyError::NotFound)?;
            rules::check_alive(life)?;
            let before = find_of_person(tx, ctx, id).await?;
            let unit = before.business_unit_id;
            business_units::service::require_in_use::<ApiKeyError>(tx, ctx, unit).await?;
            store::regenerate(tx, unit, id, owner, &secret).await?;
            let key = store::find(tx, Some(unit), id).await?.ok_or(ApiKeyError::NotFound)?;
            let details = json!({
                "old_token_prefix": before.token_prefix, "token_prefix": key.token_prefix,
                "owner_before": before.user_id,
            });
            audit::service::record(
                tx,
                &entry(ctx.actor.clone(), Action::ApiKeyRegenerate, unit, id, details),
            )
            .await?;
            Ok(MintedKey { key, token })
        })
        .await
}

/// Makes a successor that acts for the caller, and ends the key after an overlap in which both are good.
pub async fn rotate(
    deps: &Deps,
    ctx: &Ctx,
    id: ApiKeyId,
    rotation: &Rotation,
) -> Result<MintedKey, ApiKeyError> {
    ctx.require(Permission::AdministerKeys)?;
    let owner = ctx.person()?;
    let overlap_hours = rules::overlap_hours(rotation)?;
    rules::check_expiry(rotation.expires_at)?;
    let (secret, token) = mint();
    deps.db
        .transaction(async |tx| {
            let life = store::lock(tx, ctx.scope.unit(), id).await?.ok_or(ApiKeyError::NotFound)?;
            rules::check_rotatable(life)?;
            let before = find_of_person(tx, ctx, id).await?;
            let unit = before.business_unit_id;
            business_units::service::require_in_use::<ApiKeyError>(tx, ctx, unit).await?;
            let new = NewApiKey {
                name: before.name,
                capability: before.capability,
                workspace_ids: before.workspace_ids,
                expires_at: rotation.expires_at.or(before.expires_at),
            };
            let key = insert(deps, tx, unit, &new, &secret, owner).await?;
            store::supersede(tx, unit, id, key.id, overlap_hours).await?;
            let details = json!({
                "superseded_by_id": key.id, "overlap_hours": overlap_hours, "token_prefix": key.token_prefix,
                "old_token_prefix": before.token_prefix, "owner_before": before.user_id,
            });
            audit::service::record(tx, &entry(ctx.actor.clone(), Action::ApiKeyRotate, unit, id, details))
                .await?;
            Ok(MintedKey { key, token })
        })
        .await
}

/// Ends a key. Ending an ended one is success.
pub async fn revoke(deps: &Deps, ctx: &Ctx, id: ApiKeyId) -> Result<ApiKeyView, ApiKeyError> {
    ctx.require(Permission::AdministerKeys)?;
    deps.db
        .transaction(async |tx| {
            let before = store::find(tx, ctx.scope.unit(), id).await?.ok_or(ApiKeyError::NotFound)?;
            let unit = before.business_unit_id;
            if store::revoke(tx, unit, id, "revoked").await? {
                let details = json!({ "token_prefix": before.token_prefix });
                audit::service::record(
                    tx,
                    &entry(ctx.actor.clone(), Action::ApiKeyRevoke, unit, id, details),
                )
                .await?;
            }
            store::find(tx, Some(unit), id).await?.ok_or(ApiKeyError::NotFound)
        })
        .await
}

/// Ends the keys of somebody who may act in these units only, wherever else they have some: for good, so that none comes
/// back with its owner. Call it in the transaction that takes their place away, which records what is given back.
pub async fn end_elsewhere(
    tx: &Tx<'_>,
    actor: &Actor,
    owner: UserId,
    remaining: &[BusinessUnitId],
) -> Result<Vec<Entry>, DbError> {
    let ended = store::revoke_elsewhere(tx, owner, remaining, "its owner left").await?;
    let entry = |(id, unit)| {
        let details = json!({ "reason": "its owner left", "user_id": owner });
        entry(actor.clone(), Action::ApiKeyRevoke, unit, id, details)
    };
    Ok(ended.into_iter().map(entry).collect())
}

/// Makes a key of a trust rule. The caller's transaction records why.
pub async fn create_for_rule(tx: &Tx<'_>, deps: &Deps, new: &KeyOfRule<'_>) -> Result<RuleKey, DbError> {
    let id: ApiKeyId = deps.ids.mint();
    let (secret, token) = mint();
    let expires_at = store::insert_of_rule(tx, id, new, &secret).await?;
    if let Some(listed) = &new.workspace_ids {
        store::confine(tx, new.unit, id, rules::distinct(listed)).await?;
    }
    Ok(RuleKey { id, token, token_prefix: secret.prefix, expires_at })
}

/// Removes the keys of CI systems that are over for good. Returns how many rows went.
pub async fn forget(deps: &Deps) -> Result<u64, DbError> {
    store::forget(&deps.db.conn().await?).await
}

/// A key that somebody made. One of a trust rule lives for minutes and is nobody's: it gets no other token.
async fn find_of_person(tx: &Tx<'_>, ctx: &Ctx, id: ApiKeyId) -> Result<ApiKeyView, ApiKeyError> {
    let key = store::find(tx, ctx.scope.unit(), id).await?;
    key.filter(|key| key.trust_rule_id.is_none()).ok_or(ApiKeyError::NotFound)
}

async fn insert(
    deps: &Deps,
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    new: &NewApiKey,
    secret: &Secret,
    owner: UserId,
) -> Result<ApiKeyView, ApiKeyError> {
    let id: ApiKeyId = deps.ids.mint();
    if !store::insert(tx, id, unit, new, secret, owner).await? {
        return Err(ApiKeyError::Invalid { field: "expires_at", reason: "must be in the future" });
    }
    if let Some(listed) = &new.workspace_ids {
        let wanted = rules::distinct(listed);
        let count = wanted.len() as u64;
        if store::confine(tx, unit, id, wanted).await? != count {
            return Err(ApiKeyError::Invalid {
                field: "workspace_ids",
                reason: "names a workspace that is not in this business unit",
            });
        }
    }
    store::find(tx, Some(unit), id).await?.ok_or(ApiKeyError::NotFound)
}

/// A new token, and what is kept of it. 32 random bytes need no slow hash.
fn mint() -> (Secret, String) {
    let random: [u8; 32] = rand::random();
    let token = [rules::TOKEN_PREFIX, &URL_SAFE_NO_PAD.encode(random)].concat();
    let prefix = token[..rules::SHOWN_CHARS].to_owned();
    (Secret { prefix, hash: Sha256Digest::of(token.as_bytes()) }, token)
}

fn entry(actor: Actor, action: Action, unit: BusinessUnitId, id: ApiKeyId, details: Value) -> Entry {
    Entry {
        business_unit_id: Some(unit),
        actor,
        action,
        resource_type: "api_key",
        resource_id: id.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    }
}
