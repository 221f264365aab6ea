//! Everything on one machine: Postgres, an object store, a gateway with AWS's limits, timers, and executors as child
//! processes. It mounts the functions' own routers; nothing of the product knows that it runs here.
//!
//! Errors end at a person who reads one line, so they are `anyhow` throughout.

mod emulator;
mod functions;
mod gateway;
mod git_server;
mod home;
mod hosted;
mod lambda_host;
mod launching;
mod object_store;
mod options;
mod platform;
mod ports;
pub mod postgres;
pub mod processes;
mod roles;
pub mod schema;
mod timers;
mod with_postgres;

pub use emulator::Emulator;
pub use git_server::GitServer;
pub use home::{AlreadyRunning, Facts, find_running};
pub use options::{GatewayMode, Hosting, Options, Wakes};
pub use ports::PortBusy;
pub use with_postgres::with_postgres;
