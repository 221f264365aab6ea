//! Logs.

use tracing_subscriber::EnvFilter;

/// JSON logs on standard output, filtered by `PLUMBLINE_LOG`. A second call changes nothing.
pub fn init_logs() {
    let filter = std::env::var("PLUMBLINE_LOG")
        .ok()
        .and_then(|filter| EnvFilter::try_new(filter).ok())
        .unwrap_or_else(|| EnvFilter::new("info"));
    let _ = tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).try_init();
    log_panics();
}

/// A panic is one JSON line like everything else; its request is named by the line that answers it.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic.place = place, "{panic}");
    }));
}
