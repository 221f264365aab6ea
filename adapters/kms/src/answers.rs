//! What KMS answers, as far as it is read.

use plumbline_core::ports::SignerError;
use reqwest::StatusCode;
use serde::Deserialize;

/// Longest code of an error that is repeated.
const CODE_CHARS_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct KeyAnswer {
    /// SubjectPublicKeyInfo in base64.
    pub(crate) public_key: String,
    pub(crate) key_usage: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SignAnswer {
    /// DER in base64.
    pub(crate) signature: String,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    #[serde(rename = "__type")]
    kind: String,
}

/// What a refusal means. Whatever is not clearly for good passes by itself.
pub(crate) fn refusal(status: StatusCode, text: &str) -> SignerError {
    let kind = serde_json::from_str::<ErrorAnswer>(text).map(|answer| answer.kind).unwrap_or_default();
    // Some name the error with its namespace before a sharp.
    let code = kind.rsplit('#').next().unwrap_or_default();
    let is_code =
        (1..=CODE_CHARS_MAX).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric());
    let said = if is_code { format!("{code} ({status})") } else { status.to_string() };
    let is_passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
        || ["ThrottlingException", "RequestLimitExceeded", "LimitExceededException"].contains(&code);
    if status.is_client_error() && !is_passing {
        SignerError::Refused(format!("KMS answered {said}"))
    } else {
        SignerError::Unavailable(format!("KMS answered {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_is_a_refusal() {
        let answer = |code: &str| format!("{{\"__type\":\"{code}\",\"message\":\"x\"}}");
        let refused = |status: u16, text: &str| {
            let status = StatusCode::from_u16(status).expect("a status");
            matches!(refusal(status, text), SignerError::Refused(_))
        };
        assert!(
            refused(400, &answer("NotFoundException"))
                && refused(400, &answer("com.amazonaws.kms#DisabledException"))
        );
        assert!(refused(403, "no JSON"));
        assert!(!refused(400, &answer("ThrottlingException")) && !refused(429, "") && !refused(500, ""));
        assert!(!refused(301, "") && !refused(200, ""));
        let said = refusal(StatusCode::BAD_REQUEST, &answer("a code with\\nlines")).to_string();
        assert!(said.ends_with("KMS answered 400 Bad Request"), "{said}");
    }
}
