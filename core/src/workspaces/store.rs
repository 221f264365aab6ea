//! SQL of workspaces.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Blocked, Links, Locked, Settings, Workspace, WorkspaceFilter};
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, RunId, StateStoreId, StateVersionId, UserId, WorkspaceId};
use crate::state_stores::StateBackend;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, business_unit_id, name, kind, environment, aws_account_id, region, repo_url, repo_ref,
                    tf_working_dir, tool, tool_version, tags, state_writes, state_backend, webhook_enabled,
                    state_aws_account_id, azure_subscription_id, gcp_project_id, cluster_id, path_status, drift_status, active_run_id, blocked_at, blocked_reason, blocked_run_id, locked_at, locked_by,
                    locked_who, locked_reason, version, created_at, updated_at
             FROM workspaces ",
            $rest
        )
    };
}

fn workspace(row: &Row) -> Result<Workspace, DbError> {
    let unknown = |column: &str| DbError::Row(format!("workspaces.{column} has an unknown word"));
    macro_rules! word {
        ($column:literal, $type:ty) => {
            <$type>::parse(row.get($column)).ok_or_else(|| unknown($column))?
        };
    }
    let blocked_at: Option<chrono::DateTime<chrono::Utc>> = row.get("blocked_at");
    Ok(Workspace {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        name: row.get("name"),
        kind: word!("kind", super::WorkspaceKind),
        environment: row.get("environment"),
        aws_account_id: row.get("aws_account_id"),
        region: row.get("region"),
        repo_url: row.get("repo_url"),
        repo_ref: row.get("repo_ref"),
        tf_working_dir: row.get("tf_working_dir"),
        tool: word!("tool", super::Tool),
        tool_version: row.get("tool_version"),
        tags: serde_json::from_value(row.get("tags")).map_err(|_| unknown("tags"))?,
        state_writes: word!("state_writes", super::StateWrites),
        state_backend: word!("state_backend", StateBackend),
        webhook_enabled: row.get("webhook_enabled"),
        state_aws_account_id: row.get("state_aws_account_id"),
        azure_subscription_id: row.get("azure_subscription_id"),
        gcp_project_id: row.get("gcp_project_id"),
        cluster_id: row.get("cluster_id"),
        path_status: word!("path_status", super::PathStatus),
        drift_status: word!("drift_status", super::DriftStatus),
        active_run_id: row.get("active_run_id"),
        blocked: blocked_at.map(|at| Blocked {
            at,
            // The schema ties the two columns together.
            reason: row.get("blocked_reason"),
            run_id: row.get("blocked_run_id"),
        }),
        locked: row.get::<_, Option<chrono::DateTime<chrono::Utc>>>("locked_at").map(|at| Locked {
            at,
            // The schema ties the four columns together.
            by: row.get("locked_by"),
            who: row.get("locked_who"),
            reason: row.get("locked_reason"),
        }),
        version: row.get("version"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    })
}

const FIND: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2)");

pub(super) async fn find(
    query: &impl Query,
    scope: Scope,
    id: WorkspaceId,
) -> Result<Option<Workspace>, DbError> {
    query.query_opt(FIND, &[&id, &scope.unit()]).await?.as_ref().map(workspace).transpose()
}

// Not FOR UPDATE: rows that refer to the workspace (runs, state) may be inserted meanwhile.
const LOCK: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) FOR NO KEY UPDATE");

pub(super) async fn lock(tx: &Tx<'_>, scope: Scope, id: WorkspaceId) -> Result<Option<Workspace>, DbError> {
    tx.query_opt(LOCK, &[&id, &scope.unit()]).await?.as_ref().map(workspace).transpose()
}

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: WorkspaceId,
    unit: BusinessUnitId,
    created_by: Option<UserId>,
    settings: &Settings,
) -> Result<(), DbError> {
    tx.execute(
        include_str!("sql/insert.sql"),
        &[
            &id,
            &unit,
            &settings.name(),
            &settings.kind().as_str(),
            &settings.environment(),
            &settings.aws_account_id(),
            &settings.region(),
            &settings.repo_url(),
            &settings.repo_ref(),
            &settings.tf_working_dir(),
            &settings.tool().as_str(),
            &settings.tool_version(),
            &json!(settings.tags()),
            &settings.state_writes().as_str(),
            &settings.webhook_enabled(),
            &created_by,
            &settings.links().state_aws_account_id,
            &settings.links().azure_subscription_id,
            &settings.links().gcp_project_id,
            &settings.links().cluster_id,
            &settings.state_backend().as_str(),
        ],
    )
    .await?;
    Ok(())
}

/// What all workspaces of one import share.
pub(super) struct Import<'a> {
    pub unit: BusinessUnitId,
    pub created_by: Option<UserId>,
    pub repo_url: &'a str,
    pub repo_ref: &'a str,
}

