//! AWS's signature, version 4, of requests to STS.

use hmac::{Hmac, Mac as _};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::AwsKeys;
use sha2::Sha256;

/// The beginning of the header `Authorization`, and of what is signed.
pub(crate) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "sts";

/// Who signs, and for which region's service.
pub(crate) struct Signer<'a> {
    pub(crate) keys: &'a AwsKeys,
    pub(crate) region: &'a str,
}

/// What is signed of a request.
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    /// As in the address: sorted, with everything in it encoded.
    pub(crate) query: &'a str,
    /// Names in lower case, sorted.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

impl Signed<'_> {
    /// The names of the headers, as a signature lists them.
    pub(crate) fn header_names(&self) -> String {
        self.headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
    }
}

impl Signer<'_> {
    /// The header `Authorization`. `date` is written as `20260131T235959Z`.
    pub(crate) fn authorization(&self, date: &str, signed: &Signed<'_>) -> String {
        format!(
            "{ALGORITHM} Credential={}, SignedHeaders={}, Signature={}",
            self.credential(date),
            signed.header_names(),
            self.signature(date, signed)
        )
    }

    /// Who signs, with the scope of the signature.
    pub(crate) fn credential(&self, date: &str) -> String {
        format!("{}/{}", self.keys.access_key_id, self.scope(date))
    }

    /// The signature alone.
    pub(crate) fn signature(&self, date: &str, signed: &Signed<'_>) -> String {
        let headers: String =
            signed.headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical = format!(
            "{}\n/\n{}\n{headers}\n{}\n{}",
            signed.method,
            signed.query,
            signed.header_names(),
            Sha256Digest::of(signed.body.as_bytes()),
        );
        let digest = Sha256Digest::of(canonical.as_bytes());
        let to_sign = format!("{ALGORITHM}\n{date}\n{}\n{digest}", self.scope(date));
        let secret = ["AWS4", &self.keys.secret_access_key].concat().into_bytes();
        let key = [day(date), self.region, SERVICE, "aws4_request"]
            .iter()
            .fold(secret, |key, part| mac(&key, part));
        hex::encode(mac(&key, &to_sign))
    }

    fn scope(&self, date: &str) -> String {
        format!("{}/{}/{SERVICE}/aws4_request", day(date), self.region)
    }
}

fn day(date: &str) -> &str {
    date.split('T').next().unwrap_or_default()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
