//! What every use case may need, wired once per process by the edge.

use std::sync::Arc;

use crate::config::Overrides;
use crate::db::Db;
use crate::executors::TaskIdentity;
use crate::ids::IdSource;
use crate::limits::Limits;
use crate::ports::{BlobStore, CheckpointSigner, NamedSigner, Waker};
use crate::secrets::Keyring;
use crate::state_stores::OpenStores;

/// The outside world as one value. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Deps {
    /// Queue, lock and truth.
    pub db: Db,
    /// Large immutable objects.
    pub blobs: Arc<dyn BlobStore>,
    /// Places in accounts of units, where their states lie.
    pub state_stores: Arc<OpenStores>,
    /// Called after commits that made work due.
    pub waker: Arc<dyn Waker>,
    /// Where ids come from.
    pub ids: IdSource,
    /// The derived keys that this function was given.
    pub keys: Arc<Keyring>,
    /// Tunables.
    pub limits: Arc<Limits>,
    /// Where people and executors reach us, without a trailing slash.
    pub public_url: Arc<str>,
    /// Below it lie the repositories that may be named by path; `None` allows none.
    pub local_repos_root: Option<Arc<str>>,
    /// Whether repositories may live at loopback and private addresses: on one machine, never on AWS.
    pub allow_private_addresses: bool,
    /// How executors that are not on this machine prove who they are. `None`: none of them gets a bundle.
    pub task_identity: Option<TaskIdentity>,
    /// Settings that the environment gives, before those that superadmins have set.
    pub overrides: Arc<Overrides>,
    /// Signs audit checkpoints in place of our own key: a KMS. `None`: the key of the audit domain does.
    pub audit_signer: Option<Arc<dyn CheckpointSigner>>,
    /// Sign tokens of our own issuer in place of keys in the database, one after the other as people rotate them: keys of a
    /// KMS. Empty: keys are made here, and sealed.
    pub issuer_signers: Arc<[NamedSigner]>,
    /// Where AWS's token service answers, instead of its public addresses.
    pub sts_endpoint: Option<Arc<str>>,
    /// Where other services answer whose credentials are tried.
    pub endpoints: Arc<Endpoints>,
}

/// Addresses of services, without a slash at their ends. The default is where everybody finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Azure's directories.
    pub azure_directories: String,
    /// Azure's resources; also whom tokens for them are for.
    pub azure: String,
    /// Where Google trades tokens.
    pub google_oauth: String,
    /// Slack's Web API.
    pub slack: String,
    /// Infracost's prices.
    pub infracost: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            azure_directories: "https://login.microsoftonline.com".into(),
            azure: "https://management.azure.com".into(),
            google_oauth: "https://oauth2.googleapis.com".into(),
            slack: "https://slack.com/api".into(),
            infracost: "https://pricing.api.infracost.io".into(),
        }
    }
}
