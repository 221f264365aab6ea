//! Postgres: a small pool, statements whose parameter types follow from Rust types, and transactions.
//!
//! Nothing hangs on a connection: no session locks, no temporary tables, no `LISTEN`, no `SET`. In
//! [`PgMode::Direct`] statements are prepared once per connection; in [`PgMode::Pooled`] only unnamed statements are
//! used, so a transaction pooler may stand between. There is no trait over the database: tests use a real one.

mod connect;
mod error;
mod migrate;
mod param;
mod query;
#[cfg(feature = "testing")]
pub mod testing;

pub use connect::{Connect, Db, PgMode};
pub use error::DbError;
pub use migrate::{MIGRATIONS, Migration, migrate, pending_migrations};
pub use param::Param;
pub use query::{Conn, Query, Tx};
pub use tokio_postgres::Row;
