//! Business units.

use clap::Subcommand;
use serde_json::json;

use crate::api::views::BusinessUnit;
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::Table;

/// `plumb business-unit …`
#[derive(Debug, Subcommand)]
pub enum BusinessUnitCommand {
    /// List the business units that you can see.
    List {
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
    /// Give one another name (superadmins).
    Rename {
        /// Its slug or id.
        unit: String,
        /// The new name for people.
        #[arg(long, required_unless_present = "slug")]
        name: Option<String>,
        /// The new slug.
        #[arg(long)]
        slug: Option<String>,
    },
}

/// Runs one of them.
pub async fn run(app: &App, command: BusinessUnitCommand) -> anyhow::Result<Outcome> {
    match command {
        BusinessUnitCommand::List { page } => {
            let call = app.client.call(routes::LIST_BUSINESS_UNITS, []);
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
        BusinessUnitCommand::Rename { unit, name, slug } => {
            let unit = find(app, &unit).await?;
            let body = json!({ "slug": slug.unwrap_or(unit.slug), "name": name.unwrap_or(unit.name) });
            let unit = app.client.call(routes::UPDATE_BUSINESS_UNIT, [&unit.id]).body(body).send().await?;
            tell(app, &unit, "Renamed")
        }
    }
}

fn tell(app: &App, unit: &Document, done: &str) -> anyhow::Result<Outcome> {
    app.show(unit, |screen, unit: BusinessUnit| {
        screen.print(&format!("{done} business unit {} ({}), id {}.", unit.slug, unit.name, unit.id))
    })
}

async fn find(app: &App, text: &str) -> anyhow::Result<BusinessUnit> {
    let mut cursor = None;
    loop {
        let page = app.client.call(routes::LIST_BUSINESS_UNITS, []).query("cursor", cursor).send().await?;
        let page: Page<BusinessUnit> = page.read()?;
        if let Some(unit) = page.items.into_iter().find(|unit| unit.slug == text || unit.id == text) {
            return Ok(unit);
        }
        cursor = page.next_cursor;
        anyhow::ensure!(cursor.is_some(), "there is no business unit `{text}`; see plumb business-unit list");
    }
}
