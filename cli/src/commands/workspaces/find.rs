//! Which workspace a person means.

use uuid::Uuid;

use crate::api::views::Workspace;
use crate::api::{Document, Page, routes};
use crate::app::App;

/// Pages read when looking for a name; a search narrows them, so this many means that it did not.
const PAGES_MAX: usize = 20;
/// Candidates listed in an error.
const CANDIDATES_MAX: usize = 10;

/// The id of a workspace given by name or id.
pub async fn find_id(app: &App, text: &str) -> anyhow::Result<String> {
    if let Ok(id) = text.parse::<Uuid>() {
        return Ok(id.to_string());
    }
    let candidates = search(app, text).await?;
    let (mut exact, similar): (Vec<Workspace>, Vec<Workspace>) =
        candidates.into_iter().partition(|workspace| workspace.name == text);
    match (exact.pop(), exact.is_empty()) {
        (Some(workspace), true) => Ok(workspace.id),
        (Some(workspace), false) => {
            exact.push(workspace);
            anyhow::bail!(
                "{} workspaces are called `{text}`; pass the id of one:\n{}",
                exact.len(),
                lines(&exact)
            )
        }
        (None, _) if similar.is_empty() => {
            anyhow::bail!("there is no workspace called `{text}` here; see plumb workspace list")
        }
        (None, _) => {
            anyhow::bail!("there is no workspace called `{text}` here; did you mean:\n{}", lines(&similar))
        }
    }
}

/// The workspace itself.
pub async fn get(app: &App, text: &str) -> anyhow::Result<Document> {
    let id = find_id(app, text).await?;
    app.client.call(routes::GET_WORKSPACE, [&id]).send().await
}

async fn search(app: &App, text: &str) -> anyhow::Result<Vec<Workspace>> {
    let mut found = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let call =
            app.client.call(routes::LIST_WORKSPACES, []).query("q", Some(text)).query("cursor", cursor);
        let page: Page<Workspace> = call.send().await?.read()?;
        found.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

fn lines(workspaces: &[Workspace]) -> String {
    let mut lines: Vec<String> = workspaces
        .iter()
        .take(CANDIDATES_MAX)
        .map(|it| {
            let place = format!("{}, {}, {}", it.environment, it.region, it.aws_account_id);
            format!("  {}  {}  ({place}; {} {})", it.id, it.name, it.repo_url, it.tf_working_dir)
        })
        .collect();
    if workspaces.len() > CANDIDATES_MAX {
        lines.push(format!("  and {} more", workspaces.len() - CANDIDATES_MAX));
    }
    lines.join("\n")
}
