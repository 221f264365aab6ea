//! Tests of the emulator, one file per part.

mod gateway;
mod git_server;
mod lambda;
mod lifecycle;
mod program;
mod session;
mod with_postgres;
