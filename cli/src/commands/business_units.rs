//! Business units.

use clap::Subcommand;
use serde_json::json;

use crate::api::views::BusinessUnit;
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Table, confirm};

/// `plumb business-unit …`
#[derive(Debug, Subcommand)]
pub enum BusinessUnitCommand {
    /// List the business units that you can see.
    List {
        /// The archived ones.
        #[arg(long)]
        archived: bool,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Create one (superadmins).
    Create {
        /// Its short name in headers and release names: lower-case letters, digits, dashes.
        slug: String,
        /// Its name for people; the slug if absent.
        #[arg(long)]
        name: Option<String>,
    },
    /// Give one another name (superadmins). Its slug stays.
    Rename {
        /// Its slug or id.
        unit: String,
        /// The new name for people.
        #[arg(long)]
        name: String,
    },
    /// Take one out of use (superadmins): nothing new is done in it, what waits or plans is cancelled.
    Archive {
        /// Its slug or id.
        unit: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Put an archived one back into use (superadmins).
    Unarchive {
        /// Its slug or id.
        unit: String,
    },
}

/// Runs one of them.
pub async fn run(app: &App, command: BusinessUnitCommand) -> anyhow::Result<Outcome> {
    match command {
        BusinessUnitCommand::List { archived, page } => {
            let call =
                app.client.call(routes::LIST_BUSINESS_UNITS, []).query("archived", archived.then_some(true));
            let units = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            app.show(&units, |screen, page: Page<BusinessUnit>| {
                let mut table = Table::new(&["ID", "SLUG", "NAME"]).shrinking("NAME");
                for unit in page.items {
                    table.row([unit.id, unit.slug, unit.name]);
                }
                table.print(screen, "No business units.", page.next_cursor.as_deref())
            })
        }
        BusinessUnitCommand::Create { slug, name } => {
            let body = json!({ "name": name.as_ref().unwrap_or(&slug), "slug": slug });
            let unit =
                app.client.call(routes::CREATE_BUSINESS_UNIT, []).body(body).creates(None).send().await?;
            tell(app, &unit, "Created")
        }
        BusinessUnitCommand::Rename { unit, name } => {
            let unit = find(app, &unit).await?;
            let body = json!({ "name": name });
            let unit = app.client.call(routes::RENAME_BUSINESS_UNIT, [&unit.id]).body(body).send().await?;
            tell(app, &unit, "Renamed")
        }
        BusinessUnitCommand::Archive { unit, yes } => {
            let unit = find(app, &unit).await?;
            let question = format!("Archive {}? Its members are kept out, its runs cancelled.", unit.slug);
            if !yes && !confirm(&question, "--yes").await? {
                return Ok(Outcome::Failed);
            }
            let unit = app.client.call(routes::ARCHIVE_BUSINESS_UNIT, [&unit.id]).send().await?;
            tell(app, &unit, "Archived")
        }
        BusinessUnitCommand::Unarchive { unit } => {
            let unit = find_in(app, &unit, true).await?;
            let unit = app.client.call(routes::UNARCHIVE_BUSINESS_UNIT, [&unit.id]).send().await?;
            tell(app, &unit, "Unarchived")
        }
    }
}

fn tell(app: &App, unit: &Document, done: &str) -> anyhow::Result<Outcome> {
    app.show(unit, |screen, unit: BusinessUnit| {
        screen.print(&format!("{done} business unit {} ({}), id {}.", unit.slug, unit.name, unit.id))
    })
}

/// The unit in use that has this slug or id.
pub(super) async fn find(app: &App, text: &str) -> anyhow::Result<BusinessUnit> {
    find_in(app, text, false).await
}

async fn find_in(app: &App, text: &str, archived: bool) -> anyhow::Result<BusinessUnit> {
    let mut cursor = None;
    loop {
        let call =
            app.client.call(routes::LIST_BUSINESS_UNITS, []).query("archived", archived.then_some(true));
        let page: Page<BusinessUnit> = call.query("cursor", cursor).send().await?.read()?;
        if let Some(unit) = page.items.into_iter().find(|unit| unit.slug == text || unit.id == text) {
            return Ok(unit);
        }
        cursor = page.next_cursor;
        let kind = if archived { "archived business unit" } else { "business unit" };
        anyhow::ensure!(cursor.is_some(), "there is no {kind} `{text}`; see plumb business-unit list");
    }
}
