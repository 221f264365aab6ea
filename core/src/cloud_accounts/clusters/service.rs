//! Use cases of clusters.

use serde_json::json;

use super::store::{self, InsertCluster, StoredCluster};
use super::{Cluster, ClusterChange, ClusterSettings, Kubeconfig, NewCluster};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::business_units;
use crate::cloud_accounts::service::{
    changed_fields, check_version, enqueue_test, entry, masked, require_unused,
};
use crate::cloud_accounts::store::users_of_cluster;
use crate::cloud_accounts::{CloudAccountError, MaskedSecret};
use crate::db::Tx;
use crate::ids::{ClusterId, TaskId};
use crate::page::{Page, PageRequest};
use crate::secrets::{Domain, Place, SealError};
use crate::tasks::TaskKind;
use crate::workspaces::InvalidField;

const RESOURCE: &str = "cluster";
const MISSING: CloudAccountError = CloudAccountError::NotFound("cluster");

/// Registers a cluster in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: NewCluster,
) -> Result<Cluster, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let unit = ctx.unit()?;
    let (fields, kubeconfig, expected_server) = new.split();
    let settings = ClusterSettings::validate(fields)?;
    let kubeconfig = Kubeconfig::parse(&kubeconfig, settings.fields().allow_insecure_tls)?;
    check_server(&kubeconfig, expected_server.as_deref())?;
    let id: ClusterId = deps.ids.mint();
    let insert = InsertCluster {
        id,
        unit,
        server_url: kubeconfig.server_url(),
        kubeconfig_sealed: &seal(deps, id, &kubeconfig)?,
        created_by: ctx.actor.user_id(),
    };
    store::insert(tx, &insert, &settings).await?;
    let made = view(deps, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
    let details = json!({ "name": made.fields.name, "server_url": made.server_url, "aws_account_id": made.fields.aws_account_id });
    audit::service::record(tx, &entry(ctx, unit, Action::ClusterCreate, RESOURCE, id, details)).await?;
    Ok(made)
}

/// One cluster.
pub async fn get(deps: &Deps, ctx: &Ctx, id: ClusterId) -> Result<Cluster, CloudAccountError> {
    ctx.require(Permission::Read)?;
    view(deps, store::find(&deps.db.conn().await?, ctx.scope, id).await?.ok_or(MISSING)?)
}

/// The clusters of the scope, newest first.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<Cluster>, CloudAccountError> {
    ctx.require(Permission::Read)?;
    let rows = store::list(&deps.db.conn().await?, ctx.scope, page.cursor, page.limit + 1).await?;
    let shown = rows.into_iter().map(|row| view(deps, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_rows(shown, page.limit, |cluster| cluster.id.into()))
}

/// Edits a cluster. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: ClusterId,
    version: Option<i32>,
    change: ClusterChange,
) -> Result<Cluster, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, before.business_unit_id)
                .await?;
            check_version(version, before.version)?;
            let (fields, replacement, expected_server) = change.over(before.fields.clone());
            let settings = ClusterSettings::validate(fields)?;
            let allow_insecure_tls = settings.fields().allow_insecure_tls;
            let replaces = replacement.is_some();
            let kubeconfig = match replacement {
                Some(text) => Kubeconfig::parse(&text, allow_insecure_tls)?,
                None => kept(deps, &before, allow_insecure_tls)?,
            };
            check_server(&kubeconfig, expected_server.as_deref())?;
            let sealed =
                if replaces { seal(deps, id, &kubeconfig)? } else { before.kubeconfig_sealed.clone() };
            store::update(tx, id, kubeconfig.server_url(), &sealed, &settings).await?;
            let mut changed = changed_fields(&json!(before.fields), &json!(settings.fields()));
            changed.extend(replaces.then(|| "kubeconfig".to_owned()));
            let details = json!({ "name": before.fields.name, "changed": changed });
            let entry = entry(ctx, before.business_unit_id, Action::ClusterUpdate, RESOURCE, id, details);
            let after = view(deps, store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?)?;
            audit::service::record(tx, &entry).await?;
            Ok(after)
        })
        .await
}

