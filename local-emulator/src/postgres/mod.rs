//! A private Postgres cluster: found or installed, created, started and stopped.
//!
//! It listens on loopback only, with a random password; it never runs as root; it ends with this process. A
//! postmaster that an earlier process left behind is stopped, but only the one of our own data directory.

mod install;
mod place;
mod server;

pub use install::find_or_install;
pub use place::Place;
pub use server::{Cluster, Settings};
