//! Reading bodies: small ones inline, large ones by a signed URL.

use bytes::Bytes;
use serde_json::json;
use uuid::Uuid;

use super::bodies::{BodyAt, stream};
use super::writes::home_of;
use super::{Author, StateActor, find_row, key_of};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query};
use crate::ids::{StateVersionId, WorkspaceId};
use crate::ports::{BlobError, BlobStore};
use crate::protocol::Presigned;
use crate::state_stores::{self, service::Located};
use crate::tfstates::store::StateRow;
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
    let (row, located) = {
        let conn = deps.db.conn().await?;
        if let StateActor::Person(ctx) = actor {
            ctx.require(Permission::ReadState)?;
        }
        let row = find_row(&conn, actor.unit(), workspace_id).await?;
        let entry = match (actor, &row.head) {
            (StateActor::Person(_), Some(head)) => {
                let details = json!({ "version_id": head.version_id, "serial": head.serial });
                Some(actor.author().entry(&row, Action::StateRead, details))
            }
            _ => None,
        };
        let store_id = row.head.as_ref().and_then(|head| head.store_id);
        // Together: they take one round trip.
        let (_, located) =
            futures::try_join!(record(&conn, entry), state_stores::service::locate(&conn, store_id))?;
        (row, located)
    };
    match &row.head {
        None => {
            require_home(deps, &row).await?;
            Ok(StateBody::Empty)
        }
        Some(head) => body(deps, (located, &head.key), head.size_bytes, head.md5).await,
    }
}

/// The body of one version.
pub async fn download(deps: &Deps, ctx: &Ctx, id: StateVersionId) -> Result<StateBody, StateError> {
    ctx.require(Permission::ReadState)?;
    let (version, located) = {
        let conn = deps.db.conn().await?;
        let version = store::find_version(&conn, ctx.scope.unit(), id)
            .await?
            .ok_or(StateError::NotFound("state version"))?;
        let details = json!({ "version_id": id, "serial": version.view.serial });
        let (unit, workspace_id) = (version.business_unit_id, version.view.workspace_id);
        let entry = Author::person(ctx).entry_in(unit, workspace_id, Action::StateRead, details);
        let located = state_stores::service::locate(&conn, version.store_id);
        let (_, located) = futures::try_join!(record(&conn, Some(entry)), located)?;
        (version, located)
    };
    body(deps, (located, &version.key), version.view.size_bytes, version.md5).await
}

/// Whoever reads "no state" is about to make one: told later that its place is missing, they have resources and nowhere to
/// write them down.
async fn require_home(deps: &Deps, row: &StateRow) -> Result<(), StateError> {
    let home = home_of(deps, row).await?;
    if home.store_id.is_some() {
        home.blobs.head(&key_of(row, Uuid::nil())).await?;
    }
    Ok(())
}

async fn body(
    deps: &Deps,
    (located, key): (Located, &str),
    size_bytes: i64,
    md5: [u8; 16],
) -> Result<StateBody, StateError> {
    let blobs = state_stores::service::open_located(deps, located).await?;
    if usize::try_from(size_bytes).is_ok_and(|size| size <= deps.limits.inline_read_bytes_max) {
        return Ok(StateBody::Inline { bytes: fetch(&*blobs, key).await?, md5 });
    }
    // A redirect to nothing would look like "no state" to a client: it takes 404 for that.
    if blobs.head(key).await?.is_none() {
        return Err(StateError::BodyMissing(key.to_owned()));
    }
    Ok(StateBody::Elsewhere(blobs.presign_get(key, deps.limits.download_url_age).await?))
}

async fn record(query: &impl Query, entry: Option<Entry>) -> Result<(), DbError> {
    match entry {
        Some(entry) => audit::service::record(query, &entry).await,
        None => Ok(()),
    }
}

/// A body that a row says exists.
pub(super) async fn fetch(blobs: &dyn BlobStore, key: &str) -> Result<Bytes, StateError> {
    blobs.get(key).await.map_err(|error| match error {
        BlobError::NotFound(key) => StateError::BodyMissing(key),
        other => other.into(),
    })
}

/// The addresses in the state that a head names; of no state there are none. `None`: it has too many, or is no state that
/// can be read.
pub async fn addresses(deps: &Deps, head: Option<&StateHead>) -> Result<Option<Addresses>, StateError> {
    let Some(head) = head else { return Ok(Some(Addresses::default())) };
    let body = BodyAt::of_head(deps, head).await?;
    Ok(stream(&body, contents::addresses).await?.ok())
}
