//! The queue: fair and capped claims, fenced writes, leases, the worker, its platforms, its routes.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod claim;
mod desk;
mod ecs;
mod fake_launcher;
mod fencing;
mod invoked;
mod leases;
mod parallel_sweeps;
mod routes;
mod sqs;
mod sts;
mod sts_sessions;
mod worker;
