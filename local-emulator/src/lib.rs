//! Everything on one machine: Postgres, an object store, a gateway with AWS's limits, timers, and executors as child
//! processes. It mounts the functions' own routers; nothing of the product knows that it runs here.
//!
//! Errors end at a person who reads one line, so they are `anyhow` throughout.

mod home;
pub mod postgres;
pub mod processes;
mod with_postgres;

pub use with_postgres::with_postgres;
