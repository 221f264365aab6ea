//! The lock, taken and given back.

use bytes::Bytes;
use reqwest::Method;

use crate::upstream::{Away, Call, Refusal, Upstream};

/// Takes the lock that a LockInfo names.
pub async fn take_lock(upstream: &dyn Upstream, info: Bytes) -> Result<Result<(), Refusal>, Away> {
    let call = Call::new(Method::POST, "/lock").body(info);
    Ok(upstream.send(&call).await?.map(drop))
}

/// Gives the lock back that a LockInfo names.
pub async fn give_lock_back(upstream: &dyn Upstream, info: Bytes) -> Result<Result<(), Refusal>, Away> {
    let call = Call::new(Method::DELETE, "/lock").body(info);
    Ok(upstream.send(&call).await?.map(drop))
}

/// Takes the lock away from whoever holds it: without a body it is terraform's force-unlock.
pub(crate) async fn force_lock_open(upstream: &dyn Upstream) -> Result<Result<(), Refusal>, Away> {
    Ok(upstream.send(&Call::new(Method::DELETE, "/lock")).await?.map(drop))
}
