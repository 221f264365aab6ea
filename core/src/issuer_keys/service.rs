//! What is published of the issuer, and changing the key that signs. None of it opens a private key.

use serde_json::{Value, json};

use super::store;
use super::{
    Discovery, IssuerError, IssuerKeyView, IssuerOff, Jwks, RotateIssuerKey, RotatedIssuerKey, rules,
};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Tx};
use crate::ids::IssuerKeyId;
use crate::page::{Page, PageRequest};

/// Where the keys are published, below the issuer's name.
pub const JWKS_PATH: &str = "/.well-known/jwks.json";
const CLAIMS: [&str; 15] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "nbf",
    "jti",
    "business_unit_id",
    "business_unit",
    "workspace_id",
    "workspace",
    "environment",
    "branch",
    "run_id",
    "phase",
];

/// The issuer's name, or why there is none.
pub fn issuer(deps: &Deps) -> Result<String, IssuerOff> {
    rules::issuer(&deps.public_url, deps.allow_private_addresses)
}

/// What clouds ask for first.
pub fn discovery(deps: &Deps) -> Result<Discovery, IssuerError> {
    let issuer = issuer(deps)?;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Ok(Discovery {
        jwks_uri: format!("{issuer}{JWKS_PATH}"),
        issuer,
        response_types_supported: words(&["id_token"]),
        subject_types_supported: words(&["public"]),
        id_token_signing_alg_values_supported: words(&["RS256"]),
        claims_supported: words(&CLAIMS),
    })
}

/// The public keys. None before the first token.
pub async fn jwks(deps: &Deps) -> Result<Jwks, IssuerError> {
    issuer(deps)?;
    Ok(Jwks { keys: store::published(&deps.db.conn().await?).await? })
}

/// Every key that is or was published lately, newest first.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<IssuerKeyView>, IssuerError> {
    ctx.require(Permission::AdministerPlatform)?;
    let rows = store::list(&deps.db.conn().await?, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |key| key.kid.into()))
}

/// Lets the next key sign, in the caller's transaction, so that an idempotency key can commit with it. The function that
/// signs makes another next one when it next signs.
pub async fn rotate(
    deps: &Deps,
    tx: &Tx<'_>,
    ctx: &Ctx,
    request: &RotateIssuerKey,
) -> Result<RotatedIssuerKey, IssuerError> {
    ctx.require(Permission::AdministerPlatform)?;
    // Two at once would both retire the same one.
    store::lock(tx).await?;
    if !request.at_once {
        match store::next_is_known(tx, deps.limits.issuer_key_lead).await? {
            Some(true) => {}
            Some(false) => {
                return Err(IssuerError::NextNotReady(
                    "has not been published for long enough: whoever keeps a copy of the published keys would refuse its tokens",
                ));
            }
            None => {
                return Err(IssuerError::NextNotReady(
                    "is not there yet: the next run with a token makes it, or takes the next of PLUMBLINE_ISSUER_KMS_KEYS",
                ));
            }
        }
    }
    let published_for = if request.at_once { std::time::Duration::ZERO } else { deps.limits.issuer_key_tail };
    let retired = store::retire_signing(tx, published_for).await?;
    let signing = store::promote_next(tx).await?;
    if let Some(id) = signing.as_ref().or(retired.as_ref()).map(|key| key.kid) {
        let details = json!({
            "retired": retired.as_ref().map(|key| key.kid), "signing": signing.as_ref().map(|key| key.kid),
            "at_once": request.at_once,
        });
        record(tx, ctx.actor.clone(), Action::IssuerKeyRotate, id, details).await?;
    }
    Ok(RotatedIssuerKey { retired, signing })
}

/// Removes keys that have long been published no more.
pub async fn forget(deps: &Deps) -> Result<u64, DbError> {
    store::forget(&deps.db.conn().await?).await
}

/// Records what was done with a key.
pub(super) async fn record(
    tx: &Tx<'_>,
    actor: Actor,
    action: Action,
    id: IssuerKeyId,
    details: Value,
) -> Result<(), DbError> {
    let entry = Entry {
        business_unit_id: None,
        actor,
        action,
        resource_type: "issuer_key",
        resource_id: id.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    };
    audit::service::record(tx, &entry).await
}
