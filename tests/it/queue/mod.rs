//! The queue: fair and capped claims, fenced writes, sweeps, the worker.

mod claim;
mod desk;
mod fencing;
