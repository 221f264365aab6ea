//! Who an executor on ECS is, proved without a secret of ours.

use serde::{Deserialize, Serialize};

/// A request that asks AWS "who am I", signed by the executor and not sent. The control plane knows every other part of
/// that request and sends it itself; so there is no address in here, and nothing that could change what is asked.
#[derive(Clone, Serialize, Deserialize)]
pub struct IdentityProof {
    /// The header `Authorization`: the signature, over a header with the ticket's digest among others.
    pub authorization: String,
    /// The header `X-Amz-Date`: AWS refuses an old signature.
    pub date: String,
    /// The header `X-Amz-Security-Token`: the credentials of a role always have one.
    pub security_token: String,
}

impl std::fmt::Debug for IdentityProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityProof").field("date", &self.date).finish_non_exhaustive()
    }
}
