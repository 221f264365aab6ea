//! The one request that both sides know. Nothing of it but the signature goes over the wire between them.

/// What is asked.
pub(crate) const BODY: &str = "Action=GetCallerIdentity&Version=2011-06-15";
pub(crate) const CONTENT_TYPE: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// All headers, in the order of the signature. The last one has the ticket's digest: whoever got hold of a signature for
/// another server cannot use it here. A proof over fewer headers is refused, for AWS would not look at the others.
pub(crate) const SIGNED_HEADERS: &str =
    "content-type;host;x-amz-date;x-amz-security-token;x-plumbline-ticket";
/// The beginning of the header `Authorization`, and of what is signed.
pub(crate) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
pub(crate) const SERVICE: &str = "sts";

/// The regional service's name, which the signature covers.
pub(crate) fn host(region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("{SERVICE}.{region}.{domain}")
}
