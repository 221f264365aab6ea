//! What `signin` does with the provider's answer.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::rules::CODE_AGE;
use super::settings::Provider;
use super::store::{self, NewCode};
use super::{Cli, Identity, OidcError, Refusal};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::db::DbError;
use crate::digest::Sha256Digest;
use crate::sessions::Origin;
use crate::sessions::throttle::Attempt;
use crate::users::provided::{self, Admitted, ProvidedError};

const CODE_PREFIX: &str = "plo_";
/// How often a transaction that lost a race for somebody's row is tried.
const TRIES_MAX: usize = 3;
/// How long a return is remembered.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Uses a state up, before anybody is asked anything with what came with it.
pub async fn claim(deps: &Deps, state: &str) -> Result<(), OidcError> {
    if store::claim(&deps.db.conn().await?, digest(state)).await? {
        Ok(())
    } else {
        Err(Refusal::Replayed.into())
    }
}

/// Lets somebody in: finds, links or makes them, gives what their groups give, and makes a one-time code.
pub async fn admit(
    deps: &Deps,
    provider: &Provider,
    state: &str,
    cli: Option<&Cli>,
    who: &Identity,
    attempt: Attempt,
) -> Result<String, OidcError> {
    let default = provider.default.as_ref().map(|(slug, role)| (slug.as_str(), *role));
    let granted = provider.mapping.given(who.groups.as_deref().unwrap_or_default(), default);
    let code = [CODE_PREFIX, &URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())].concat();
    let mut keys = Some(attempt);
    for _ in 0..TRIES_MAX {
        let tried = deps
            .db
            .transaction(async |tx| {
                let admitted = provided::admit(tx, deps.ids, who, &granted).await?;
                let Admitted { id, generation, entries, .. } = admitted;
                let new = NewCode {
                    state: digest(state),
                    user: id,
                    generation,
                    code: digest(&code),
                    challenge: cli.map(|cli| cli.challenge),
                    age: CODE_AGE,
                };
                if !store::set_code(tx, &new).await? {
                    return Err(Refusal::Replayed.into());
                }
                if let Some(attempt) = keys.take() {
                    attempt.forgive(tx).await?;
                }
                for entry in &entries {
                    audit::service::record(tx, entry).await?;
                }
                Ok(())
            })
            .await;
        match tried {
            Ok(()) => return Ok(code),
            Err(ProvidedError::Raced) => {}
            Err(ProvidedError::Refused(refusal)) => return Err(refusal.into()),
            Err(ProvidedError::Db(error)) => return Err(error.into()),
        }
    }
    Err(OidcError::Away)
}

/// Writes down that somebody was not let in, and why. Never what they brought.
pub async fn record_failure(
    deps: &Deps,
    refusal: Refusal,
    who: Option<&Identity>,
    origin: &Origin,
) -> Result<(), DbError> {
    let details = json!({
        "method": "oidc", "reason": refusal.as_str(), "address": origin.address,
        "email": who.and_then(|who| who.email.as_deref()), "subject": who.map(|who| &who.subject),
    });
    let entry = Entry {
        business_unit_id: None,
        actor: Actor::System,
        action: Action::LoginFailed,
        resource_type: "user",
        resource_id: String::new(),
        workspace_id: None,
        run_id: None,
        details,
    };
    deps.db.transaction(async |tx| audit::service::record(tx, &entry).await).await
}

/// Removes returns that are over for good. Returns how many rows went.
pub async fn forget(deps: &Deps) -> Result<u64, DbError> {
    store::forget(&deps.db.conn().await?, REMEMBERED).await
}

pub(super) fn digest(text: &str) -> Sha256Digest {
    Sha256Digest::of(text.as_bytes())
}
