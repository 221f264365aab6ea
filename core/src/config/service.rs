//! Use cases of settings.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::model::{Change, Given, Level, Setting};
use super::store::{self, Owner, Rows, Write};
use super::views::{self, FieldView, HistoryEntry, IntegrationView, SecretView, SettingView};
use super::{ConfigError, Integration, Values, registry, rules};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, TaskId};
use crate::limits::Limits;
use crate::page::{Page, PageRequest};
use crate::secrets::{Domain, Place};
use crate::tasks::{self, NewTask, TaskKind};
use crate::tfstates::Retention;
use crate::workspaces::service::local_repos;

/// The platform's values of some settings, for whoever acts by them. One round trip.
pub async fn platform(query: &impl Query, settings: &[&'static Setting]) -> Result<Values, DbError> {
    find(query, Owner::Platform, Level::Platform, settings).await
}

/// A unit's values of some settings, for whoever acts by them. One round trip.
pub async fn of_unit(
    query: &impl Query,
    unit: BusinessUnitId,
    settings: &[&'static Setting],
) -> Result<Values, DbError> {
    find(query, Owner::Unit(unit), Level::Unit, settings).await
}

/// Cost of bcrypt for a password that is set now.
pub async fn bcrypt_cost(deps: &Deps) -> Result<u32, DbError> {
    let values = platform(&deps.db.conn().await?, &[&registry::BCRYPT_COST]).await?;
    Ok(u32::try_from(values.integer(&registry::BCRYPT_COST, &deps.limits)).unwrap_or(deps.limits.bcrypt_cost))
}

/// How long the secrets of ended runs and finished tasks are kept, now.
pub async fn run_secret_age(query: &impl Query, limits: &Limits) -> Result<Duration, DbError> {
    let values = platform(query, &[&registry::RUN_SECRETS_HOURS]).await?;
    Ok(values.duration(&registry::RUN_SECRETS_HOURS, limits))
}

/// How long the history of a state is kept.
pub async fn state_retention(query: &impl Query, limits: &Limits) -> Result<Retention, DbError> {
    let values = platform(query, &[&registry::STATE_VERSIONS, &registry::STATE_VERSION_DAYS]).await?;
    Ok(Retention {
        newest: values.integer(&registry::STATE_VERSIONS, limits),
        days: values.integer(&registry::STATE_VERSION_DAYS, limits),
    })
}

/// Every tunable of the platform, by key.
pub async fn list_tunables(
    deps: &Deps,
    ctx: &Ctx,
) -> Result<BTreeMap<&'static str, SettingView>, ConfigError> {
    ctx.require(Permission::ReadRuntimeConfig)?;
    let settings: Vec<_> =
        registry::SETTINGS.iter().copied().filter(|one| one.level == Level::Platform).collect();
    let values = platform(&deps.db.conn().await?, &settings).await?;
    Ok(settings.into_iter().map(|one| (one.name, tunable(deps, ctx, &values, one))).collect())
}

/// One tunable of the platform.
pub async fn get_tunable(deps: &Deps, ctx: &Ctx, key: &str) -> Result<SettingView, ConfigError> {
    ctx.require(Permission::ReadRuntimeConfig)?;
    let setting = registry::find_platform(key).ok_or(ConfigError::NotFound)?;
    let values = platform(&deps.db.conn().await?, &[setting]).await?;
    Ok(tunable(deps, ctx, &values, setting))
}

/// Sets a tunable of the platform; `None` takes its value away. `seen` is the version that the caller saw; `None` edits
/// whatever is there.
pub async fn set_tunable(
    deps: &Deps,
    ctx: &Ctx,
    key: &str,
    seen: Option<i32>,
    value: Option<&Json>,
) -> Result<SettingView, ConfigError> {
    ctx.require(Permission::AdministerPlatform)?;
    let setting = registry::find_platform(key).ok_or(ConfigError::NotFound)?;
    let change = Change { setting, to: value.map(|value| read(deps, setting, "value", value)).transpose()? };
    let action = if value.is_some() { Action::ConfigWrite } else { Action::ConfigDelete };
    let edit = Edit { owner: Owner::Platform, name: setting.name, all: vec![setting], seen, action };
    let values = apply(deps, ctx, &edit, vec![change]).await?;
    Ok(tunable(deps, ctx, &values, setting))
}

/// The changes of one tunable, newest first.
pub async fn tunable_history(
    deps: &Deps,
    ctx: &Ctx,
    key: &str,
    page: PageRequest,
) -> Result<Page<HistoryEntry>, ConfigError> {
    ctx.require(Permission::AdministerPlatform)?;
    let setting = registry::find_platform(key).ok_or(ConfigError::NotFound)?;
    history(deps, Owner::Platform, &[setting], page).await
}

/// What the caller's unit has set of an integration, secrets masked.
pub async fn get_integration(
    deps: &Deps,
    ctx: &Ctx,
    integration: &Integration,
) -> Result<IntegrationView, ConfigError> {
    ctx.require(Permission::ReadIntegrations)?;
    let values = of_unit(&deps.db.conn().await?, ctx.unit()?, &integration.settings()).await?;
    Ok(view(deps, integration, &values))
}

/// Changes fields of an integration: those that are absent stay, those that are null go back to their default. `seen` is
/// the version that the caller saw; `None` edits whatever is there.
pub async fn update_integration(
    deps: &Deps,
    ctx: &Ctx,
    integration: &Integration,
    seen: Option<i32>,
    fields: &Map<String, Json>,
) -> Result<IntegrationView, ConfigError> {
    ctx.require(Permission::AdministerIntegrations)?;
    let edit = Edit::of(ctx, integration, seen, Action::ConfigWrite)?;
    let changes = fields.iter().map(|(field, value)| {
        let setting = integration.setting(field).ok_or_else(|| unknown_field(integration, field))?;
        let to = if value.is_null() { None } else { Some(read(deps, setting, field, value)?) };
        Ok(Change { setting, to })
    });
    let changes = changes.collect::<Result<Vec<_>, ConfigError>>()?;
    let values = apply(deps, ctx, &edit, changes).await?;
    Ok(view(deps, integration, &values))
}

/// Takes every value of an integration away.
pub async fn delete_integration(
    deps: &Deps,
    ctx: &Ctx,
    integration: &Integration,
    seen: Option<i32>,
) -> Result<(), ConfigError> {
    ctx.require(Permission::AdministerIntegrations)?;
    let edit = Edit::of(ctx, integration, seen, Action::ConfigDelete)?;
    let changes = edit.all.iter().map(|setting| Change { setting, to: None }).collect();
    apply(deps, ctx, &edit, changes).await?;
    Ok(())
}

/// The changes of an integration's settings, newest first.
pub async fn integration_history(
    deps: &Deps,
    ctx: &Ctx,
    integration: &Integration,
    page: PageRequest,
) -> Result<Page<HistoryEntry>, ConfigError> {
    ctx.require(Permission::ReadIntegrations)?;
    history(deps, Owner::Unit(ctx.unit()?), &integration.settings(), page).await
}

/// Asks the service whether it takes what the unit has set, by a short task, in the caller's transaction.
pub async fn request_test(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    integration: &Integration,
    kind: TaskKind,
) -> Result<TaskId, ConfigError> {
    ctx.require(Permission::AdministerIntegrations)?;
    let (unit, asked_by) = (ctx.unit()?, ctx.person()?);
    // Only who asked may read the result, so two people's requests are two tasks.
    let mut task = NewTask::new(kind, unit, unit, format!("{}:{unit}:{asked_by}", kind.as_str()));
    task.traceparent = ctx.traceparent.clone();
    task.requested_by = Some(asked_by);
    let task_id = tasks::service::enqueue(tx, deps.ids, &task).await?.task_id();
    let entry = Entry {
        business_unit_id: Some(unit),
        actor: ctx.actor.clone(),
        action: Action::IntegrationTest,
        resource_type: "integration",
        resource_id: integration.name.to_owned(),
        workspace_id: None,
        run_id: None,
        details: json!({ "task_id": task_id }),
    };
    audit::service::record(tx, &entry).await?;
    Ok(task_id)
}

/// One person's edit of settings that are seen together.
struct Edit {
    owner: Owner,
    /// What is edited, for the audit log.
    name: &'static str,
    /// Every setting whose versions make the version that was seen.
    all: Vec<&'static Setting>,
    seen: Option<i32>,
    action: Action,
}

impl Edit {
    fn of(
        ctx: &Ctx,
        integration: &Integration,
        seen: Option<i32>,
        action: Action,
    ) -> Result<Self, ConfigError> {
        let owner = Owner::Unit(ctx.unit()?);
        Ok(Self { owner, name: integration.name, all: integration.settings(), seen, action })
    }
}

/// Writes what differs, its history and one audit entry, in one transaction.
async fn apply(deps: &Deps, ctx: &Ctx, edit: &Edit, changes: Vec<Change>) -> Result<Values, ConfigError> {
    let keys = names(&edit.all);
    deps.db
        .transaction(async |tx| {
            let ids = keys.iter().map(|_| deps.ids.mint()).collect();
            let rows = store::lock(tx, edit.owner, &keys, ids).await?;
            let actual = version_of(&rows);
            if edit.seen.is_some_and(|seen| seen != actual) {
                return Err(ConfigError::VersionMismatch { actual });
            }
            let mut told = Vec::new();
            for change in &changes {
                let Some(write) = prepare(deps, edit.owner, &rows, change)? else { continue };
                store::write(tx, edit.owner, ctx.actor.user_id(), &write).await?;
                told.push(tell(&write));
            }
            let written = store::find(tx, edit.owner, &keys).await?;
            if !told.is_empty() {
                record(tx, ctx, edit, told).await?;
            }
            Ok(Values::new(edit.owner, written))
        })
        .await
}

/// What has to be written for a change; `None` if it changes nothing.
fn prepare(deps: &Deps, owner: Owner, rows: &Rows, change: &Change) -> Result<Option<Write>, ConfigError> {
    let setting = change.setting;
    let row =
        rows.get(setting.name).ok_or_else(|| DbError::Row("a locked row of a setting is missing".into()))?;
    let before = rules::Before { value: row.value.as_ref(), is_sealed: row.sealed.is_some() };
    let Some(done) = rules::changed(before, change.to.as_ref()) else { return Ok(None) };
    let (value, sealed) = match &change.to {
        None => (None, None),
        Some(Given::Plain(value)) => (Some(json!(value)), None),
        Some(Given::Secret(secret)) => {
            let place = Place { table: owner.table(), column: "sealed", row: row.id };
            (None, Some(deps.keys.seal(Domain::Config, place, secret.expose())?))
        }
    };
    Ok(Some(Write {
        key: setting.name,
        value,
        sealed,
        history_id: deps.ids.mint(),
        change: done,
        is_secret: setting.is_secret(),
        old_value: row.value.clone(),
    }))
}

fn tell(write: &Write) -> Json {
    let mut told = json!({ "key": write.key, "change": write.change.as_str() });
    if !write.is_secret {
        told["old_value"] = json!(write.old_value);
        told["new_value"] = json!(write.value);
    }
    told
}

async fn record(tx: &Tx<'_>, ctx: &Ctx, edit: &Edit, told: Vec<Json>) -> Result<(), DbError> {
    let entry = Entry {
        business_unit_id: match edit.owner {
            Owner::Platform => None,
            Owner::Unit(unit) => Some(unit),
        },
        actor: ctx.actor.clone(),
        action: edit.action,
        resource_type: "config",
        resource_id: edit.name.to_owned(),
        workspace_id: None,
        run_id: None,
        details: json!({ "changes": told }),
    };
    audit::service::record(tx, &entry).await
}

async fn find(
    query: &impl Query,
    owner: Owner,
    level: Level,
    settings: &[&'static Setting],
) -> Result<Values, DbError> {
    if let Some(other) = settings.iter().find(|setting| setting.level != level) {
        return Err(DbError::Row(format!("{} has no value at this level", other.name)));
    }
    Ok(Values::new(owner, store::find(query, owner, &names(settings)).await?))
}

async fn history(
    deps: &Deps,
    owner: Owner,
    settings: &[&'static Setting],
    page: PageRequest,
) -> Result<Page<HistoryEntry>, ConfigError> {
    let conn = deps.db.conn().await?;
    let entries = store::history(&conn, owner, &names(settings), page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(entries, page.limit, |entry| entry.id))
}

fn names(settings: &[&'static Setting]) -> Vec<&'static str> {
    settings.iter().map(|setting| setting.name).collect()
}

/// Every change of a row raises its version by one, so the sum never comes twice either.
fn version_of(rows: &Rows) -> i32 {
    rows.values().map(|row| row.version).sum()
}

fn read(deps: &Deps, setting: &'static Setting, field: &str, value: &Json) -> Result<Given, ConfigError> {
    rules::read(setting, value, local_repos(deps))
        .map_err(|reason| ConfigError::Invalid { field: field.to_owned(), reason })
}

fn unknown_field(integration: &Integration, field: &str) -> ConfigError {
    let known: Vec<&str> = integration.fields.iter().map(|(name, _)| *name).collect();
    ConfigError::Invalid {
        field: field.to_owned(),
        reason: format!("is unknown here; there are: {}", known.join(", ")),
    }
}

fn tunable(deps: &Deps, ctx: &Ctx, values: &Values, setting: &'static Setting) -> SettingView {
    let mut view = views::describe(setting);
    view.default = setting.default_value(&deps.limits);
    view.value = if setting.is_secret() { None } else { values.get(setting, &deps.limits) };
    if let Some(row) = values.rows().get(setting.name) {
        view.configured = row.value.is_some() || row.sealed.is_some();
        view.version = row.version;
        view.updated_by = row.updated_by;
        view.updated_at = (row.version > 0).then_some(row.updated_at);
    }
    // A unit's admin has no use for the end of a secret of the platform.
    if ctx.is_superadmin && setting.is_secret() {
        view.masked_tail = masked(deps, values, setting).masked_tail;
    }
    view
}

fn view(deps: &Deps, integration: &Integration, values: &Values) -> IntegrationView {
    let newest = values.rows().values().filter(|row| row.version > 0).max_by_key(|row| row.updated_at);
    let field = |setting: &'static Setting| {
        if setting.is_secret() {
            FieldView::Secret(masked(deps, values, setting))
        } else {
            FieldView::Plain(values.get(setting, &deps.limits))
        }
    };
    IntegrationView {
        fields: integration.fields.iter().map(|(name, setting)| (*name, field(setting))).collect(),
        updated_by: newest.and_then(|row| row.updated_by),
        updated_at: newest.map(|row| row.updated_at),
        version: version_of(values.rows()),
    }
}

fn masked(deps: &Deps, values: &Values, setting: &'static Setting) -> SecretView {
    match values.secret(setting, &deps.keys) {
        Ok(secret) => SecretView {
            configured: secret.is_some(),
            masked_tail: secret.as_ref().and_then(rules::masked_tail),
        },
        Err(error) => {
            // It is there and can be replaced, which is what its reader has to know.
            tracing::error!(config.key = setting.name, error = %error, "a sealed setting cannot be opened");
            SecretView { configured: true, masked_tail: None }
        }
    }
}
