//! The public HTTP API as the CLI uses it.
//!
//! [`routes`] declares every call; [`Client`] makes no other, but for those of the state's own protocol, which no API
//! document describes: [`StateUpstream`]. Answers stay the server's bytes ([`Document`]), so that
//! `--json` prints exactly them; the views in [`views`] read from them what people see.

mod call;
mod client;
mod document;
mod download;
mod problem;
pub mod routes;
mod server;
mod state_upstream;
pub mod views;

pub use call::Call;
pub use client::Client;
pub use document::{Document, Page};
pub use download::save;
pub use problem::{ApiError, Problem};
pub use server::Server;
pub use state_upstream::StateUpstream;
