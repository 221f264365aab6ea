//! A waker over SQS. A message is a hint without content: losing one costs latency, and the sweep finds the work.

use std::time::Duration;

use async_trait::async_trait;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use plumbline_core::ports::Waker;

/// How long a wake-up may hold up the request that made work due.
pub const BUDGET: Duration = Duration::from_millis(150);
/// The longest delay that SQS takes.
const DELAY_SECONDS_MAX: u64 = 900;

/// Sends wake-ups to one queue.
#[derive(Clone, Debug)]
pub struct SqsWaker {
    client: aws_sdk_sqs::Client,
    queue_url: String,
}

/// The lean client: rustls with ring. Credentials, region and endpoint come from the environment unless they are set.
pub fn config_loader() -> ConfigLoader {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https();
    aws_config::defaults(BehaviorVersion::latest()).http_client(http)
}

impl SqsWaker {
    /// A waker over a configuration that [`config_loader`] made.
    pub fn new(config: &SdkConfig, queue_url: impl Into<String>) -> Self {
        Self { client: aws_sdk_sqs::Client::new(config), queue_url: queue_url.into() }
    }

    /// A waker with the configuration of this process.
    pub async fn from_environment(queue_url: &str) -> Self {
        Self::new(&config_loader().load().await, queue_url)
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
