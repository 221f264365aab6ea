//! What is found in a version's body after it was accepted: its resources, how many there are, and whether it is what its
//! writer announced.

use std::collections::BTreeMap;

use serde_json::json;

use super::Author;
use super::bodies::{BodyAt, stream};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action};
use crate::db::Tx;
use crate::ids::{BusinessUnitId, WorkspaceId};
use crate::tfstates::contents::{self, Unreadable};
use crate::tfstates::store::{self, Noted};
use crate::tfstates::{StateError, StateHead};

/// What is in a state.
#[derive(Debug)]
pub(crate) struct Seen {
    /// JSON of the resources by address.
    pub(crate) resources: BTreeMap<Box<str>, Box<str>>,
    /// Whether some were left out.
    pub(crate) truncated: bool,
    /// Why there are none.
    pub(crate) unreadable: Option<Unreadable>,
    /// What is written to the version.
    pub(crate) noted: Noted,
}

/// Reads the body of a head.
pub(crate) async fn look_into(
    deps: &Deps,
    place: (BusinessUnitId, WorkspaceId),
    head: &StateHead,
) -> Result<Seen, StateError> {
    let body = BodyAt::of_head(deps, head).await?;
    let (index, readable) = stream(&body, contents::index).await?;
    let unreadable = readable.err();
    let says = &index.contents.says;
    let contradiction = match unreadable {
        Some(Unreadable::Broken | Unreadable::NoState) => Some("the body is no Terraform state"),
        Some(Unreadable::TooMany | Unreadable::Encrypted) | None => {
            says.contradicts(true, head.serial, &head.lineage)
        }
    };
    let resource_count =
        if unreadable.is_none() { i64::try_from(index.contents.resource_count).ok() } else { None };
    let emptied = resource_count == Some(0) && had_resources_before(deps, place, head).await?;
    let noted = Noted { opaque: says.is_opaque, resource_count, emptied, contradiction };
    Ok(Seen { resources: index.resources, truncated: index.truncated, unreadable, noted })
}

/// Whether the version before managed anything. If nobody has counted that yet, it is read.
async fn had_resources_before(
    deps: &Deps,
    place: (BusinessUnitId, WorkspaceId),
    head: &StateHead,
) -> Result<bool, StateError> {
    let before = store::find_version_before(&deps.db.conn().await?, place, head.version_id).await?;
    let Some(before) = before else {
        return Ok(false);
    };
    if let Some(count) = before.view.resource_count {
        return Ok(count > 0);
    }
    if before.view.opaque {
        return Ok(false);
    }
    let body = before.body(deps).await?;
    let facts = stream(&body, contents::read_facts).await?;
    Ok(facts.is_ok_and(|facts| facts.resource_count > 0))
}

/// Writes to the version what was found, with an audit entry if people should know of it.
pub(crate) async fn note(
    tx: &Tx<'_>,
    (unit, workspace_id): (BusinessUnitId, WorkspaceId),
    head: &StateHead,
    noted: &Noted,
) -> Result<(), StateError> {
    let known = store::note(tx, unit, workspace_id, head.version_id, noted).await?;
    if known.lacks(noted) {
        let details = json!({
            "version_id": head.version_id, "serial": head.serial, "resource_count": noted.resource_count,
            "emptied": noted.emptied, "contradiction": noted.contradiction,
        });
        let author = Author { actor: Actor::System, run_id: None };
        let entry = author.entry_in(unit, workspace_id, Action::StateFlag, details);
        audit::service::record(tx, &entry).await?;
    }
    Ok(())
}
