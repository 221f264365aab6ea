//! What the commands of every kind of account do alike.

use serde_json::Value;

use crate::api::routes::Route;
use crate::api::{Document, Page};
use crate::app::App;
use crate::args::PageArgs;
use crate::commands::trials;
use crate::outcome::Outcome;
use crate::output::{Screen, Table, confirm, facts};

/// One kind of account.
pub(super) struct Kind {
    pub(super) noun: &'static str,
    pub(super) list: Route<0>,
    pub(super) create: Route<0>,
    pub(super) get: Route<1>,
    pub(super) update: Route<1>,
    pub(super) delete: Route<1>,
    /// The field that people know it by, beside its id and name.
    pub(super) known_by: &'static str,
    /// Its secret fields.
    pub(super) secrets: &'static [&'static str],
    /// What is shown of one, in this order.
    pub(super) fields: &'static [&'static str],
}

impl Kind {
    pub(super) async fn list(&self, app: &App, page: PageArgs) -> anyhow::Result<Outcome> {
        let call = app.client.call(self.list, []).query("limit", page.limit).query("cursor", page.cursor);
        app.show(&call.send().await?, |screen, page: Page<Value>| {
            let mut table = Table::new(&["ID", "NAME", "ACCOUNT", "SECRET"]).shrinking("NAME");
            for one in &page.items {
                let secret = self.secrets.first().map(|name| mask(&one[*name])).unwrap_or_default();
                table.row([text(one, "id"), text(one, "name"), text(one, self.known_by), secret]);
            }
            table.print(screen, &format!("No {}s are registered.", self.noun), page.next_cursor.as_deref())
        })
    }

    pub(super) async fn show(&self, app: &App, named: &str) -> anyhow::Result<Outcome> {
        let document = self.find(app, named).await?;
        app.show(&document, |screen, one: Value| self.describe(screen, &one))
    }

    pub(super) async fn create(&self, app: &App, body: Value) -> anyhow::Result<Outcome> {
        let made = app.client.call(self.create, []).body(body).creates(None).send().await?;
        app.show(&made, |screen, one: Value| {
            screen.note(&format!("Registered {} {}.", self.noun, text(&one, "name")));
            self.describe(screen, &one)
        })
    }

    pub(super) async fn update(&self, app: &App, named: &str, body: Value) -> anyhow::Result<Outcome> {
        let document = self.find(app, named).await?;
        let id = text(&document.read()?, "id");
        let call = app.client.call(self.update, [&id]).if_match(&document).body(body);
        app.show(&call.send().await?, |screen, one: Value| self.describe(screen, &one))
    }

    /// Tries its credentials: asks for it, waits, and tells what was found.
    pub(super) async fn test(
        &self,
        app: &App,
        (route, asking): (Route<1>, &str),
        named: &str,
        no_wait: bool,
        fine: impl Fn(&Value) -> Vec<String>,
    ) -> anyhow::Result<Outcome> {
        let id = text(&self.find(app, named).await?.read()?, "id");
        let started = app.client.call(route, [&id]).creates(None).send().await?;
        trials::tell(app, &started, no_wait, asking, fine).await
    }

    pub(super) async fn delete(&self, app: &App, named: &str, yes: bool) -> anyhow::Result<Outcome> {
        let one: Value = self.find(app, named).await?.read()?;
        let (noun, name) = (self.noun, text(&one, "name"));
        if !yes && !confirm(&format!("Forget {noun} {name} and its secrets?"), "--yes").await? {
            app.screen.note("Nothing was forgotten.");
            return Ok(Outcome::Failed);
        }
        let answer = app.client.call(self.delete, [&text(&one, "id")]).send().await?;
        if app.screen.json {
            app.screen.document(&answer)?;
        } else {
            app.screen.print(&format!("Forgot {noun} {name}."))?;
        }
        Ok(Outcome::Done)
    }

    /// The one with this id, number or name.
    pub(super) async fn find(&self, app: &App, named: &str) -> anyhow::Result<Document> {
        if named.parse::<uuid::Uuid>().is_ok() && self.known_by != "subscription_id" {
            return app.client.call(self.get, [named]).send().await;
        }
        let mut cursor = None;
        let mut found = Vec::new();
        loop {
            let call = app.client.call(self.list, []).query("cursor", cursor);
            let page: Page<Value> = call.send().await?.read()?;
            let fits =
                |one: &Value| ["id", "name", self.known_by].iter().any(|field| text(one, field) == named);
            found.extend(page.items.iter().filter(|one| fits(one)).map(|one| text(one, "id")));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        match &found[..] {
            [id] => app.client.call(self.get, [id]).send().await,
            [] => anyhow::bail!("there is no {} `{named}` here", self.noun),
            several => anyhow::bail!(
                "{} {}s are called `{named}`; pass the id of one: {}",
                several.len(),
                self.noun,
                several.join(", ")
            ),
        }
    }

    fn describe(&self, screen: &Screen, one: &Value) -> anyhow::Result<()> {
        let shown = |name: &&'static str| {
            let value = &one[*name];
            let words = match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                Value::Object(_) if self.secrets.contains(name) => Some(mask(value)),
                other => Some(other.to_string()),
            };
            (*name, words)
        };
        let pairs: Vec<(&str, Option<String>)> =
            ["id", "name"].iter().chain(self.fields).chain(self.secrets).map(shown).collect();
        screen.print(&facts(&pairs))
    }
}

/// What is told of a secret.
fn mask(secret: &Value) -> String {
    match (secret["configured"].as_bool(), secret["unreadable"].as_bool(), secret["masked_tail"].as_str()) {
        (Some(true), Some(true), _) => "unreadable: replace it".into(),
        (Some(true), _, Some(tail)) => format!("…{tail}"),
        (Some(true), ..) => "set".into(),
        _ => "none".into(),
    }
}

pub(super) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
