//! One integration binary: real Postgres, one database per test. Run by `make test`.

#![expect(unreachable_pub, reason = "a test binary has no outside; `pub` says what other tests may use")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod again;
mod fake_cluster;
mod fake_github;
mod fake_services;
mod fake_sts;
mod idp;
mod moto;
mod pgbouncer;
mod plane;
mod sshd;
mod world;

mod api;
mod architecture;
mod audit_actions;
mod callback;
mod cli;
mod clients;
mod emulator;
mod executor;
mod executors;
mod faults;
mod provider;
mod queue;
mod reconcile;
mod secret_scan;
mod store;
mod tf;
