//! The one request that executors and the control plane know. Nothing of it but the signature goes over the wire between
//! them.

/// What is asked.
pub(crate) const BODY: &str = "Action=GetCallerIdentity&Version=2011-06-15";
pub(crate) const CONTENT_TYPE: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// All headers, in the order of the signature. The last one has the ticket's digest: whoever got hold of a signature for
/// another server cannot use it here. A proof over fewer headers is refused, for AWS would not look at the others.
#[cfg(feature = "verify")]
pub(crate) const SIGNED_HEADERS: &str =
    "content-type;host;x-amz-date;x-amz-security-token;x-plumbline-ticket";
/// The header with the ticket's digest.
pub(crate) const TICKET: &str = "x-plumbline-ticket";
