//! What a key must look like, who is believed with one, and when it may get a new token.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike as _, Utc};

use super::ApiKeyError;
use super::model::{Life, NewApiKey, Rotation, Standing};
use crate::access::Role;
use crate::ids::WorkspaceId;
use crate::sessions::SessionError;
use crate::text::is_line;

/// What every token begins with, so that scanners for leaked secrets know one.
pub const TOKEN_PREFIX: &str = "plb_";

/// How much of a token is shown afterwards: the prefix and eight of its 43 characters.
pub(super) const SHOWN_CHARS: usize = 12;

const NAME_CHARS_MAX: usize = 255;
const WORKSPACES_MAX: usize = 500;
const OVERLAP_HOURS: u32 = 24;
const OVERLAP_HOURS_MAX: u32 = 168;

/// The role that the bearer acts with, or why they are not believed.
pub(super) fn judge(standing: &Standing) -> Result<Role, SessionError> {
    let refuse = |why| Err(SessionError::Unauthenticated(why));
    if standing.revoked {
        return refuse("the API key was revoked");
    }
    if standing.expired {
        return refuse("the API key has expired");
    }
    if standing.outdated {
        return refuse("the API key was made before this installation was restored; regenerate it");
    }
    let Some(owner) = standing.owner_role else {
        return refuse("the API key's owner may not act in its business unit any more");
    };
    if standing.unit_archived {
        return Err(SessionError::KeyUnitArchived);
    }
    Ok(owner.min(standing.capability.ceiling()))
}

/// Refuses what cannot be made.
pub(super) fn check(new: &NewApiKey) -> Result<(), ApiKeyError> {
    let invalid = |field, reason| Err(ApiKeyError::Invalid { field, reason });
    if !is_line(&new.name, NAME_CHARS_MAX) {
        return invalid("name", "must be 1 to 255 characters, not blank, without control characters");
    }
    check_expiry(new.expires_at)?;
    match new.workspace_ids.as_deref() {
        Some([]) => invalid("workspace_ids", "must name a workspace; leave it out for all of the unit"),
        Some(ids) if ids.len() > WORKSPACES_MAX => {
            invalid("workspace_ids", "must name at most 500 workspaces")
        }
        _ => Ok(()),
    }
}

/// Refuses a moment that the database cannot tell. Whether it has passed is for the database's clock to say.
pub(super) fn check_expiry(expires_at: Option<DateTime<Utc>>) -> Result<(), ApiKeyError> {
    if expires_at.is_none_or(|at| (1970..=9999).contains(&at.year())) {
        return Ok(());
    }
    Err(ApiKeyError::Invalid {
        field: "expires_at",
        reason: "must be in the future, in the year 9999 at the latest",
    })
}

/// The listed workspaces, each once.
pub fn distinct(ids: &[WorkspaceId]) -> Vec<uuid::Uuid> {
    ids.iter().map(|id| id.0).collect::<BTreeSet<_>>().into_iter().collect()
}

/// How long the old token of a rotated key stays good, in hours.
pub(super) fn overlap_hours(rotation: &Rotation) -> Result<i64, ApiKeyError> {
    match rotation.overlap_hours.unwrap_or(OVERLAP_HOURS) {
        hours if hours <= OVERLAP_HOURS_MAX => Ok(hours.into()),
        _ => Err(ApiKeyError::Invalid { field: "overlap_hours", reason: "must be at most 168" }),
    }
}

/// Refuses a new token to a key that is dead.
pub(super) fn check_alive(life: Life) -> Result<(), ApiKeyError> {
    if life.revoked {
        Err(ApiKeyError::Dead("was revoked"))
    } else if life.expired {
        Err(ApiKeyError::Dead("has expired"))
    } else {
        Ok(())
    }
}

/// Refuses to rotate a key that is dead or was rotated before.
pub(super) fn check_rotatable(life: Life) -> Result<(), ApiKeyError> {
    check_alive(life)?;
    if life.rotated { Err(ApiKeyError::Rotated) } else { Ok(()) }
}
