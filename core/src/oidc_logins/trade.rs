//! A one-time code against a pair of tokens, as `api` does it.

use serde::Deserialize;
use serde_json::json;

use super::rules::{self, CodeVerdict};
use super::service::digest;
use super::{OidcError, store};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Tx};
use crate::ids::{SessionId, UserId};
use crate::secrets::SecretText;
use crate::sessions::{self, Origin, TokenPair, throttle};

/// A code, and what proves whose it is.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeTrade {
    /// As it came to the page, or to the command line.
    #[schema(format = Password, value_type = String)]
    pub code: SecretText,
    /// The secret whose digest was the command line's `cli_nonce`. Absent for a browser.
    #[serde(default)]
    #[schema(format = Password, value_type = Option<String>)]
    pub cli_secret: Option<SecretText>,
}

/// What became of a code.
enum Traded {
    Opened(Box<sessions::service::Opened>),
    Refused,
}

/// Opens a session for a code. A code that comes twice ends the session that it opened.
pub async fn trade(deps: &Deps, wish: &CodeTrade, origin: &Origin) -> Result<TokenPair, OidcError> {
    let attempt = throttle::admit_code(deps, origin).await?;
    let code = digest(&wish.code);
    let secret = wish.cli_secret.as_deref();
    let traded = deps
        .db
        .transaction(async |tx| {
            let found = match store::lock_owner(tx, code).await? {
                Some(owner) => store::lock_code(tx, code).await?.map(|code| (owner, code)),
                None => None,
            };
            let Some((user, known)) = found else { return refuse(tx, None, "unknown_code", origin).await };
            match rules::judge_code(known.facts, secret) {
                CodeVerdict::OtherProgram => refuse(tx, Some(user), "other_program", origin).await,
                CodeVerdict::Expired => refuse(tx, Some(user), "code_expired", origin).await,
                CodeVerdict::Reused => {
                    // Committed although the request is refused: the session must stay ended.
                    end(tx, user, known.session, origin).await?;
                    Ok(Traded::Refused)
                }
                CodeVerdict::Trade => {
                    let opened =
                        sessions::service::open_for(tx, deps, user, known.generation, origin).await?;
                    let Some(opened) = opened else {
                        return refuse(tx, Some(user), "account_disabled", origin).await;
                    };
                    store::traded(tx, code, opened.session()).await?;
                    attempt.forgive(tx).await?;
                    opened.record(tx, "oidc", origin).await?;
                    Ok(Traded::Opened(Box::new(opened)))
                }
            }
        })
        .await?;
    match traded {
        Traded::Opened(opened) => Ok(opened.tokens(deps).await?),
        Traded::Refused => Err(OidcError::CodeInvalid),
    }
}

async fn refuse(
    tx: &Tx<'_>,
    user: Option<UserId>,
    reason: &str,
    origin: &Origin,
) -> Result<Traded, OidcError> {
    let details = json!({ "method": "oidc", "reason": reason, "address": origin.address });
    let resource_id = user.map(|user| user.to_string()).unwrap_or_default();
    record(tx, Action::LoginFailed, "user", resource_id, details).await?;
    Ok(Traded::Refused)
}

async fn end(
    tx: &Tx<'_>,
    user: UserId,
    session: Option<SessionId>,
    origin: &Origin,
) -> Result<(), OidcError> {
    let ended = match session {
        Some(session) => sessions::service::end_reused(tx, session).await?,
        None => false,
    };
    let details = json!({ "user_id": user, "session_ended": ended, "address": origin.address });
    let resource_id = session.map(|session| session.to_string()).unwrap_or_default();
    record(tx, Action::SignInCodeReused, "session", resource_id, details).await?;
    Ok(())
}

async fn record(
    tx: &Tx<'_>,
    action: Action,
    resource_type: &'static str,
    resource_id: String,
    details: serde_json::Value,
) -> Result<(), DbError> {
    let entry = Entry {
        business_unit_id: None,
        actor: Actor::System,
        action,
        resource_type,
        resource_id,
        workspace_id: None,
        run_id: None,
        details,
    };
    audit::service::record(tx, &entry).await
}
