//! The secrets that access tokens are signed with: made when somebody first signs in, replaced by superadmins.
//!
//! One signs at a time. Those before it are accepted until their overlap is over, which is at most as long as the tokens
//! that they signed live. A request reads the secret that its token names with everything else that it has to know about
//! its caller: no function keeps one, so what is rotated here holds everywhere with the next request.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::jwt_secrets_store as store;
use super::{SessionError, tokens};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::config::{registry, service as config};
use crate::db::{DbError, Query, Tx};
use crate::ids::{JwtSecretId, UserId};
use crate::page::{Page, PageRequest};
use crate::secrets::{Domain, Keyring, Place, SealError};

/// Bytes of a secret: as many as the digest that signs has.
const SECRET_BYTES: usize = 32;

/// A secret, opened.
pub(super) struct JwtSecret {
    pub id: JwtSecretId,
    pub bytes: [u8; SECRET_BYTES],
}

impl std::fmt::Debug for JwtSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JwtSecret").field("id", &self.id).finish_non_exhaustive()
    }
}

impl JwtSecret {
    /// Opens one as it is stored.
    pub(super) fn open(keys: &Keyring, id: JwtSecretId, sealed: &str) -> Result<Self, SealError> {
        let text = keys.open(Domain::Sessions, place(id), sealed)?;
        let mut bytes = [0; SECRET_BYTES];
        hex::decode_to_slice(text.expose(), &mut bytes)
            .map_err(|_| SealError::Unreadable("it is no secret for tokens"))?;
        Ok(Self { id, bytes })
    }

    /// Opens one that a token names. What no key opens proves nothing: to its bearer the token is not valid.
    pub(super) fn open_named(keys: &Keyring, id: JwtSecretId, sealed: &str) -> Result<Self, SessionError> {
        Self::open(keys, id, sealed).map_err(|error| match error {
            SealError::Unreadable(why) => {
                tracing::warn!(jwt_secret.id = %id, why, "a token names a secret that cannot be opened");
                tokens::INVALID
            }
            SealError::Key(_) => error.into(),
        })
    }
}

fn place(id: JwtSecretId) -> Place {
    Place { table: "jwt_secrets", column: "sealed", row: id.into() }
}

/// One secret, without what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct JwtSecretView {
    /// Named by the header of the tokens that it signed.
    pub kid: JwtSecretId,
    /// Who made it; absent for the first one.
    pub created_by: Option<UserId>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Since when another one signs; absent for the one that does.
    pub retired_at: Option<DateTime<Utc>>,
    /// Until when its tokens are accepted; absent for the one that signs.
    pub accepted_until: Option<DateTime<Utc>>,
}

/// How to replace the secret.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RotateJwtSecret {
    /// How long tokens of the old one are still accepted; absent is as long as an access token lives, which is also the
    /// longest. Secrets replaced earlier are accepted no longer than that either. With 0 everybody needs a new access token
    /// at once, which programs get with their refresh token.
    #[schema(minimum = 0)]
    pub overlap_minutes: Option<u32>,
}

/// The secret that signs, as it was found. There is none before anybody has signed in.
pub(super) async fn signing(
    deps: &Deps,
    found: Option<(JwtSecretId, String)>,
) -> Result<JwtSecret, SessionError> {
    let Some((id, sealed)) = found else { return make_first(deps).await };
    match JwtSecret::open(&deps.keys, id, &sealed) {
        Err(SealError::Unreadable(why)) => replace_unreadable(deps, id, why).await,
        opened => Ok(opened?),
    }
}