/// Inserts those that are not there yet and returns their ids.
pub(super) async fn import(
    tx: &Tx<'_>,
    import: &Import<'_>,
    new: &[(WorkspaceId, Settings)],
) -> Result<Vec<WorkspaceId>, DbError> {
    fn column<'a>(new: &'a [(WorkspaceId, Settings)], of: impl Fn(&'a Settings) -> &'a str) -> Vec<&'a str> {
        new.iter().map(|(_, settings)| of(settings)).collect()
    }
    let link = |of: fn(&Links) -> &Option<String>| -> Vec<Option<String>> {
        new.iter().map(|(_, settings)| of(settings.links()).clone()).collect()
    };
    let ids: Vec<WorkspaceId> = new.iter().map(|(id, _)| *id).collect();
    let rows = tx
        .query(
            include_str!("sql/import.sql"),
            &[
                &ids,
                &import.unit,
                &import.created_by,
                &import.repo_url,
                &import.repo_ref,
                &column(new, Settings::name),
                &column(new, |settings| settings.kind().as_str()),
                &column(new, Settings::environment),
                &column(new, Settings::aws_account_id),
                &column(new, Settings::region),
                &column(new, Settings::tf_working_dir),
                &link(|links| &links.azure_subscription_id),
                &link(|links| &links.gcp_project_id),
            ],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

const EXISTING: &str = "SELECT id FROM workspaces WHERE business_unit_id = $1 AND id = ANY ($2)";

pub(super) async fn existing(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    ids: Vec<WorkspaceId>,
) -> Result<Vec<WorkspaceId>, DbError> {
    Ok(tx.query(EXISTING, &[&unit, &ids]).await?.iter().map(|row| row.get("id")).collect())
}

/// A workspace's place, without the repository.
pub(super) type Place = (String, String, String, String);

const PLACES: &str = "
    SELECT aws_account_id, region, environment, tf_working_dir FROM workspaces
    WHERE business_unit_id = $1 AND repo_url = $2";

/// Account, region, environment and directory of every workspace of a repository.
pub(super) async fn places(
    query: &impl Query,
    unit: BusinessUnitId,
    repo_url: &str,
) -> Result<Vec<Place>, DbError> {
    let rows = query.query(PLACES, &[&unit, &repo_url]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect())
}

// `id < $2` with the greatest id on the first page, rather than a NULL test: an index can serve it.
macro_rules! list {
    ($scope:literal) => {
        concat!(
            select!("WHERE "),
            $scope,
            "  AND id < $2
               AND ($3::text IS NULL OR environment = $3)
               AND ($4::text IS NULL OR region = $4)
               AND ($5::text IS NULL OR aws_account_id = $5)
               AND ($6::text IS NULL OR strpos(lower(name), lower($6)) > 0)
               AND ($7::jsonb IS NULL OR tags @> $7)
               AND ($8::uuid[] IS NULL OR id = ANY ($8))
             ORDER BY id DESC LIMIT $9"
        )
    };
}

// Two statements, because `$1 IS NULL OR ...` hides the unit from the index in a prepared plan.
const LIST_OF_UNIT: &str = list!("business_unit_id = $1");
const LIST_OF_ALL: &str = list!("$1::uuid IS NULL");

pub(super) async fn list(
    query: &impl Query,
    scope: Scope,
    only: Option<Vec<Uuid>>,
    filter: &WorkspaceFilter,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Workspace>, DbError> {
    let statement = match scope {
        Scope::One(_) => LIST_OF_UNIT,
        Scope::All => LIST_OF_ALL,
    };
    let tag: Option<Value> = filter.tag.as_ref().map(|tag| json!({ tag.key.as_str(): tag.value }));
    let rows = query
        .query(
            statement,
            &[
                &scope.unit(),
                &before.unwrap_or(Uuid::max()),
                &filter.environment,
                &filter.region,
                &filter.aws_account_id,
                &filter.name_contains,
                &tag,
                &only,
                &limit,
            ],
        )
        .await?;
    rows.iter().map(workspace).collect()
}

/// Writes the settings if the version is still the given one.
pub(super) async fn update(
    tx: &Tx<'_>,
    id: WorkspaceId,
    version: i32,
    settings: &Settings,
) -> Result<bool, DbError> {
    let changed = tx
        .execute(
            include_str!("sql/update.sql"),
            &[
                &id,
                &version,
                &settings.name(),
                &settings.environment(),
                &settings.aws_account_id(),
                &settings.region(),
                &settings.repo_url(),
                &settings.repo_ref(),
                &settings.tf_working_dir(),
                &settings.tool().as_str(),
                &settings.tool_version(),
                &json!(settings.tags()),
                &settings.state_writes().as_str(),
                &settings.webhook_enabled(),
                &settings.links().state_aws_account_id,
                &settings.links().azure_subscription_id,
                &settings.links().gcp_project_id,
                &settings.links().cluster_id,
                &settings.state_backend().as_str(),
            ],
        )
        .await?;
    Ok(changed == 1)
}

const SET_ACTIVE_RUN: &str = "UPDATE workspaces SET active_run_id = $2 WHERE id = $1";

pub(super) async fn set_active_run(
    tx: &Tx<'_>,
    id: WorkspaceId,
    run_id: Option<RunId>,
) -> Result<(), DbError> {
    tx.execute(SET_ACTIVE_RUN, &[&id, &run_id]).await?;
    Ok(())
}

// The first reason stays: it is the one that a person has to look into.
const BLOCK: &str = "
    UPDATE workspaces SET blocked_at = plumbline_now(), blocked_reason = $3, blocked_run_id = $2
    WHERE id = $1 AND blocked_at IS NULL";

pub(super) async fn block(tx: &Tx<'_>, id: WorkspaceId, run_id: RunId, reason: &str) -> Result<(), DbError> {
    tx.execute(BLOCK, &[&id, &run_id, &reason]).await?;
    Ok(())
}

const UNBLOCK: &str = "
    UPDATE workspaces SET blocked_at = NULL, blocked_reason = NULL, blocked_run_id = NULL WHERE id = $1";

pub(super) async fn unblock(tx: &Tx<'_>, id: WorkspaceId) -> Result<(), DbError> {
    tx.execute(UNBLOCK, &[&id]).await?;
    Ok(())
}

// An upload without its commit may be the last state of a lost apply; it is settled soon after its URL expired.
const QUARANTINED: &str = "
    SELECT 1 FROM quarantined_states WHERE workspace_id = $1 AND resolved_at IS NULL
    UNION ALL
    SELECT 1 FROM state_uploads
    WHERE workspace_id = $1 AND status = 'pending' AND url_expires_at > plumbline_now() - interval '5 minutes'
    LIMIT 1";

/// Whether a state body waits for a person's decision, or may still arrive.
pub(super) async fn has_quarantined_state(tx: &Tx<'_>, id: WorkspaceId) -> Result<bool, DbError> {
    Ok(tx.query_opt(QUARANTINED, &[&id]).await?.is_some())
}

const LOCK_STATE: &str = "SELECT 1 FROM tfstates WHERE workspace_id = $1 FOR UPDATE";

/// Keeps writes and locks of the state away until the transaction ends.
pub(super) async fn lock_state(tx: &Tx<'_>, id: WorkspaceId) -> Result<(), DbError> {
    tx.query_opt(LOCK_STATE, &[&id]).await?;
    Ok(())
}

/// What stands against deleting a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeletionFacts {
    pub state_locked: bool,
    pub running: Option<RunId>,
    pub head: Option<StateObject>,
}

/// The newest state, as an object in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateObject {
    pub version_id: StateVersionId,
    pub key: String,
    /// `None`: in the platform's own store.
    pub store_id: Option<StateStoreId>,
    pub opaque: bool,
}

