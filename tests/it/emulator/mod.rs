//! Tests of the emulator, one file per part.

mod change;
mod gateway;
mod git_server;
mod lambda;
mod lifecycle;
mod program;
mod session;
mod wakes;
mod with_postgres;