/// Another one signs from now on: otherwise nobody could sign in, not even to replace it. The lost one has its overlap all
/// the same, because its root key may come back.
async fn replace_unreadable(
    deps: &Deps,
    lost: JwtSecretId,
    why: &'static str,
) -> Result<JwtSecret, SessionError> {
    tracing::error!(jwt_secret.id = %lost, why, "the secret that signs tokens cannot be opened; it is replaced");
    let (id, sealed) = fresh(deps)?;
    let (id, sealed) = deps
        .db
        .transaction(async |tx| {
            store::lock(tx).await?;
            match store::find_signing(tx).await? {
                // Somebody else's sign-in was faster.
                Some((signing, sealed)) if signing != lost => Ok((signing, sealed)),
                _ => {
                    let overlap = overlap(deps, tx, &RotateJwtSecret::default()).await?;
                    store::retire(tx, overlap).await?;
                    store::insert(tx, id, &sealed, None).await?;
                    let details =
                        json!({ "retired": lost, "overlap_seconds": overlap.as_secs(), "reason": why });
                    record(tx, Actor::System, Action::JwtSecretRotate, id, details).await?;
                    Ok::<_, SessionError>((id, sealed.clone()))
                }
            }
        })
        .await?;
    Ok(JwtSecret::open(&deps.keys, id, &sealed)?)
}

async fn make_first(deps: &Deps) -> Result<JwtSecret, SessionError> {
    let (id, sealed) = fresh(deps)?;
    let (id, sealed) = deps
        .db
        .transaction(async |tx| {
            // Of several first sign-ins one makes it, the others wait for it here.
            if store::insert_first(tx, id, &sealed).await? {
                record(tx, Actor::System, Action::JwtSecretCreate, id, json!({})).await?;
            }
            let signing = store::find_signing(tx).await?;
            signing.ok_or_else(|| DbError::Row("no secret signs tokens although one was made".into()))
        })
        .await?;
    Ok(JwtSecret::open(&deps.keys, id, &sealed)?)
}

/// Makes the secret that signs from now on, in the caller's transaction, so that an idempotency key can commit with it.
pub async fn rotate(
    deps: &Deps,
    tx: &Tx<'_>,
    ctx: &Ctx,
    request: &RotateJwtSecret,
) -> Result<JwtSecretView, SessionError> {
    ctx.require(Permission::AdministerPlatform)?;
    let overlap = overlap(deps, tx, request).await?;
    // Two at once would both retire the same one.
    store::lock(tx).await?;
    let retired = store::retire(tx, overlap).await?;
    let (id, sealed) = fresh(deps)?;
    let made = store::insert(tx, id, &sealed, ctx.actor.user_id()).await?;
    let details = json!({ "retired": retired, "overlap_seconds": overlap.as_secs() });
    record(tx, ctx.actor.clone(), Action::JwtSecretRotate, id, details).await?;
    Ok(made)
}

/// Every secret whose tokens may still be about, newest first.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<JwtSecretView>, SessionError> {
    ctx.require(Permission::AdministerPlatform)?;
    let rows = store::list(&deps.db.conn().await?, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |secret| secret.kid.into()))
}

async fn overlap(
    deps: &Deps,
    query: &impl Query,
    request: &RotateJwtSecret,
) -> Result<Duration, SessionError> {
    let setting = &registry::ACCESS_TOKEN_EXPIRE_MINUTES;
    let longest = config::platform(query, &[setting]).await?.duration(setting, &deps.limits);
    match request.overlap_minutes.map(|minutes| Duration::from_secs(u64::from(minutes) * 60)) {
        None => Ok(longest),
        Some(asked) if asked <= longest => Ok(asked),
        Some(_) => Err(SessionError::OverlapTooLong { minutes_max: longest.as_secs() / 60 }),
    }
}

fn fresh(deps: &Deps) -> Result<(JwtSecretId, String), SealError> {
    let id: JwtSecretId = deps.ids.mint();
    let bytes: [u8; SECRET_BYTES] = rand::random();
    Ok((id, deps.keys.seal(Domain::Sessions, place(id), &hex::encode(bytes))?))
}

async fn record(
    tx: &Tx<'_>,
    actor: Actor,
    action: Action,
    id: JwtSecretId,
    details: serde_json::Value,
) -> Result<(), DbError> {
    let entry = Entry {
        business_unit_id: None,
        actor,
        action,
        resource_type: "jwt_secret",
        resource_id: id.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    };
    audit::service::record(tx, &entry).await
}
