//! Tests of the emulator, one file per part.

mod change;
mod footprint;
mod gateway;
mod git_server;
mod keyless;
mod lambda;
mod lifecycle;
mod private_repository;
pub mod program;
pub mod session;
mod shared_outputs;
mod sign_in;
mod wakes;
mod with_postgres;
