//! What S3 says went wrong, as the port's errors.

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use plumbline_core::ports::BlobError;

/// Codes of a 4xx answer that pass by themselves.
const PASSING: [&str; 4] = ["RequestTimeout", "SlowDown", "Throttling", "ConditionalRequestConflict"];

/// Sorts an error by what a caller does about it.
pub(super) fn blob_error<E>(bucket: &str, key: &str, error: &SdkError<E>) -> BlobError
where
    SdkError<E>: ProvideErrorMetadata,
{
    let code = error.code();
    let reason = match (error.message(), code) {
        (Some(message), Some(code)) => format!("{code}: {message}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => match error {
            SdkError::TimeoutError(_) => "it did not answer in time".to_owned(),
            SdkError::DispatchFailure(_) => "no connection".to_owned(),
            _ => "an answer without a reason".to_owned(),
        },
    };
    match (code, status(error)) {
        (Some("NoSuchBucket"), _) => BlobError::StoreMissing { name: bucket.to_owned(), reason },
        (Some("NoSuchKey" | "NotFound"), _) | (_, Some(404)) => BlobError::NotFound(key.to_owned()),
        (_, Some(409 | 412)) => BlobError::Conflict(key.to_owned()),
        (Some(code), _) if PASSING.contains(&code) => BlobError::Unavailable(reason),
        // The bucket is in another region than the one that was asked.
        (_, Some(300..=399)) => BlobError::Refused(reason),
        (_, Some(400..=428 | 430..=499)) => BlobError::Refused(reason),
        _ => BlobError::Unavailable(reason),
    }
}

/// The answer's status, if there was one.
pub(super) fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}
