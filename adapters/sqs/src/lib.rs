//! A waker over SQS. A message is a hint without content: losing one costs latency, and the sweep finds the work.

use std::time::Duration;

use async_trait::async_trait;
use aws_config::BehaviorVersion;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use plumbline_core::ports::Waker;

/// How long a wake-up may hold up the request that made work due.
const BUDGET: Duration = Duration::from_millis(150);
/// The longest delay that SQS takes.
const DELAY_SECONDS_MAX: u64 = 900;

/// Sends wake-ups to one queue.
#[derive(Clone, Debug)]
pub struct SqsWaker {
    client: aws_sdk_sqs::Client,
    queue_url: String,
}

impl SqsWaker {
    /// A waker for the queue, with credentials, region and endpoint from the environment.
    pub async fn from_environment(queue_url: &str) -> Self {
        Self::connect(queue_url, None).await
    }

    /// A waker for the queue. `endpoint_url` replaces AWS's own; credentials and region come from the environment.
    pub async fn connect(queue_url: impl Into<String>, endpoint_url: Option<&str>) -> Self {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
        if let Some(url) = endpoint_url {
            loader = loader.endpoint_url(url);
        }
        Self { client: aws_sdk_sqs::Client::new(&loader.load().await), queue_url: queue_url.into() }
    }
}

#[async_trait]
impl Waker for SqsWaker {
    async fn wake(&self, delay: Duration) {
        // Rounded up: a worker that comes too early finds nothing.
        let seconds = (delay.as_secs() + u64::from(delay.subsec_nanos() > 0)).min(DELAY_SECONDS_MAX);
        let message = self
            .client
            .send_message()
            .queue_url(&self.queue_url)
            // SQS refuses an empty body.
            .message_body("wake")
            .delay_seconds(i32::try_from(seconds).unwrap_or(0))
            .send();
        match tokio::time::timeout(BUDGET, message).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                let error = aws_sdk_sqs::error::DisplayErrorContext(error);
                tracing::warn!(%error, "a wake-up was not sent; the sweep finds the work");
            }
            Err(_) => tracing::warn!("a wake-up took too long; the sweep finds the work"),
        }
    }
}
