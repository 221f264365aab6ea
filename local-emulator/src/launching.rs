//! Executors of this emulator: a stop leaves none, whoever launched them.

use std::time::Duration;

use plumbline_core::adapters::LocalLauncher;
use plumbline_core::ports::Launcher as _;
use tokio::time::Instant;

const POLL: Duration = Duration::from_millis(50);

/// Asks every executor to stop and waits until none runs any more, or the patience ends. Returns how many are left; they
/// were asked, and end at their wall-clock limit at the latest.
pub(crate) async fn stop_all(launcher: &LocalLauncher, patience: Duration) -> usize {
    let deadline = Instant::now() + patience;
    for handle in launcher.running() {
        if let Err(error) = launcher.stop(&handle, "the emulator stops").await {
            tracing::warn!(error = %error, executor.handle = handle, "an executor cannot be asked to stop");
        }
    }
    loop {
        let left = launcher.running().len();
        if left == 0 || Instant::now() >= deadline {
            return left;
        }
        tokio::time::sleep(POLL).await;
    }
}
