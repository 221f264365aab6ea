//! One integration binary: real Postgres, one database per test. Run by `make test`.

mod plane;

mod api;
mod architecture;
mod cli;
mod emulator;
mod executor;
mod queue;
mod reconcile;
mod store;
