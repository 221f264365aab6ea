//! Trying credentials: asking for it, and what was found.

use serde_json::Value;

use crate::api::Document;
use crate::app::App;
use crate::commands::tasks;
use crate::outcome::Outcome;

/// Waits for the task that tries them, and tells what it found: `fine` has the lines for what works.
pub async fn tell(
    app: &App,
    started: &Document,
    no_wait: bool,
    asking: &str,
    fine: impl Fn(&Value) -> Vec<String>,
) -> anyhow::Result<Outcome> {
    if no_wait {
        return app.show(started, |screen, task: tasks::Started| {
            screen.print(&format!("Started task {}; its result: plumb tasks show {}", task.id(), task.id()))
        });
    }
    let (document, task) = tasks::wait(app, started, asking).await?;
    let result = task.result.unwrap_or_default();
    let is_fine = result["ok"] == true;
    if app.screen.json {
        app.screen.document(&document)?;
    } else if is_fine {
        for line in fine(&result) {
            app.screen.print(&line)?;
        }
    } else {
        let detail = result["detail"].as_str().unwrap_or_default();
        app.screen.print(&format!("It does not work: {detail}"))?;
    }
    Ok(if is_fine { Outcome::Done } else { Outcome::Failed })
}
