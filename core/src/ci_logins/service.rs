//! Use cases of trust rules and of the sign-in of CI systems.

use std::time::Duration;

use jsonwebtoken::jwk::JwkSet;
use serde_json::{Value, json};

use super::model::{CiClaims, CiKey, CiLogin, NewTrustRule, TrustRuleView};
use super::store::{self, Issuer};
use super::tokens::{self, Presented};
use super::{CiLoginError, rules};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission, TraceParent};
use crate::api_keys::{self, KeyOfRule};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::db::{DbError, Tx};
use crate::ids::{BusinessUnitId, TrustRuleId};
use crate::page::{Page, PageRequest};
use crate::sessions::{Origin, throttle};
use crate::tasks::{self, NewTask, TaskKind};

/// The name of the unique constraint on names.
const NAME_CONSTRAINT: &str = "ci_trust_rules_name";
/// Rules of a unit: all of one issuer are looked at whenever somebody presents a token.
const RULES_MAX: i64 = 200;
/// How soon a short task usually has its result.
const PENDING_SECONDS: u64 = 2;

/// Makes a rule in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: &NewTrustRule,
) -> Result<TrustRuleView, CiLoginError> {
    ctx.require(Permission::AdministerKeys)?;
    let unit = ctx.unit()?;
    rules::check(new, deps.allow_private_addresses)?;
    if store::count(tx, unit).await? >= RULES_MAX {
        return Err(CiLoginError::TooMany { max: RULES_MAX });
    }
    let id: TrustRuleId = deps.ids.mint();
    store::insert(tx, id, unit, new, ctx.actor.user_id()).await.map_err(duplicate)?;
    if let Some(listed) = &new.workspace_ids {
        let wanted = api_keys::distinct(listed);
        let count = wanted.len() as u64;
        if store::confine(tx, unit, id, wanted).await? != count {
            return Err(CiLoginError::Invalid {
                field: "workspace_ids",
                reason: "names a workspace that is not in this business unit",
            });
        }
    }
    let made = store::find(tx, Some(unit), id).await?.ok_or(CiLoginError::NotFound)?;
    // The first job need not wait for them.
    ask_for_keys(tx, deps, &made, ctx.traceparent.clone()).await?;
    let actor = ctx.actor.clone();
    audit::service::record(tx, &entry(actor, Action::CiTrustRuleCreate, unit, id, json!(made))).await?;
    Ok(made)
}

/// One rule.
pub async fn get(deps: &Deps, ctx: &Ctx, id: TrustRuleId) -> Result<TrustRuleView, CiLoginError> {
    ctx.require(Permission::AdministerKeys)?;
    store::find(&deps.db.conn().await?, ctx.scope.unit(), id).await?.ok_or(CiLoginError::NotFound)
}

/// The unit's rules, newest first.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<TrustRuleView>, CiLoginError> {
    ctx.require(Permission::AdministerKeys)?;
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, ctx.unit()?, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |rule| rule.id.into()))
}

/// Removes a rule; the keys that it gave are dead with it.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: TrustRuleId) -> Result<(), CiLoginError> {
    ctx.require(Permission::AdministerKeys)?;
    deps.db
        .transaction(async |tx| {
            let before = store::find(tx, ctx.scope.unit(), id).await?.ok_or(CiLoginError::NotFound)?;
            let unit = before.business_unit_id;
            business_units::service::require_in_use::<CiLoginError>(tx, ctx, unit).await?;
            if !store::delete(tx, unit, id).await? {
                return Err(CiLoginError::NotFound);
            }
            let details = json!({ "name": before.name, "issuer": before.issuer, "subject": before.subject });
            let entry = entry(ctx.actor.clone(), Action::CiTrustRuleDelete, unit, id, details);
            audit::service::record(tx, &entry).await?;
            Ok(())
        })
        .await
}

/// A short key for a job's identity token.
pub async fn login(deps: &Deps, wish: &CiLogin, origin: &Origin) -> Result<CiKey, CiLoginError> {
    if wish.business_unit.is_none() && wish.trust_rule_id.is_none() {
        return Err(CiLoginError::Invalid {
            field: "business_unit",
            reason: "or trust_rule_id must say whose trust rules are meant",
        });
    }
    let attempt = throttle::admit_ci(deps, origin).await?;
    let made = trade(deps, wish, origin).await;
    if matches!(made, Ok(_) | Err(CiLoginError::KeysPending { .. })) {
        attempt.forgive(&deps.db.conn().await?).await?;
    }
    made
}

async fn trade(deps: &Deps, wish: &CiLogin, origin: &Origin) -> Result<CiKey, CiLoginError> {
    let presented = tokens::presented(&wish.token)?;
    let conn = deps.db.conn().await?;
    let slug = wish.business_unit.as_deref();
    let known = store::rules_of_issuer(&conn, &presented.issuer, slug, wish.trust_rule_id).await?;
    let Some(first) = known.first() else { return Err(tokens::UNPROVEN) };
    let issuer = store::issuer(&conn, &presented.issuer, first.business_unit_id).await?;
    drop(conn);
    let Some(keys) = usable_keys(&issuer, &presented) else { return fetch(deps, first, &issuer).await };
    let key = tokens::find_key(&keys, &presented).ok_or(tokens::UNPROVEN)?;
    let claims = tokens::read(&wish.token, &presented, key)?;
    let chosen = rules::check_time(&claims, issuer.at).and_then(|()| rules::choose(&known, &claims));
    match chosen {
        Ok(rule) => make_key(deps, &presented, &claims, rule).await,
        Err(refusal) => {
            // Whoever it was had a token of an issuer that the unit trusts: the unit learns of it.
            let details = json!({
                "issuer": presented.issuer, "subject": claims.sub, "reason": refusal.to_string(),
                "address": origin.address,
            });
            let unit = first.business_unit_id;
            let entry =
                login_entry(Action::CiLoginFailed, unit, ("business_unit", unit.to_string()), details);
            deps.db.transaction(async |tx| audit::service::record(tx, &entry).await).await?;
            Err(refusal)
        }
    }
}

