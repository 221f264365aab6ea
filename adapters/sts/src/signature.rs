//! AWS's signature, version 4, of the one request in `request`.

use hmac::{Hmac, Mac as _};
use plumbline_core::digest::Sha256Digest;
use sha2::Sha256;

use crate::request::{ALGORITHM, BODY, CONTENT_TYPE, SERVICE, SIGNED_HEADERS, host};

/// Who signs.
pub(crate) struct Signer<'a> {
    pub(crate) access_key_id: &'a str,
    pub(crate) secret_access_key: &'a str,
    pub(crate) security_token: &'a str,
    pub(crate) region: &'a str,
}

impl Signer<'_> {
    /// The header `Authorization`. `date` is written as `20260131T235959Z`.
    pub(crate) fn authorization(&self, date: &str, ticket: Sha256Digest) -> String {
        let day = date.split('T').next().unwrap_or_default();
        let scope = format!("{day}/{}/{SERVICE}/aws4_request", self.region);
        let canonical = format!(
            "POST\n/\n\n\
             content-type:{CONTENT_TYPE}\nhost:{}\nx-amz-date:{date}\nx-amz-security-token:{}\n\
             x-plumbline-ticket:{ticket}\n\n\
             {SIGNED_HEADERS}\n{}",
            host(self.region),
            self.security_token,
            Sha256Digest::of(BODY.as_bytes()),
        );
        let digest = Sha256Digest::of(canonical.as_bytes());
        let to_sign = format!("{ALGORITHM}\n{date}\n{scope}\n{digest}");
        let secret = ["AWS4", self.secret_access_key].concat().into_bytes();
        let key =
            [day, self.region, SERVICE, "aws4_request"].iter().fold(secret, |key, part| mac(&key, part));
        let signature = hex::encode(mac(&key, &to_sign));
        format!(
            "{ALGORITHM} Credential={}/{scope}, SignedHeaders={SIGNED_HEADERS}, Signature={signature}",
            self.access_key_id
        )
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