/// `None` if the workspace is gone. `ended` are the words of the statuses in which nothing runs any more.
pub(super) async fn deletion_facts(
    query: &impl Query,
    id: WorkspaceId,
    ended: &[&str],
) -> Result<Option<DeletionFacts>, DbError> {
    let row = query.query_opt(include_str!("sql/deletion_facts.sql"), &[&id, &ended]).await?;
    Ok(row.map(|row| DeletionFacts {
        state_locked: row.get("locked"),
        running: row.get("running"),
        head: row.get::<_, Option<StateVersionId>>("head_id").map(|version_id| StateObject {
            version_id,
            key: row.get("head_key"),
            store_id: row.get("head_store_id"),
            opaque: row.get("head_opaque"),
        }),
    }))
}

const DELETE: &str = "DELETE FROM workspaces WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: WorkspaceId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}

// A host's name anywhere in the address; who asks looks closer.
const NAMING: &str = "
    SELECT id, name, repo_url FROM workspaces
    WHERE business_unit_id = $1 AND position($2 IN lower(repo_url)) > 0 ORDER BY id DESC LIMIT $3";

/// Id, name and repository of the workspaces whose repository's address contains the text.
pub(super) async fn naming(
    query: &impl Query,
    unit: BusinessUnitId,
    text: &str,
    limit: i64,
) -> Result<Vec<(WorkspaceId, String, String)>, DbError> {
    let rows = query.query(NAMING, &[&unit, &text, &limit]).await?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("name"), row.get("repo_url"))).collect())
}