async fn make_key(
    deps: &Deps,
    presented: &Presented,
    claims: &CiClaims,
    rule: &TrustRuleView,
) -> Result<CiKey, CiLoginError> {
    let name = format!("ci: {}", claims.sub.chars().take(200).collect::<String>());
    let wanted = KeyOfRule {
        unit: rule.business_unit_id,
        rule: rule.id,
        name: &name,
        capability: rule.capability,
        workspace_ids: rule.workspace_ids.clone(),
        minutes: rule.key_minutes,
    };
    deps.db
        .transaction(async |tx| {
            let made = match api_keys::service::create_for_rule(tx, deps, &wanted).await {
                // The rule was removed while the token was checked.
                Err(DbError::Missing { .. }) => return Err(tokens::UNPROVEN),
                made => made?,
            };
            let details = json!({
                "issuer": presented.issuer, "subject": claims.sub, "trust_rule_id": rule.id, "rule": rule.name,
                "capability": rule.capability, "expires_at": made.expires_at, "token_prefix": made.token_prefix,
            });
            let key = ("api_key", made.id.to_string());
            let entry = login_entry(Action::CiLogin, rule.business_unit_id, key, details);
            audit::service::record(tx, &entry).await?;
            Ok(CiKey {
                token: made.token,
                token_type: "bearer",
                expires_at: made.expires_at,
                capability: rule.capability,
                business_unit_id: rule.business_unit_id,
                trust_rule_id: rule.id,
            })
        })
        .await
}

fn login_entry(
    action: Action,
    unit: BusinessUnitId,
    (resource_type, resource_id): (&'static str, String),
    details: Value,
) -> Entry {
    Entry {
        business_unit_id: Some(unit),
        actor: Actor::System,
        action,
        resource_type,
        resource_id,
        workspace_id: None,
        run_id: None,
        details,
    }
}

/// The issuer's keys, if they are young enough; `None` if they must be fetched first: they are old, or the token names a
/// key that may have been published since.
fn usable_keys(issuer: &Issuer, presented: &Presented) -> Option<JwkSet> {
    let (jwks, fetched_at) = (issuer.jwks.as_ref()?, issuer.fetched_at?);
    if issuer.at - fetched_at > rules::KEYS_AGE {
        return None;
    }
    let keys = match serde_json::from_value::<JwkSet>(jwks.clone()) {
        Ok(keys) => keys,
        Err(error) => {
            // Checked when they were stored, perhaps by an older version of us.
            tracing::warn!(%error, issuer = presented.issuer, "stored keys cannot be read; they are fetched again");
            return None;
        }
    };
    let is_known = tokens::find_key(&keys, presented).is_some();
    (is_known || issuer.at - fetched_at < rules::KEYS_PAUSE).then_some(keys)
}

/// Asks for the issuer's keys, unless the unit has just done that.
async fn fetch<T>(deps: &Deps, rule: &TrustRuleView, issuer: &Issuer) -> Result<T, CiLoginError> {
    let was_just_asked = issuer.asked_at.is_some_and(|asked| issuer.at - asked < rules::KEYS_PAUSE);
    if !was_just_asked {
        deps.db.transaction(async |tx| ask_for_keys(tx, deps, rule, None).await).await?;
        deps.waker.wake(Duration::ZERO).await;
    }
    Err(CiLoginError::KeysPending { retry_after_seconds: PENDING_SECONDS })
}

async fn ask_for_keys(
    tx: &Tx<'_>,
    deps: &Deps,
    rule: &TrustRuleView,
    traceparent: Option<TraceParent>,
) -> Result<(), CiLoginError> {
    store::asked(tx, rule.business_unit_id, &rule.issuer).await?;
    let kind = TaskKind::IssuerKeys;
    let dedupe_key = format!("{}:{}", kind.as_str(), rule.issuer);
    let mut task = NewTask::new(kind, rule.business_unit_id, rule.id, dedupe_key);
    task.payload = json!({ "issuer": rule.issuer });
    task.traceparent = traceparent;
    tasks::service::enqueue(tx, deps.ids, &task).await?;
    Ok(())
}

fn duplicate(error: DbError) -> CiLoginError {
    if error.is_duplicate_of(NAME_CONSTRAINT) { CiLoginError::Duplicate } else { error.into() }
}

fn entry(actor: Actor, action: Action, unit: BusinessUnitId, id: TrustRuleId, details: Value) -> Entry {
    Entry {
        business_unit_id: Some(unit),
        actor,
        action,
        resource_type: "ci_trust_rule",
        resource_id: id.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    }
}
