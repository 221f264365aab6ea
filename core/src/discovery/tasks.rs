//! What queued tasks about repositories do: look, and import.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::service::{Payload, settings_for};
use super::{
    Candidate, Discovered, ImportEntry, ImportResult, ImportedWorkspace, SkippedEntry, candidate_at,
    discover, repository_name,
};
use crate::Deps;
use crate::access::Actor;
use crate::adapters::{FileList, Git};
use crate::ids::WorkspaceId;
use crate::tasks::{ClaimedTask, FailedAttempt};
use crate::workspaces::imports::{self, BATCH_MAX, Batch, ImportError};
use crate::workspaces::service::local_repos;
use crate::workspaces::tasks::{database, git};
use crate::workspaces::{RepoUrl, Settings};

/// Looks into a repository: a [`Discovered`].
pub async fn look(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let payload = payload(task)?;
    let files = list(deps, task, &payload).await?;
    let mut found = discover(files.paths.iter().map(String::as_str), repository_name(&payload.repo_url));
    mark_imported(deps, task, &payload.repo_url, &mut found.candidates).await?;
    Ok(json!(Discovered {
        repo_url: payload.repo_url,
        reference: files.reference,
        commit_sha: files.commit_sha,
        candidates: found.candidates,
        errors: found.oddities,
    }))
}

/// Makes workspaces of the named directories, or of every candidate: an [`ImportResult`]. Doing it again gives the
/// same result and no second workspace.
pub async fn import(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let payload = payload(task)?;
    let files = list(deps, task, &payload).await?;
    let mut result = ImportResult::default();
    let chosen = choose(&payload, &files, &mut result.skipped);
    let mut valid: Vec<(WorkspaceId, Settings)> = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in chosen {
        let path = entry.path.clone();
        match Settings::validate(settings_for(entry, &payload.repo_url, &files.reference), local_repos(deps))
        {
            Ok(settings) => {
                let id = derived_id(deps, task, &settings);
                if seen.insert(id) {
                    valid.push((id, settings));
                } else {
                    result.skipped.push(SkippedEntry { path, reason: "named twice".into() });
                }
            }
            Err(wrong) => result.skipped.push(SkippedEntry { path, reason: wrong.to_string() }),
        }
    }
    for batch in valid.chunks(BATCH_MAX) {
        store_batch(deps, task, &payload.actor, batch, &mut result).await?;
    }
    Ok(json!(result))
}

async fn store_batch(
    deps: &Deps,
    task: &ClaimedTask,
    actor: &Actor,
    workspaces: &[(WorkspaceId, Settings)],
    result: &mut ImportResult,
) -> Result<(), FailedAttempt> {
    let batch = Batch { unit: task.business_unit_id, actor, lease: task.lease, workspaces };
    let stored = deps.db.transaction(async |tx| imports::import(tx, &batch).await).await;
    let made = stored.map_err(|error| match error {
        ImportError::Db(error) => database(error),
        ImportError::Task(error) => FailedAttempt::Retry(error.to_string()),
    })?;
    for (id, settings) in workspaces {
        let path = settings.tf_working_dir().to_owned();
        if made.contains(id) {
            result.created.push(ImportedWorkspace { id: *id, path, name: settings.name().to_owned() });
        } else {
            let reason =
                "a workspace for this directory in this account, region and environment exists".into();
            result.skipped.push(SkippedEntry { path, reason });
        }
    }
    Ok(())
}

/// The same in every attempt, so that what an earlier one stored is recognised.
fn derived_id(deps: &Deps, task: &ClaimedTask, settings: &Settings) -> WorkspaceId {
    let place = [
        settings.aws_account_id(),
        settings.region(),
        settings.environment(),
        settings.repo_url(),
        settings.tf_working_dir(),
    ];
    deps.ids.derive(task.lease.task_id.into(), &place.join("\n"))
}

/// The entries to import, completed by what discovery suggests.
fn choose(payload: &Payload, files: &FileList, skipped: &mut Vec<SkippedEntry>) -> Vec<ImportEntry> {
    let repository = repository_name(&payload.repo_url);
    let paths = || files.paths.iter().map(String::as_str);
    let Some(entries) = &payload.entries else {
        let found = discover(paths(), repository);
        skipped.extend(
            found.oddities.into_iter().map(|odd| SkippedEntry { path: odd.path, reason: odd.reason }),
        );
        return found.candidates.into_iter().map(|candidate| completed(None, candidate)).collect();
    };
    let mut chosen = Vec::new();
    for entry in entries {
        // The request was checked; this gives the one spelling of the path.
        let path = crate::workspaces::check_working_dir(&entry.path).unwrap_or_else(|_| entry.path.clone());
        match candidate_at(paths(), &path, repository) {
            Some(candidate) => chosen.push(completed(Some(entry), candidate)),
            None => skipped.push(SkippedEntry {
                path,
                reason: "there is no Terraform code and no Helm chart in this directory".into(),
            }),
        }
    }
    chosen
}

fn completed(entry: Option<&ImportEntry>, candidate: Candidate) -> ImportEntry {
    let wish = |of: fn(&ImportEntry) -> &Option<String>| entry.and_then(|entry| of(entry).clone());
    ImportEntry {
        path: candidate.path,
        name: wish(|entry| &entry.name).or(Some(candidate.name)),
        aws_account_id: wish(|entry| &entry.aws_account_id).or(Some(candidate.aws_account_id)),
        region: wish(|entry| &entry.region).or(Some(candidate.region)),
        environment: wish(|entry| &entry.environment).or(Some(candidate.environment)),
        kind: entry.and_then(|entry| entry.kind).or(Some(candidate.kind)),
    }
}

async fn mark_imported(
    deps: &Deps,
    task: &ClaimedTask,
    repo_url: &str,
    candidates: &mut [Candidate],
) -> Result<(), FailedAttempt> {
    let conn = deps.db.conn().await.map_err(database)?;
    let places = imports::places(&conn, task.business_unit_id, repo_url).await.map_err(database)?;
    let places: BTreeSet<_> = places.into_iter().collect();
    for candidate in candidates {
        let Candidate { aws_account_id, region, environment, path, .. } = &*candidate;
        let place = (aws_account_id.clone(), region.clone(), environment.clone(), path.clone());
        candidate.already_imported = places.contains(&place);
    }
    Ok(())
}

fn payload(task: &ClaimedTask) -> Result<Payload, FailedAttempt> {
    serde_json::from_value(task.payload.clone())
        .map_err(|_| FailedAttempt::Permanent("the task's payload cannot be read".into()))
}

async fn list(deps: &Deps, task: &ClaimedTask, payload: &Payload) -> Result<FileList, FailedAttempt> {
    let repository = RepoUrl::parse(&payload.repo_url, local_repos(deps))
        .map_err(|reason| FailedAttempt::Permanent(format!("repo_url: {reason}")))?;
    let login = payload
        .open_login(deps, task.subject_id)
        .map_err(|error| FailedAttempt::Permanent(format!("the login: {error}")))?;
    Git::new(deps).list_files(&repository, payload.reference.as_deref(), login.as_ref()).await.map_err(git)
}
