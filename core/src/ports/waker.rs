//! A hint that there may be work. Losing one costs latency, never work; getting one too many costs nothing.

use std::time::Duration;

use async_trait::async_trait;

/// Something that can wake the worker. Implementations: SQS, in-process, none.
#[async_trait]
pub trait Waker: Send + Sync + std::fmt::Debug {
    /// Wakes the worker after the delay. Errors are logged, not returned: the sweep finds the work anyway.
    async fn wake(&self, delay: Duration);
}
