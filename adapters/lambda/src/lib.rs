//! Calling one function from another, and waiting for its answer.

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_sdk_lambda::error::DisplayErrorContext;
use aws_sdk_lambda::primitives::Blob;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};

/// Every kind of throttling has this status: the account's, the function's, the caller's.
const TOO_MANY_REQUESTS: u16 = 429;

/// Why a call gave no answer. Only throttling says that the function did nothing.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// The platform refused the call for now: the function was not run.
    #[error("calls of the function {function} are throttled: {reason}")]
    Throttled {
        /// Its name.
        function: String,
        /// What the platform said.
        reason: String,
    },
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

/// The lean client: rustls with ring. Credentials, region and endpoint come from the environment unless they are set.
pub fn config_loader() -> ConfigLoader {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https();
    // Whoever calls knows whether the work may be done twice.
    aws_config::defaults(BehaviorVersion::latest()).http_client(http).retry_config(RetryConfig::disabled())
}

impl Function {
    /// A function by its name or ARN, over a configuration that [`config_loader`] made.
    pub fn new(config: &SdkConfig, name: impl Into<String>) -> Self {
        Self { client: aws_sdk_lambda::Client::new(config), name: name.into() }
    }

    /// A function with the configuration of this process.
    pub async fn from_environment(name: impl Into<String>) -> Self {
        Self::new(&config_loader().load().await, name)
    }

    /// Sends one event and waits for the answer, as long as the caller does not drop this.
    pub async fn invoke(&self, event: Vec<u8>) -> Result<Vec<u8>, InvokeError> {
        let call = self.client.invoke().function_name(&self.name).payload(Blob::new(event));
        let answer = call.send().await.map_err(|error| {
            let throttled =
                error.raw_response().is_some_and(|raw| raw.status().as_u16() == TOO_MANY_REQUESTS);
            let (function, reason) = (self.name.clone(), DisplayErrorContext(error).to_string());
            if throttled {
                InvokeError::Throttled { function, reason }
            } else {
                InvokeError::Unavailable { function, reason }
            }
        })?;
        match answer.function_error {
            Some(reason) => Err(InvokeError::Failed { function: self.name.clone(), reason }),
            None => Ok(answer.payload.map(Blob::into_inner).unwrap_or_default()),
        }
    }
}
