//! Use cases of one's own sessions, and the end of somebody's.

use serde_json::json;

use super::model::{Bearer, SessionView};
use super::{SessionError, store};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Tx};
use crate::ids::{SessionId, UserId};
use crate::page::{Page, PageRequest};

/// The caller's live sessions, newest first.
pub async fn list(
    deps: &Deps,
    bearer: &Bearer,
    page: PageRequest,
) -> Result<Page<SessionView>, SessionError> {
    bearer.require_settled()?;
    let rows = store::list(&deps.db.conn().await?, bearer.id, bearer.session, page).await?;
    Ok(Page::from_rows(rows, page.limit, |session| session.id.into()))
}

/// Ends one of the caller's sessions; also the one that asks.
pub async fn end(deps: &Deps, bearer: &Bearer, id: SessionId) -> Result<(), SessionError> {
    bearer.require_settled()?;
    deps.db
        .transaction(async |tx| {
            // Somebody else's session, and one that is over, do not exist.
            if !store::is_live(tx, id, bearer.id).await? || !store::end(tx, id, "ended by its owner").await? {
                return Err(SessionError::NotFound);
            }
            let entry = Entry {
                business_unit_id: None,
                actor: actor(bearer),
                action: Action::SessionEnd,
                resource_type: "session",
                resource_id: id.to_string(),
                workspace_id: None,
                run_id: None,
                details: json!({ "user_id": bearer.id, "by_session": bearer.session }),
            };
            Ok(audit::service::record(tx, &entry).await?)
        })
        .await
}

/// Ends every session of the caller, this one too. Open to those who must change their password: it only takes away.
pub async fn end_everywhere(deps: &Deps, bearer: &Bearer) -> Result<(), SessionError> {
    deps.db
        .transaction(async |tx| {
            let ended = end_all_of(tx, bearer.id, "signed out everywhere").await?;
            audit::service::record(tx, &ended_all(actor(bearer), bearer.id, ended)).await
        })
        .await?;
    Ok(())
}

/// Ends every session of a person, with all tokens that were ever made for them, in the caller's transaction. The caller
/// records it. How many sessions there were.
pub async fn end_all_of(tx: &Tx<'_>, user: UserId, reason: &str) -> Result<u64, DbError> {
    store::raise_generation(tx, user).await?;
    store::end_all(tx, user, reason, None).await
}

/// Ends every session of a person but the one that asks.
pub async fn end_others_of(tx: &Tx<'_>, user: UserId, kept: SessionId, reason: &str) -> Result<u64, DbError> {
    store::end_all(tx, user, reason, Some(kept)).await
}

/// What is recorded when every session of a person was ended.
pub(crate) fn ended_all(actor: Actor, user: UserId, sessions: u64) -> Entry {
    Entry {
        business_unit_id: None,
        actor,
        action: Action::SessionEndAll,
        resource_type: "user",
        resource_id: user.to_string(),
        workspace_id: None,
        run_id: None,
        details: json!({ "user_id": user, "sessions": sessions }),
    }
}

fn actor(bearer: &Bearer) -> Actor {
    Actor::User { id: bearer.id, email: bearer.email.clone() }
}
