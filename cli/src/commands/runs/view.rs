//! How runs, plans and steps look.

use chrono::Utc;

use crate::api::views::{
    Artifact, Plan, PlanSummary, ResourceChange, Run, RunCredential, Step, Unrecorded, Waiting,
};
use crate::api::{Page, routes};
use crate::app::App;
use crate::output::{Screen, Table, Tone, ago, bytes, facts, seconds};

/// Resources listed of a plan; the rest is counted.
const RESOURCES_MAX: usize = 50;

pub(super) fn table(screen: &Screen, page: Page<Run>) -> anyhow::Result<()> {
    let mut table = Table::new(&["ID", "COMMAND", "STATUS", "CHANGES", "CREATED", "BRANCH", "MESSAGE"])
        .shrinking("MESSAGE");
    let now = Utc::now();
    for run in page.items {
        let changes = run.plan_summary.as_ref().map(short).unwrap_or_default();
        table.row([
            run.id,
            run.command,
            screen.status(&run.status),
            changes,
            ago(run.created_at, now),
            run.branch.unwrap_or_default(),
            run.message.unwrap_or_default(),
        ]);
    }
    table.print(screen, "No runs.", page.next_cursor.as_deref())
}

pub(super) fn steps(screen: &Screen, steps: Vec<Step>) -> anyhow::Result<()> {
    let mut table = Table::new(&["STEP", "PHASE", "NAME", "STATUS", "ATTEMPT", "TOOK", "LOG"]);
    for step in steps {
        table.row([
            step.position.to_string(),
            step.phase.clone(),
            step.name.clone(),
            screen.status(&step.status),
            step.attempt.to_string(),
            took(&step).unwrap_or_default(),
            bytes(step.log_bytes),
        ]);
    }
    table.print(screen, "No steps yet.", None)
}

pub(super) fn artifacts(screen: &Screen, artifacts: Vec<Artifact>) -> anyhow::Result<()> {
    let mut table = Table::new(&["KIND", "SIZE", "CREATED", "SHA256"]).shrinking("SHA256");
    let now = Utc::now();
    for artifact in artifacts {
        let created = ago(artifact.created_at, now);
        table.row([artifact.kind, bytes(artifact.size_bytes), created, artifact.sha256]);
    }
    table.print(screen, "No artifacts.", None)
}

pub(super) fn unrecorded(screen: &Screen, found: Unrecorded) -> anyhow::Result<()> {
    let mut table = Table::new(&["ADDRESS", "ID"]);
    for resource in &found.items {
        let id = resource.resource_id.clone().unwrap_or_else(|| "was being made: look for it".into());
        table.row([resource.address.clone(), id]);
    }
    table.print(screen, "The state has everything that this run reported to have made.", None)?;
    if !found.is_state_readable {
        screen.note("The newest state cannot be read here, so this is everything that the run made.");
    }
    if found.truncated {
        screen.note("There are more; these are the first 1,000.");
    }
    let commands: Vec<String> =
        found.items.into_iter().filter_map(|resource| resource.import_command).collect();
    if !commands.is_empty() {
        screen.print(&format!("\nTo record those that exist:\n{}", commands.join("\n")))?;
    }
    Ok(())
}

pub(super) fn describe(screen: &Screen, run: &Run) -> String {
    let now = Utc::now();
    let at = |at| Some(ago(Some(at), now));
    let tool =
        run.tool.as_ref().map(|tool| format!("{tool} {}", run.tool_version.as_deref().unwrap_or_default()));
    let credentials: Vec<String> = run.credentials.iter().map(|one| credential(screen, one)).collect();
    let error = run.error.as_ref().map(|error| screen.paint(Tone::Bad, error));
    facts(&[
        ("run", Some(run.id.clone())),
        ("workspace", Some(run.workspace_id.clone())),
        ("command", Some(run.command.clone())),
        ("status", Some(screen.status(&run.status))),
        ("reason", run.status_reason.clone()),
        ("error", error),
        ("waiting", run.waiting.as_ref().map(waiting)),
        ("branch", run.branch.clone()),
        ("commit", run.commit_sha.clone()),
        ("tool", tool),
        ("credentials", (!credentials.is_empty()).then(|| credentials.join("; "))),
        ("message", run.message.clone()),
        ("comment", run.approval_comment.clone()),
        ("created", run.created_at.and_then(at)),
        ("started", run.started_at.and_then(at)),
        ("ended", run.completed_at.and_then(at)),
        ("plan expires", run.plan_expires_at.filter(|_| run.status == "awaiting_approval").and_then(at)),
    ])
}

/// What a phase got of a cloud, or did not.
fn credential(screen: &Screen, one: &RunCredential) -> String {
    let RunCredential { phase, cloud, account, role_arn, missing } = one;
    match (missing, role_arn) {
        (Some(missing), _) => {
            screen.paint(Tone::Attention, &format!("{phase}: none for {cloud} {account}: {missing}"))
        }
        (None, Some(role)) => format!("{phase}: {cloud} {account} as {role}"),
        (None, None) => format!("{phase}: {cloud} {account}"),
    }
}

