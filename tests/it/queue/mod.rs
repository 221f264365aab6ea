//! The queue: fair and capped claims, fenced writes, leases, the worker, its platforms, its routes.

mod claim;
mod desk;
mod ecs;
mod fake_launcher;
mod fencing;
mod leases;
mod routes;
mod worker;
