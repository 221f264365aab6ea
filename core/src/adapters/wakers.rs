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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use futures::FutureExt as _;

    use super::*;

    fn is_woken(waker: &InProcessWaker) -> bool {
        waker.woken().now_or_never().is_some()
    }

    #[tokio::test]
    async fn a_wake_up_is_kept_until_somebody_waits_and_two_are_one() {
        let waker = InProcessWaker::default();
        assert!(!is_woken(&waker), "nobody has woken us");
        waker.wake(Duration::ZERO).await;
        waker.clone().wake(Duration::ZERO).await;
        assert!(is_woken(&waker));
        assert!(!is_woken(&waker), "what came while one was pending was the same");
    }

    #[tokio::test]
    async fn a_wake_up_reaches_who_waits_already() {
        let waker = InProcessWaker::default();
        let mut waiting = Box::pin(waker.woken());
        assert!(waiting.as_mut().now_or_never().is_none());
        waker.wake(Duration::ZERO).await;
        assert!(waiting.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_delayed_wake_up_comes_when_its_time_has_come_and_holds_nobody_up() {
        const DELAY: Duration = Duration::from_millis(50);
        let waker = InProcessWaker::default();
        let before = Instant::now();
        assert!(waker.wake(DELAY).now_or_never().is_some(), "who wakes does not wait");
        assert!(!is_woken(&waker));
        waker.woken().await;
        assert!(before.elapsed() >= DELAY);
    }
}
