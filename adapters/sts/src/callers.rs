//! The control plane's side: sends what an executor has signed, and reads who that was.
//!
//! Nothing that a stranger sends decides where a request goes or what it asks: address, method, path, body and the
//! other headers are ours.

use async_trait::async_trait;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{CallerArn, CallerIdentity, IdentityError};
use plumbline_core::protocol::IdentityProof;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};

use crate::endpoint::{self, Answer, Endpoint, EndpointError};
use crate::request::{self, BODY, SIGNED_HEADERS};
use crate::signature::ALGORITHM;
use crate::xml::{element, plain};

/// Longest header that is sent.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Asks AWS's security token service.
#[derive(Clone, Debug)]
pub struct StsCallers {
    endpoint: Endpoint,
}

impl StsCallers {
    /// The service of a region; `endpoint` is another address for it, such as that of a VPC endpoint. The name that
    /// executors sign stays the region's. The default of rustls must be installed.
    pub fn new(region: &str, endpoint: Option<&str>) -> Result<Self, EndpointError> {
        Ok(Self { endpoint: Endpoint::new(region, endpoint)? })
    }
}

#[async_trait]
impl CallerIdentity for StsCallers {
    async fn identify(
        &self,
        proof: &IdentityProof,
        ticket: Sha256Digest,
    ) -> Result<CallerArn, IdentityError> {
        check_authorization(&proof.authorization)?;
        let request = self
            .endpoint
            .post()
            .header(CONTENT_TYPE, request::CONTENT_TYPE)
            .header(AUTHORIZATION, header(&proof.authorization)?)
            .header("x-amz-date", header(&proof.date)?)
            .header("x-amz-security-token", header(&proof.security_token)?)
            .header(request::TICKET, ticket.to_string())
            .body(BODY);
        match endpoint::send(request).await {
            Answer::Fine(text) => caller(&text)
                .map(|arn| CallerArn(arn.to_owned()))
                .ok_or_else(|| IdentityError::Unavailable("the answer of STS cannot be read".into())),
            Answer::Refused(refusal) => {
                Err(IdentityError::Refused(format!("STS refused the proof: {}", refusal.said)))
            }
            Answer::Unavailable(why) => Err(IdentityError::Unavailable(why)),
        }
    }
}

/// AWS looks only at the headers that a signature names; one that leaves out the ticket could be anybody's.
fn check_authorization(authorization: &str) -> Result<(), IdentityError> {
    let covers_all = authorization.strip_prefix(ALGORITHM).is_some_and(|rest| {
        let fields: Vec<&str> = rest.split(',').map(str::trim).collect();
        let [credential, headers, signature] = fields[..] else { return false };
        credential.starts_with("Credential=")
            && headers.strip_prefix("SignedHeaders=") == Some(SIGNED_HEADERS)
            && signature.strip_prefix("Signature=").is_some_and(|hex| hex.parse::<Sha256Digest>().is_ok())
    });
    if covers_all {
        return Ok(());
    }
    Err(IdentityError::Refused("the proof is not a signature over the headers that must be signed".into()))
}

fn header(value: &str) -> Result<HeaderValue, IdentityError> {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let value = HeaderValue::from_str(value).ok().filter(|_| is_plain && value.len() <= HEADER_BYTES_MAX);
    let mut value =
        value.ok_or_else(|| IdentityError::Refused("a part of the proof is not a header".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The caller in the answer of `GetCallerIdentity`.
fn caller(xml: &str) -> Option<&str> {
    plain(element(xml, "GetCallerIdentityResult")?, "Arn")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">
      <GetCallerIdentityResult><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><UserId>A:s</UserId><Account>1</Account>
      </GetCallerIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
      </GetCallerIdentityResponse>";

    #[test]
    fn only_a_whole_answer_names_a_caller() {
        assert_eq!(caller(ANSWER), Some("arn:aws:sts::1:assumed-role/r/s"));
        assert_eq!(caller(&ANSWER.replace("GetCallerIdentityResult", "AssumeRoleResult")), None);
        assert_eq!(caller(&ANSWER.replace("</Arn>", "</Arn><Arn>x</Arn>")), None);
        assert_eq!(caller(&ANSWER.replace("role/r/s", "role/r/&lt;s")), None);
        assert_eq!(caller(""), None);
    }
}
