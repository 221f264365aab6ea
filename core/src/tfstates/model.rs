//! State as plain data.

use crate::digest::Sha256Digest;
use crate::ids::StateVersionId;

/// The newest accepted version of a workspace's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateHead {
    /// The version.
    pub version_id: StateVersionId,
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
    /// Its length in bytes.
    pub size_bytes: i64,
    /// Its digest.
    pub sha256: Sha256Digest,
}
