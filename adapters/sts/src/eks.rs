//! The token of an EKS cluster: a signed request that asks AWS "who am I", which the cluster sends. It names the cluster in a
//! signed header, so it opens no other.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use plumbline_core::protocol::AwsKeys;

use crate::endpoint::host;
use crate::signature::{ALGORITHM, Signed, Signer};

const PREFIX: &str = "k8s-aws-v1.";
const CLUSTER: &str = "x-k8s-aws-id";
/// What EKS asks for; it takes the token for a quarter of an hour all the same.
const EXPIRES_SECONDS: &str = "60";

/// A token for the cluster of this name in this region.
pub fn eks_token(keys: &AwsKeys, region: &str, cluster_name: &str, at: DateTime<Utc>) -> String {
    let (date, host) = (at.format("%Y%m%dT%H%M%SZ").to_string(), host(region));
    let signer = Signer { keys, region };
    let headers = [("host", host.as_str()), (CLUSTER, cluster_name)];
    let names = format!("host;{CLUSTER}");
    let credential = signer.credential(&date);
    // In the order of the names, as the signature wants it.
    let mut parameters = vec![
        ("Action", "GetCallerIdentity"),
        ("Version", "2011-06-15"),
        ("X-Amz-Algorithm", ALGORITHM),
        ("X-Amz-Credential", &credential),
        ("X-Amz-Date", &date),
        ("X-Amz-Expires", EXPIRES_SECONDS),
    ];
    parameters.extend(keys.session_token.as_deref().map(|token| ("X-Amz-Security-Token", token)));
    parameters.push(("X-Amz-SignedHeaders", &names));
    let query: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let query = query.join("&");
    let signed = Signed { method: "GET", query: &query, headers: &headers, body: "" };
    let signature = signer.signature(&date, &signed);
    let url = format!("https://{host}/?{query}&X-Amz-Signature={signature}");
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(url))
}

fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
