//! What ECS says when it does not do what it was asked, sorted by what follows.

use aws_sdk_ecs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_ecs::types::Failure;
use plumbline_core::ports::LaunchError;

/// Codes of errors that pass once we ask less often.
const THROTTLING: [&str; 5] = [
    "ThrottlingException",
    "Throttling",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "LimitExceededException",
];
/// Codes of errors that no repetition helps.
const PERMANENT: [&str; 9] = [
    "AccessDeniedException",
    "BlockedException",
    "ClientException",
    "ClusterNotFoundException",
    "InvalidParameterException",
    "PlatformTaskDefinitionIncompatibilityException",
    "PlatformUnknownException",
    "UnrecognizedClientException",
    "UnsupportedFeatureException",
];

pub(crate) fn sdk_error<E>(error: &SdkError<E>) -> LaunchError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let text = DisplayErrorContext(error).to_string();
    match error.as_service_error().and_then(ProvideErrorMetadata::code) {
        Some(code) if THROTTLING.contains(&code) => LaunchError::Throttled(text),
        Some(code) if PERMANENT.contains(&code) => sort_permanent(error, text),
        _ => LaunchError::Unavailable(text),
    }
}

/// ECS wraps exhausted account limits in a `ClientException`; those pass when other tasks end.
fn sort_permanent<E: ProvideErrorMetadata>(error: &SdkError<E>, text: String) -> LaunchError {
    let message = error.as_service_error().and_then(ProvideErrorMetadata::message).unwrap_or_default();
    if is_limit(message) { LaunchError::Throttled(text) } else { LaunchError::Refused(text) }
}

/// A failure inside an answer with status 200.
pub(crate) fn failure_error(failure: &Failure) -> LaunchError {
    let reason = failure.reason().unwrap_or("no reason given");
    let text = match failure.detail() {
        Some(detail) => [reason, ": ", detail].concat(),
        None => reason.to_owned(),
    };
    if is_limit(reason) {
        LaunchError::Throttled(text)
    } else if reason.starts_with("RESOURCE") || reason == "AGENT" || reason.contains("apacity") {
        LaunchError::Unavailable(text)
    } else {
        LaunchError::Refused(text)
    }
}

fn is_limit(text: &str) -> bool {
    text.contains("limit on the number of") || text.contains("Rate exceeded")
}
