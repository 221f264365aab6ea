//! Calling one function from another, and waiting for its answer.

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_sdk_lambda::error::DisplayErrorContext;
use aws_sdk_lambda::primitives::Blob;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};

/// Why a call gave no answer. None of it says whether the function did its work.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// The platform did not take the call, or the answer was lost.
    #[error("the function {function} cannot be called: {reason}")]
    Unavailable {
        /// Its name.
        function: String,
        /// What the platform said.
        reason: String,
    },
    /// The function ended without an answer, as by a panic or at the end of its time.
    #[error("the function {function} failed ({reason})")]
    Failed {
        /// Its name.
        function: String,
        /// What kind of failure the platform saw; never what the function said, which may quote anything.
        reason: String,
    },
}

/// Calls one function.
#[derive(Clone, Debug)]
pub struct Function {
    client: aws_sdk_lambda::Client,
    name: String,
}

impl Function {
    /// A function by its name or ARN, with credentials, region and endpoint from the environment.
    pub async fn from_environment(name: impl Into<String>) -> Self {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let config = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            // Whoever calls knows whether the work may be done twice.
            .retry_config(RetryConfig::disabled())
            .load()
            .await;
        Self { client: aws_sdk_lambda::Client::new(&config), name: name.into() }
    }

    /// Sends one event and waits for the answer, as long as the caller does not drop this.
    pub async fn invoke(&self, event: Vec<u8>) -> Result<Vec<u8>, InvokeError> {
        let answer =
            self.client.invoke().function_name(&self.name).payload(Blob::new(event)).send().await.map_err(
                |error| InvokeError::Unavailable {
                    function: self.name.clone(),
                    reason: DisplayErrorContext(error).to_string(),
                },
            )?;
        match answer.function_error {
            Some(reason) => Err(InvokeError::Failed { function: self.name.clone(), reason }),
            None => Ok(answer.payload.map(Blob::into_inner).unwrap_or_default()),
        }
    }
}
