//! What people and verifiers get to see of the log.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::ChainId;
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, RunId, UserId, WorkspaceId};

/// One recorded entry, as people read it.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct EntryView {
    /// Its place in its chain; starts at 1.
    pub sequence: i64,
    /// Its chain: the business unit's id, or all zeros for the platform.
    pub chain_id: ChainId,
    /// The business unit; absent for what concerns the whole platform.
    pub business_unit_id: Option<BusinessUnitId>,
    /// Who did it; absent for Plumbline itself.
    pub user_id: Option<UserId>,
    /// `resource.verb`.
    pub action: String,
    /// The kind of thing it was done to.
    pub resource_type: String,
    /// Which one.
    pub resource_id: String,
    /// In which workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// In which run.
    pub run_id: Option<RunId>,
    /// More, by action.
    pub details: Value,
    /// When, by the database's clock.
    pub created_at: DateTime<Utc>,
    /// SHA-256 over the hash before and the entry's bytes.
    pub hash: Sha256Digest,
}

/// One page of entries, newest first.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct EntryPage {
    /// The entries.
    pub items: Vec<EntryView>,
    /// Pass as `cursor` to get the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Where a chain ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HeadView {
    /// The chain.
    pub chain_id: ChainId,
    /// Its last entry.
    pub sequence: i64,
    /// That entry's hash.
    pub hash: Sha256Digest,
}

/// How a checkpoint is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureAlgorithm {
    /// Ed25519 over the body.
    Ed25519,
    /// ECDSA with the curve P-256 over the SHA-256 of the body, in DER.
    EcdsaP256Sha256,
}

impl SignatureAlgorithm {
    /// The word in checkpoints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::EcdsaP256Sha256 => "ecdsa_p256_sha256",
        }
    }
}

/// What a checkpoint states. Its canonical JSON is what is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckpointBody {
    /// The layout.
    pub format: u32,
    /// How it is signed.
    pub algorithm: SignatureAlgorithm,
    /// Names the public key that it is checked with.
    pub key_id: String,
    /// Rises by one.
    pub sequence: i64,
    /// SHA-256 of the body of the checkpoint before; zeros for the first.
    pub previous_hash: Sha256Digest,
    /// When, by the database's clock, in RFC 3339.
    pub created_at: String,
    /// Every chain's head, ordered by chain.
    pub heads: Vec<HeadView>,
}

/// One place where the log is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Broken {
    /// The chain.
    pub chain_id: ChainId,
    /// The first entry concerned.
    pub sequence: i64,
    /// What is wrong, as a sentence.
    pub reason: String,
}

/// The newest checkpoint, as verification found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct CheckpointView {
    /// Its number.
    pub sequence: i64,
    /// Whether it follows its predecessors, its signature holds, and every entry it names is there.
    pub ok: bool,
    /// What is wrong with checkpoints, at most [`CheckpointView::FAULTS_MAX`] places.
    pub faults: Vec<BrokenCheckpoint>,
}

impl CheckpointView {
    /// Faults reported at most.
    pub const FAULTS_MAX: usize = 100;
}

/// One checkpoint that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BrokenCheckpoint {
    /// Its number; 0 if it does not even say that.
    pub sequence: i64,
    /// What is wrong, as a sentence.
    pub reason: String,
}

/// The outcome of a verification.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Verification {
    /// Nothing is broken.
    pub ok: bool,
    /// Chains looked at.
    pub chains: i64,
    /// Entries looked at.
    pub entries: i64,
    /// What is broken, at most [`Verification::BROKEN_MAX`] places.
    pub broken: Vec<Broken>,
    /// The newest checkpoint; absent while there is none.
    pub checkpoint: Option<CheckpointView>,
}

impl Verification {
    /// Broken places reported at most.
    pub const BROKEN_MAX: usize = 100;
}

/// One entry as an offline verifier needs it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExportedEntry {
    /// The chain.
    pub chain_id: ChainId,
    /// Its place.
    pub sequence: i64,
    /// The hash before.
    pub previous_hash: Sha256Digest,
    /// Its hash.
    pub hash: Sha256Digest,
    /// The hashed bytes, which are text.
    pub canonical: String,
}

/// One page of an export, oldest first, with the newest checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Export {
    /// Entries of one chain.
    pub items: Vec<ExportedEntry>,
    /// Pass as `after` to get the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<i64>,
    /// The newest checkpoint as it lies in the object store; absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<SignedCheckpoint>,
}

/// A checkpoint as it lies in the object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SignedCheckpoint {
    /// The signed bytes: the canonical JSON of a [`CheckpointBody`].
    pub body: String,
    /// SHA-256 of the body.
    pub hash: Sha256Digest,
    /// The signature of the body, by the algorithm that the body names, in base64.
    pub signature: String,
    /// Names the public key.
    pub key_id: String,
    /// The public key (SubjectPublicKeyInfo) in base64: compare it with the one you noted, do not trust it from here.
    pub public_key: String,
}

/// One page of chains, with the newest checkpoint: what an export begins with.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Chains {
    /// Where each chain of the caller's scope ends, ordered by chain.
    pub items: Vec<HeadView>,
    /// Pass as `cursor` to get the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ChainId>,
    /// The newest checkpoint as it lies in the object store, not newer than these heads; absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<SignedCheckpoint>,
}
