//! What every command gets: the way to the server and the way to the person.

use std::sync::Arc;

use crate::api::{Client, Document, Server};
use crate::args::GlobalArgs;
use crate::config;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::Screen;
use crate::session::SessionStore;

/// The wiring of one call of the program.
#[derive(Debug)]
pub struct App {
    /// The server.
    pub client: Arc<Client>,
    /// The person or script.
    pub screen: Screen,
}

impl App {
    /// Finds the server (flag, environment, last sign-in) and its session.
    pub fn new(global: &GlobalArgs) -> anyhow::Result<Self> {
        let store = SessionStore::new(config::directory()?);
        let server = match &global.server {
            Some(server) => server.clone(),
            None => store.current()?.ok_or_else(|| {
                Usage::error(
                    "no server is known yet. Sign in with `plumb login --server URL`, or set PLUMB_SERVER",
                )
            })?,
        };
        let client = Client::new(server, business_unit(global), store, api_key(), global.quiet)?;
        Ok(Self { client: Arc::new(client), screen: Screen::new(global) })
    }

    /// The server that is called.
    pub fn server(&self) -> &Server {
        self.client.server()
    }

    /// Prints an answer: the document itself for scripts, what `render` makes of it for people.
    pub fn show<T, F>(&self, document: &Document, render: F) -> anyhow::Result<Outcome>
    where
        T: serde::de::DeserializeOwned,
        F: FnOnce(&Screen, T) -> anyhow::Result<()>,
    {
        if self.screen.json {
            self.screen.document(document)?;
        } else {
            render(&self.screen, document.read()?)?;
        }
        Ok(Outcome::Done)
    }

    /// Says what was done where the server answered without a document; scripts get nothing.
    pub fn say(&self, text: &str) -> anyhow::Result<Outcome> {
        if !self.screen.json {
            self.screen.print(text)?;
        }
        Ok(Outcome::Done)
    }
}

/// The key of a program; never an argument, which other users of the machine could read.
fn api_key() -> Option<String> {
    std::env::var("PLUMB_API_KEY").ok().filter(|key| !key.is_empty())
}

fn business_unit(global: &GlobalArgs) -> Option<String> {
    global.business_unit.clone().filter(|unit| !unit.is_empty())
}
