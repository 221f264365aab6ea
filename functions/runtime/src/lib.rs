//! What the `main` of every function shares: settings from the environment, logs, the wiring of
//! [`plumbline_core::Deps`].

mod environment;

pub use environment::{deps_from_environment, init_logs, launcher_url};
