//! Reading bodies: small ones inline, large ones by a signed URL.

use bytes::Bytes;
use serde_json::json;

use super::bodies::{BodyAt, stream};
use super::{Author, StateActor, find_row};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::ids::{StateVersionId, WorkspaceId};
use crate::ports::BlobError;
use crate::protocol::Presigned;
use crate::tfstates::{Addresses, StateError, StateHead, contents, store};

/// A state's body, or the way to it.
#[derive(Clone, Debug)]
pub enum StateBody {
    /// There is no state yet.
    Empty,
    /// The body.
    Inline {
        /// As it was written.
        bytes: Bytes,
        /// Its MD5.
        md5: [u8; 16],
    },
    /// Too large for an answer: to be had there.
    Elsewhere(Presigned),
}

/// The head's body. A person's read is audited; a run's is part of the run.
pub async fn read(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
) -> Result<StateBody, StateError> {
    let row = {
        let conn = deps.db.conn().await?;
        if let StateActor::Person(ctx) = actor {
            ctx.require(Permission::ReadState)?;
        }
        let row = find_row(&conn, actor.unit(), workspace_id).await?;
        if let (StateActor::Person(_), Some(head)) = (actor, &row.head) {
            let details = json!({ "version_id": head.version_id, "serial": head.serial });
            audit::service::record(&conn, &actor.author().entry(&row, Action::StateRead, details)).await?;
        }
        row
    };
    match row.head {
        None => Ok(StateBody::Empty),
        Some(head) => body(deps, &head.key, head.size_bytes, head.md5).await,
    }
}

/// The body of one version.
pub async fn download(deps: &Deps, ctx: &Ctx, id: StateVersionId) -> Result<StateBody, StateError> {
    ctx.require(Permission::ReadState)?;
    let version = {
        let conn = deps.db.conn().await?;
        let version = store::find_version(&conn, ctx.scope.unit(), id)
            .await?
            .ok_or(StateError::NotFound("state version"))?;
        let details = json!({ "version_id": id, "serial": version.view.serial });
        let (unit, workspace_id) = (version.business_unit_id, version.view.workspace_id);
        let entry = Author::person(ctx).entry_in(unit, workspace_id, Action::StateRead, details);
        audit::service::record(&conn, &entry).await?;
        version
    };
    body(deps, &version.key, version.view.size_bytes, version.md5).await
}

async fn body(deps: &Deps, key: &str, size_bytes: i64, md5: [u8; 16]) -> Result<StateBody, StateError> {
    if usize::try_from(size_bytes).is_ok_and(|size| size <= deps.limits.inline_read_bytes_max) {
        return Ok(StateBody::Inline { bytes: fetch(deps, key).await?, md5 });
    }
    // A redirect to nothing would look like "no state" to a client: it takes 404 for that.
    if deps.blobs.head(key).await?.is_none() {
        return Err(StateError::BodyMissing(key.to_owned()));
    }
    Ok(StateBody::Elsewhere(deps.blobs.presign_get(key, deps.limits.download_url_age).await?))
}

/// A body that a row says exists.
pub(super) async fn fetch(deps: &Deps, key: &str) -> Result<Bytes, StateError> {
    deps.blobs.get(key).await.map_err(|error| match error {
        BlobError::NotFound(key) => StateError::BodyMissing(key),
        other => other.into(),
    })
}

/// The addresses in the state that a head names; of no state there are none. `None`: it has too many, or is no state that
/// can be read.
pub async fn addresses(deps: &Deps, head: Option<&StateHead>) -> Result<Option<Addresses>, StateError> {
    let Some(head) = head else { return Ok(Some(Addresses::default())) };
    let body = BodyAt::new(&head.key, head.size_bytes);
    Ok(stream(deps, &body, contents::addresses).await?.ok())
}
