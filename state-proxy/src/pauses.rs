//! Waiting between tries: each time twice as long as before, up to a limit.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(200);

/// The pauses of one thing that is tried again and again.
pub struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    /// None longer than this.
    pub fn up_to(longest: Duration) -> Self {
        Self { next: FIRST, longest }
    }

    /// Whether the next one would end too late.
    pub fn would_pass(&self, deadline: Instant) -> bool {
        Instant::now() + self.next > deadline
    }

    /// Waits.
    pub async fn pause(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(self.longest);
    }
}
