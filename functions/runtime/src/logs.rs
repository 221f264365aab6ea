//! Logs.

use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// JSON logs on standard output, filtered by `PLUMBLINE_LOG`. A second call changes nothing.
pub fn init_logs() {
    let filter = std::env::var("PLUMBLINE_LOG")
        .ok()
        .and_then(|filter| EnvFilter::try_new(filter).ok())
        .unwrap_or_else(|| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true);
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(lines.with_filter(filter_fn(is_harmless)))
        .try_init();
    log_panics();
}

/// Lambda's runtime shows whole events at its last level: passwords and tokens. Nobody can ask for that.
fn is_harmless(line: &Metadata<'_>) -> bool {
    *line.level() != Level::TRACE || !line.target().starts_with("lambda_")
}

/// A panic is one JSON line like everything else; its request is named by the line that answers it.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic.place = place, "{panic}");
    }));
}
