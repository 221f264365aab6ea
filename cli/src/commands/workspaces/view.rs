//! How workspaces look.

use chrono::Utc;

use crate::api::Page;
use crate::api::views::Workspace;
use crate::output::{Screen, Table, Tone, ago, facts};

pub(super) fn table(screen: &Screen, page: Page<Workspace>) -> anyhow::Result<()> {
    let mut table = Table::new(&["ID", "NAME", "ENVIRONMENT", "REGION", "DIRECTORY", "STATUS", "UPDATED"])
        .shrinking("DIRECTORY");
    let now = Utc::now();
    for workspace in page.items {
        let status = if workspace.blocked.is_some() {
            screen.status("blocked")
        } else if workspace.locked.is_some() {
            screen.status("locked")
        } else if workspace.active_run_id.is_some() {
            "busy".into()
        } else {
            "free".into()
        };
        let updated = ago(workspace.updated_at, now);
        table.row([
            workspace.id,
            workspace.name,
            workspace.environment,
            workspace.region,
            workspace.tf_working_dir,
            status,
            updated,
        ]);
    }
    table.print(
        screen,
        "No workspaces. Import some: plumb workspace import REPOSITORY",
        page.next_cursor.as_deref(),
    )
}

pub(super) fn describe(screen: &Screen, workspace: &Workspace) -> String {
    let now = Utc::now();
    let tool = workspace
        .tool
        .as_ref()
        .map(|tool| format!("{tool} {}", workspace.tool_version.as_deref().unwrap_or("(newest found)")));
    let tags: Vec<String> = workspace.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let blocked = workspace.blocked.as_ref().map(|blocked| {
        let run = blocked.run_id.as_ref().map(|run| format!(", run {run}")).unwrap_or_default();
        let text = format!("{} ({}{run})", blocked.reason, ago(blocked.at, now));
        let hint = blocked.run_id.as_ref().map(|run| format!("; see plumb run unrecorded {run}"));
        [screen.paint(Tone::Attention, &text), hint.unwrap_or_default()].concat()
    });
    let locked = workspace.locked.as_ref().map(|locked| {
        let text = format!("by {}: {} ({})", locked.who, locked.reason, ago(locked.at, now));
        screen.paint(Tone::Attention, &text)
    });
    facts(&[
        ("workspace", Some(workspace.name.clone())),
        ("id", Some(workspace.id.clone())),
        ("kind", Some(workspace.kind.clone())),
        ("environment", Some(workspace.environment.clone())),
        ("region", Some(workspace.region.clone())),
        ("account", Some(workspace.aws_account_id.clone())),
        ("repository", Some(format!("{} at {}", workspace.repo_url, workspace.repo_ref))),
        ("directory", Some(workspace.tf_working_dir.clone())),
        ("tool", tool),
        ("tags", (!tags.is_empty()).then(|| tags.join(", "))),
        ("state writes", workspace.state_writes.clone()),
        ("state backend", workspace.state_backend.clone()),
        ("drift", workspace.drift_status.clone()),
        ("active run", workspace.active_run_id.clone()),
        ("blocked", blocked),
        ("locked", locked),
        ("updated", Some(ago(workspace.updated_at, now))),
    ])
}
