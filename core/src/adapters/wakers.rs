//! Wakers for one process: a notification, and none at all.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::ports::Waker;

/// Wakes nobody: the sweep finds all work. The whole suite passes with it.
#[derive(Debug, Default)]
pub struct NoWaker;

#[async_trait]
impl Waker for NoWaker {
    async fn wake(&self, _delay: Duration) {}
}

/// Wakes a worker loop in the same process. Wake-ups that come while one is pending are one wake-up.
#[derive(Clone, Debug, Default)]
pub struct InProcessWaker {
    notify: Arc<Notify>,
}

impl InProcessWaker {
    /// Resolves when somebody has woken us since the last call.
    pub async fn woken(&self) {
        self.notify.notified().await;
    }
}

#[async_trait]
impl Waker for InProcessWaker {
    async fn wake(&self, delay: Duration) {
        if delay.is_zero() {
            self.notify.notify_one();
        } else {
            let notify = Arc::clone(&self.notify);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                notify.notify_one();
            });
        }
    }
}