/// Forgets a cluster that nobody uses, with its kubeconfig.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: ClusterId) -> Result<(), CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    deps.db
        .transaction(async |tx| {
            let found = store::lock(tx, ctx.scope, id).await?.ok_or(MISSING)?;
            business_units::service::require_in_use::<CloudAccountError>(tx, ctx, found.business_unit_id)
                .await?;
            let unit = found.business_unit_id;
            require_unused(users_of_cluster(tx, unit, id).await?)?;
            store::delete(tx, id).await?;
            let details = json!({ "name": found.fields.name, "server_url": found.server_url });
            audit::service::record(tx, &entry(ctx, unit, Action::ClusterDelete, RESOURCE, id, details))
                .await?;
            Ok(())
        })
        .await
}

/// Asks the cluster whether the kubeconfig gets in, by a short task.
pub async fn request_test(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    id: ClusterId,
) -> Result<TaskId, CloudAccountError> {
    ctx.require(Permission::AdministerCloudAccounts)?;
    let found = store::find(tx, ctx.scope, id).await?.ok_or(MISSING)?;
    let unit = found.business_unit_id;
    let task_id = enqueue_test(tx, deps, ctx, TaskKind::ClusterTest, (unit, id.into())).await?;
    let details = json!({ "name": found.fields.name, "task_id": task_id });
    audit::service::record(tx, &entry(ctx, unit, Action::ClusterTest, RESOURCE, id, details)).await?;
    Ok(task_id)
}

/// How to get in.
pub(in crate::cloud_accounts) fn open(deps: &Deps, cluster: &StoredCluster) -> Result<Kubeconfig, SealError> {
    let text = deps.keys.open(Domain::Kubernetes, place(cluster.id), &cluster.kubeconfig_sealed)?;
    Kubeconfig::from_kept(&text).ok_or(SealError::Unreadable("it is not a kubeconfig"))
}

/// The kubeconfig that stays, if today's settings allow it.
fn kept(
    deps: &Deps,
    cluster: &StoredCluster,
    allow_insecure_tls: bool,
) -> Result<Kubeconfig, CloudAccountError> {
    let kubeconfig = open(deps, cluster).map_err(|error| match error {
        SealError::Unreadable(why) => CloudAccountError::Invalid(InvalidField::new(
            "kubeconfig",
            format!("the one that is there cannot be read ({why}): send a new one"),
        )),
        error @ SealError::Key(_) => error.into(),
    })?;
    kubeconfig.check_again(allow_insecure_tls)?;
    Ok(kubeconfig)
}

fn check_server(kubeconfig: &Kubeconfig, expected: Option<&str>) -> Result<(), InvalidField> {
    if expected.is_none_or(|url| url == kubeconfig.server_url()) {
        return Ok(());
    }
    Err(InvalidField::new("server_url", "is not the server of the kubeconfig's current context"))
}

fn seal(deps: &Deps, id: ClusterId, kubeconfig: &Kubeconfig) -> Result<String, SealError> {
    deps.keys.seal(Domain::Kubernetes, place(id), &kubeconfig.to_json())
}

fn place(id: ClusterId) -> Place {
    Place { table: "clusters", column: "kubeconfig_sealed", row: id.0 }
}

fn view(deps: &Deps, stored: StoredCluster) -> Result<Cluster, CloudAccountError> {
    let mask =
        |kubeconfig: &Kubeconfig| kubeconfig.token().map_or_else(MaskedSecret::hidden, MaskedSecret::of);
    Ok(Cluster {
        kubeconfig: masked(open(deps, &stored), mask)?,
        id: stored.id,
        business_unit_id: stored.business_unit_id,
        server_url: stored.server_url,
        fields: stored.fields,
        version: stored.version,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    })
}