/// The plan's summary and what it does to each resource.
pub(in crate::commands) async fn plan(app: &App, run: &Run) -> anyhow::Result<String> {
    let plan: Plan = app.client.call(routes::GET_PLAN, [&run.id]).send().await?.read()?;
    let mut lines = vec![summary(run)];
    let changes: Vec<&ResourceChange> =
        plan.resource_changes.iter().filter(|change| mark(change) != " ").collect();
    for change in changes.iter().take(RESOURCES_MAX) {
        lines.push(format!("  {} {}", paint_mark(&app.screen, mark(change)), change.address));
    }
    if changes.len() > RESOURCES_MAX {
        let more = changes.len() - RESOURCES_MAX;
        lines.push(format!("  and {more} more: plumb run show {} --plan", run.id));
    }
    Ok(lines.join("\n"))
}

/// The plan as Terraform prints it.
pub(super) async fn plan_text(app: &App, run: &Run) -> anyhow::Result<String> {
    let view: Plan = app.client.call(routes::GET_PLAN, [&run.id]).send().await?.read()?;
    match view.text {
        Some(text) => Ok(format!("{}\n\n{text}", summary(run))),
        None => plan(app, run).await,
    }
}

/// How a run ended, and what to do next.
pub(super) async fn ending(app: &App, run: &Run) -> anyhow::Result<String> {
    let id = &run.id;
    Ok(match run.status.as_str() {
        "awaiting_approval" => format!(
            "{}\n\nRun {id} waits for approval.\nApprove it: plumb approve {id}\nReject it:  plumb reject {id}",
            plan(app, run).await?
        ),
        "planned" => format!("{}\n\nMake it an apply: plumb run promote {id}", plan(app, run).await?),
        "applied" => format!("{} {}", app.screen.paint(Tone::Good, "Applied."), summary(run)),
        "cancelled" => match run.status_reason.as_deref() {
            Some(reason) => format!("Run {id} was cancelled ({}).", reason.replace('_', " ")),
            None => format!("Run {id} was cancelled."),
        },
        status => {
            let why =
                run.error.as_deref().or(run.status_reason.as_deref()).unwrap_or("no reason was recorded");
            let word = app.screen.paint(Tone::Bad, status);
            format!("Run {id} {word}: {why}\nIts logs: plumb run logs {id}")
        }
    })
}

pub(super) fn cancelled(run: &Run) -> String {
    match run.status.as_str() {
        "cancelled" => format!("Run {} is cancelled.", run.id),
        status => format!("Run {} is asked to stop; at the moment it is {status}.", run.id),
    }
}

pub(super) fn waiting(waiting: &Waiting) -> String {
    let before = match waiting.position {
        ..=0 => String::new(),
        1 => " (1 run before this one)".into(),
        count => format!(" ({count} runs before this one)"),
    };
    format!("waiting: {}{before}", waiting.reason)
}

pub(super) fn step_began(step: &Step) -> String {
    let attempt = if step.attempt > 1 { format!(", attempt {}", step.attempt) } else { String::new() };
    format!("• {} {}{attempt}", step.phase, step.name)
}

pub(super) fn step_ended(screen: &Screen, step: &Step) -> String {
    let mark = match step.status.as_str() {
        "succeeded" => screen.paint(Tone::Good, "✓"),
        "failed" => screen.paint(Tone::Bad, "✗"),
        _ => screen.paint(Tone::Faint, "–"),
    };
    let took = took(step).map(|took| format!(" ({took})")).unwrap_or_default();
    let word = if step.status == "succeeded" { "" } else { step.status.as_str() };
    format!("{mark} {} {}{took} {word}", step.phase, step.name)
}

fn took(step: &Step) -> Option<String> {
    #[expect(clippy::cast_possible_truncation, reason = "shown in whole seconds")]
    step.duration_seconds.map(|duration| seconds(duration.round() as i64))
}

fn summary(run: &Run) -> String {
    let Some(plan) = &run.plan_summary else { return "There is no plan.".into() };
    if plan.errored {
        return "The plan is incomplete: planning ended with an error.".into();
    }
    if run.has_changes == Some(false) {
        return "No changes: what stands is what was drawn.".into();
    }
    let mut text = format!("{} to add, {} to change, {} to destroy", plan.add, plan.change, plan.destroy);
    let more = [
        (plan.replace, "of these replaced"),
        (plan.import, "to import"),
        (plan.moved, "to move"),
        (plan.forget, "to forget"),
        (plan.read, "to read"),
        (plan.outputs, "outputs to change"),
        (plan.drift, "changed outside"),
        (plan.deferred, "deferred"),
    ];
    for (count, words) in more.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {words}"));
    }
    format!("Plan: {text}.")
}

fn short(plan: &PlanSummary) -> String {
    format!("+{} ~{} -{}", plan.add, plan.change, plan.destroy)
}

/// What happens to a resource in one or two characters, as Terraform writes it; a space for nothing.
fn mark(change: &ResourceChange) -> &'static str {
    let actions: Vec<&str> = change.actions.iter().map(String::as_str).collect();
    match actions.as_slice() {
        ["create"] => "+",
        ["update"] => "~",
        ["delete"] => "-",
        ["delete", "create"] => "-/+",
        ["create", "delete"] => "+/-",
        ["read"] => "<=",
        ["forget"] => ".",
        [] | ["no-op" | "no_op"] => " ",
        _ => "?",
    }
}

fn paint_mark(screen: &Screen, mark: &str) -> String {
    let tone = match mark {
        "+" => Tone::Good,
        "~" => Tone::Attention,
        "<=" | "." => Tone::Faint,
        _ => Tone::Bad,
    };
    screen.paint(tone, &format!("{mark:>3}"))
}
