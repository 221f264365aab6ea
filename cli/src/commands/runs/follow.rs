//! Watching a run: its steps and logs as they appear, until it ends or waits for a person.
//!
//! Watching changes nothing at the server, and Ctrl-C ends only the watching.

use std::collections::BTreeMap;
use std::time::Duration;

use super::view;
use crate::api::views::{LogChunk, Run, Step, Waiting};
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::outcome::Outcome;
use crate::output::{Progress, Screen};

const SHORTEST_PAUSE: Duration = Duration::from_millis(300);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Where the logs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// Nowhere.
    Hidden,
    /// To stderr, as progress beside the answer.
    Progress,
    /// To stdout: they are the answer.
    Answer,
}

impl Logs {
    /// For a command whose answer is the run.
    pub fn beside(screen: &Screen) -> Self {
        if screen.json || screen.quiet { Self::Hidden } else { Self::Progress }
    }
}

/// What was shown of one step.
#[derive(Debug, Default)]
struct Seen {
    attempt: i64,
    status: String,
    offset: i64,
    drained: bool,
    /// The last line if it had no end yet.
    partial: String,
}

/// A run under watch.
#[derive(Debug)]
pub struct Follow<'a> {
    app: &'a App,
    run_id: String,
    logs: Logs,
    seen: BTreeMap<i64, Seen>,
    waiting: Option<Waiting>,
    progress: Progress,
}

impl<'a> Follow<'a> {
    /// Shows everything since the run began.
    pub fn from_beginning(app: &'a App, run_id: &str, logs: Logs) -> Self {
        Self {
            app,
            run_id: run_id.into(),
            logs,
            seen: BTreeMap::new(),
            waiting: None,
            progress: app.screen.progress(),
        }
    }

    /// Shows only what happens from now on.
    pub async fn from_now(app: &'a App, run_id: &str, logs: Logs) -> anyhow::Result<Self> {
        let mut follow = Self::from_beginning(app, run_id, logs);
        for step in follow.steps().await? {
            let seen = Seen {
                attempt: step.attempt,
                offset: step.log_bytes,
                drained: is_over(&step),
                status: step.status,
                partial: String::new(),
            };
            follow.seen.insert(step.position, seen);
        }
        Ok(follow)
    }

    /// Until the run is settled; gives its last document.
    async fn watch(&mut self) -> anyhow::Result<Document> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let document = self.app.client.call(routes::GET_RUN, [&self.run_id]).send().await?;
            let run: Run = document.read()?;
            self.report_waiting(&run);
            let mut moved = false;
            // Read after the run: when the run has settled, these are the last steps.
            for step in self.steps().await? {
                moved |= self.report(&step, run.is_settled()).await?;
            }
            if run.is_settled() {
                return Ok(document);
            }
            pause = if moved { SHORTEST_PAUSE } else { (pause * 3 / 2).min(LONGEST_PAUSE) };
            tokio::time::sleep(pause).await;
        }
    }

    async fn steps(&self) -> anyhow::Result<Vec<Step>> {
        let steps = self.app.client.call(routes::LIST_STEPS, [&self.run_id]).send().await?;
        Ok(steps.read::<Page<Step>>()?.items)
    }

    fn report_waiting(&mut self, run: &Run) {
        if run.waiting != self.waiting {
            if let Some(waiting) = &run.waiting {
                self.progress.line(&view::waiting(waiting));
            }
            self.waiting.clone_from(&run.waiting);
        }
        let cancelling = if run.cancel_requested { ", being cancelled" } else { "" };
        self.progress.now(&format!("{}{cancelling}", run.status.replace('_', " ")));
    }

    /// Shows what is new about a step. Whether anything was.
    async fn report(&mut self, step: &Step, run_is_settled: bool) -> anyhow::Result<bool> {
        let seen = self.seen.entry(step.position).or_default();
        if seen.attempt != step.attempt {
            *seen = Seen { attempt: step.attempt, ..Seen::default() };
        }
        let before = std::mem::replace(&mut seen.status, step.status.clone());
        let changed = before != step.status;
        if changed && step.status == "running" {
            self.progress.line(&view::step_began(step));
        }
        let read = self.logs != Logs::Hidden && step.phase != "approval" && step.status != "pending";
        let news = read && self.drain(step, run_is_settled).await?;
        if changed && is_over(step) && step.phase != "approval" {
            self.progress.line(&view::step_ended(&self.app.screen, step));
        }
        Ok(changed || news)
    }

    /// Shows the log from where it was left. Whether there was more.
    async fn drain(&mut self, step: &Step, run_is_settled: bool) -> anyhow::Result<bool> {
        let mut news = false;
        loop {
            let seen = self.seen.entry(step.position).or_default();
            if seen.drained || (seen.offset >= step.log_bytes && (is_over(step) || run_is_settled)) {
                let rest = std::mem::take(&mut seen.partial);
                self.show_log(&rest)?;
                return Ok(news);
            }
            let call = self.app.client.call(routes::READ_LOG, [&self.run_id]);
            let call = call.query("position", Some(step.position)).query("offset", Some(seen.offset));
            let chunk: LogChunk = call.send().await?.read()?;
            let advanced = chunk.next_offset > seen.offset;
            seen.offset = chunk.next_offset;
            seen.drained = chunk.complete;
            seen.partial.push_str(&chunk.text);
            let end = seen.partial.rfind('\n').map_or(0, |at| at + 1);
            let rest = seen.partial.split_off(end);
            let lines = std::mem::replace(&mut seen.partial, rest);
            self.show_log(&lines)?;
            news |= advanced;
            if !advanced && !chunk.complete {
                return Ok(news);
            }
        }
    }

    fn show_log(&self, text: &str) -> anyhow::Result<()> {
        match self.logs {
            Logs::Hidden => Ok(()),
            Logs::Answer => self.progress.aside(|| self.app.screen.print_log(text)),
            Logs::Progress if text.is_empty() => Ok(()),
            Logs::Progress => {
                let lines: Vec<String> = text.lines().map(|line| format!("  │ {line}")).collect();
                self.progress.line(&lines.join("\n"));
                Ok(())
            }
        }
    }
}

fn is_over(step: &Step) -> bool {
    matches!(step.status.as_str(), "succeeded" | "failed" | "skipped")
}

/// Watches to the end and says how the run went.
pub async fn finish(app: &App, mut follow: Follow<'_>) -> anyhow::Result<Outcome> {
    let id = follow.run_id.clone();
    let answer = follow.logs != Logs::Answer;
    let watched = tokio::select! {
        watched = follow.watch() => Some(watched?),
        _ = tokio::signal::ctrl_c() => None,
    };
    drop(follow);
    let Some(document) = watched else {
        // Said even with --quiet: a person who pressed Ctrl-C must not believe that the run stopped.
        eprintln!("Stopped watching; run {id} goes on at the server.");
        eprintln!("Watch it again: plumb run logs {id} --follow\nCancel it:      plumb run cancel {id}");
        return Ok(Outcome::Interrupted);
    };
    let run: Run = document.read()?;
    if app.screen.json {
        app.screen.document(&document)?;
    } else {
        let ending = view::ending(app, &run).await?;
        if answer { app.screen.print(&ending)? } else { app.screen.note(&ending) }
    }
    Ok(match run.status.as_str() {
        "awaiting_approval" => Outcome::WaitsForApproval,
        "failed" | "cancelled" => Outcome::Failed,
        _ => Outcome::Done,
    })
}
