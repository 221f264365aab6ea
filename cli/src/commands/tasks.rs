//! The queue, and waiting for a short task's result.

use std::time::Duration;

use chrono::Utc;
use clap::Subcommand;
use serde::Deserialize;
use uuid::Uuid;

use crate::api::views::Task;
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Table, ago, facts};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// `plumb tasks …`
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// List tasks, newest first.
    List {
        /// Only with this status: queued, running, done, dead, cancelled, superseded.
        #[arg(long)]
        status: Option<String>,
        /// Only of this kind, such as `run_plan`.
        #[arg(long)]
        kind: Option<String>,
        /// Only about this thing (the id of a run, a workspace, …).
        #[arg(long)]
        subject: Option<Uuid>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one task, its last error and its result.
    Show {
        /// The task's id.
        task: Uuid,
    },
    /// Queue a dead task's work again, as a new task.
    Replay {
        /// The task's id.
        task: Uuid,
    },
}

/// Runs one of them.
pub async fn run(app: &App, command: TaskCommand) -> anyhow::Result<Outcome> {
    match command {
        TaskCommand::List { status, kind, subject, page } => {
            let call = app.client.call(routes::LIST_TASKS, []);
            let call = call.query("status", status).query("kind", kind).query("subject_id", subject);
            let tasks = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            list(app, &tasks)
        }
        TaskCommand::Show { task } => {
            let task = app.client.call(routes::GET_TASK, [&task.to_string()]).send().await?;
            app.show(&task, |screen, task: Task| screen.print(&describe(&task)))
        }
        TaskCommand::Replay { task } => {
            let call = app.client.call(routes::REPLAY_TASK, [&task.to_string()]).creates(None);
            let replayed = call.send().await?;
            app.show(&replayed, |screen, started: Started| {
                screen.print(&format!("Queued again as task {}.", started.id()))
            })
        }
    }
}

/// The answer to what starts a task: its id under one of two names.
#[derive(Debug, Deserialize)]
pub struct Started {
    task_id: Option<String>,
    id: Option<String>,
}

impl Started {
    /// The task's id; empty if the server did not say.
    pub fn id(&self) -> &str {
        self.task_id.as_deref().or(self.id.as_deref()).unwrap_or_default()
    }
}

/// Waits for a short task and gives the document of its end; a task that did not work is an error.
pub async fn wait(app: &App, started: &Document, doing: &str) -> anyhow::Result<(Document, Task)> {
    let started: Started = started.read()?;
    let progress = app.screen.progress();
    progress.now(doing);
    let mut pause = FIRST_PAUSE;
    loop {
        let document = app.client.call(routes::GET_TASK, [started.id()]).send().await?;
        let task: Task = document.read()?;
        match task.status.as_str() {
            "done" => return Ok((document, task)),
            "queued" | "running" => {}
            ended => {
                let why = task.last_error.unwrap_or_else(|| format!("the task ended as {ended}"));
                anyhow::bail!("{doing} did not work: {why} (plumb tasks show {})", task.id)
            }
        }
        if let Some(error) = &task.last_error {
            progress.now(&format!("{doing}; trying again after: {error}"));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

fn list(app: &App, tasks: &Document) -> anyhow::Result<Outcome> {
    app.show(tasks, |screen, page: Page<Task>| {
        let now = Utc::now();
        let mut table =
            Table::new(&["ID", "KIND", "STATUS", "ATTEMPTS", "CREATED", "ERROR"]).shrinking("ERROR");
        for task in page.items {
            table.row([
                task.id.clone(),
                task.kind.clone(),
                screen.status(&task.status),
                format!("{}/{}", task.attempts, task.attempts_max),
                ago(task.created_at, now),
                task.last_error.unwrap_or_default(),
            ]);
        }
        table.print(screen, "No tasks.", page.next_cursor.as_deref())
    })
}

fn describe(task: &Task) -> String {
    let now = Utc::now();
    let result = task.result.as_ref().and_then(|result| serde_json::to_string_pretty(result).ok());
    facts(&[
        ("task", Some(task.id.clone())),
        ("kind", Some(task.kind.clone())),
        ("about", Some(task.subject_id.clone())),
        ("status", Some(task.status.clone())),
        ("attempt", task.lease_phase.clone()),
        ("attempts", Some(format!("{} of {}", task.attempts, task.attempts_max))),
        ("created", Some(ago(task.created_at, now))),
        ("due", task.run_after.map(|at| ago(Some(at), now))),
        ("finished", task.finished_at.map(|at| ago(Some(at), now))),
        ("last error", task.last_error.clone()),
        ("result", result),
    ])
}
