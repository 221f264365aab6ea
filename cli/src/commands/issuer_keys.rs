//! Keys of the installation's own issuer.

use chrono::Utc;
use serde_json::json;

use crate::api::views::{IssuerKey, RotatedIssuerKey};
use crate::api::{Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Table, ago};

/// `plumb admin issuer-keys`
pub async fn list(app: &App, page: PageArgs) -> anyhow::Result<Outcome> {
    let call = app.client.call(routes::LIST_ISSUER_KEYS, []);
    let keys = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
    app.show(&keys, |screen, page: Page<IssuerKey>| {
        let now = Utc::now();
        let mut table = Table::new(&["KEY", "STATUS", "MADE", "PUBLISHED"]);
        for key in page.items {
            let published = match key.published_until {
                None => "yes".to_owned(),
                Some(until) if until > now => format!("until {}", until.format("%Y-%m-%d %H:%M UTC")),
                Some(_) => "no".to_owned(),
            };
            table.row([key.kid, screen.status(&key.status), ago(key.created_at, now), published]);
        }
        table.print(
            screen,
            "No key yet: the first is made when a run needs a token.",
            page.next_cursor.as_deref(),
        )
    })
}

/// `plumb admin rotate-issuer-key`
pub async fn rotate(app: &App, at_once: bool) -> anyhow::Result<Outcome> {
    let call =
        app.client.call(routes::ROTATE_ISSUER_KEY, []).body(json!({ "at_once": at_once })).creates(None);
    app.show(&call.send().await?, |screen, rotated: RotatedIssuerKey| match rotated.signing {
        Some(key) => {
            screen.print(&format!("Tokens for clouds are signed with the key {} from now on.", key.kid))
        }
        None => screen.print("No key signs now; one is made when a run next needs a token."),
    })
}
