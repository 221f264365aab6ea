//! Settings of a function, read once from its environment.

use plumbline_core::Deps;

/// Wires a function from its environment: database, object store, waker, derived keys.
pub async fn deps_from_environment() -> anyhow::Result<Deps> {
    todo!("runtime")
}

/// JSON logs on standard output, filtered by `PLUMBLINE_LOG`.
pub fn init_logs() {
    todo!("runtime")
}

/// The address that executors call back.
pub fn launcher_url() -> anyhow::Result<String> {
    todo!("runtime")
}
