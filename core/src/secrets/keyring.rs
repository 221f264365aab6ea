//! The derived keys of one process.

use std::collections::BTreeMap;

use hkdf::Hkdf;
use sha2::{Digest as _, Sha256};

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// Signing access and refresh tokens.
    Sessions,
    /// Tickets and tokens of executors.
    Executors,
    /// Signing audit checkpoints where no KMS does.
    Audit,
    /// Signing local upload and download URLs.
    Blobs,
    /// Secret settings.
    Config,
    /// AWS credentials.
    Aws,
    /// Azure credentials.
    Azure,
    /// GCP credentials.
    Gcp,
    /// Kubeconfigs.
    Kubernetes,
    /// Git credentials.
    Git,
    /// Terraform variables.
    Variables,
    /// Outputs of instances.
    Instances,
}

impl Domain {
    /// Every domain.
    pub const ALL: [Self; 12] = [
        Self::Sessions,
        Self::Executors,
        Self::Audit,
        Self::Blobs,
        Self::Config,
        Self::Aws,
        Self::Azure,
        Self::Gcp,
        Self::Kubernetes,
        Self::Git,
        Self::Variables,
        Self::Instances,
    ];

    /// The word in salts and in names of environment variables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Executors => "executors",
            Self::Audit => "audit",
            Self::Blobs => "blobs",
            Self::Config => "config",
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gcp => "gcp",
            Self::Kubernetes => "kubernetes",
            Self::Git => "git",
            Self::Variables => "variables",
            Self::Instances => "instances",
        }
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The root key is too short to be one.
    #[error("CREDENTIAL_ENCRYPTION_KEY must have at least 32 characters; there is no default")]
    RootTooShort,
    /// A derived key is not 64 hex digits.
    #[error("the key of the domain {0} is not 64 hex digits")]
    Malformed(&'static str),
    /// This function was not given the key.
    #[error("this function has no key for the domain {0}")]
    Missing(&'static str),
}

/// The derived keys that a process was given.
#[derive(Clone)]
pub struct Keyring {
    /// Names the root key in sealed values: the first 8 hex digits of a digest of it.
    key_id: String,
    keys: BTreeMap<Domain, [u8; 32]>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring").field("domains", &self.keys.keys()).finish_non_exhaustive()
    }
}

impl Keyring {
    /// Derives every domain's key from the root key: the emulator and the deploy do this, functions do not.
    pub fn from_root(root: &str) -> Result<Self, KeyringError> {
        if root.len() < 32 {
            return Err(KeyringError::RootTooShort);
        }
        let keys = Domain::ALL.into_iter().map(|domain| (domain, derive(root, domain))).collect();
        Ok(Self { key_id: hex::encode(&Sha256::digest(["plumbline-key-id:", root].concat())[..4]), keys })
    }

    /// Takes derived keys as a function gets them: pairs of domain and 64 hex digits.
    pub fn from_derived(key_id: &str, derived: &[(Domain, String)]) -> Result<Self, KeyringError> {
        let mut keys = BTreeMap::new();
        for (domain, text) in derived {
            let mut key = [0; 32];
            hex::decode_to_slice(text, &mut key).map_err(|_| KeyringError::Malformed(domain.as_str()))?;
            keys.insert(*domain, key);
        }
        Ok(Self { key_id: key_id.to_owned(), keys })
    }

    /// The key of a domain.
    pub fn key(&self, domain: Domain) -> Result<&[u8; 32], KeyringError> {
        self.keys.get(&domain).ok_or(KeyringError::Missing(domain.as_str()))
    }

    /// Names the root key.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The same keys, but only those of the given domains.
    #[must_use]
    pub fn only(&self, domains: &[Domain]) -> Self {
        let keys = self.keys.iter().filter(|(domain, _)| domains.contains(domain));
        Self { key_id: self.key_id.clone(), keys: keys.map(|(domain, key)| (*domain, *key)).collect() }
    }

    /// The derived keys as environment variables for a function's process.
    pub fn export(&self) -> Vec<(String, String)> {
        let id = ("PLUMBLINE_KEY_ID".to_owned(), self.key_id.clone());
        let variable = |(domain, key): (&Domain, &[u8; 32])| {
            (format!("PLUMBLINE_KEY_{}", domain.as_str().to_uppercase()), hex::encode(key))
        };
        std::iter::once(id).chain(self.keys.iter().map(variable)).collect()
    }
}

fn derive(root: &str, domain: Domain) -> [u8; 32] {
    let salt = format!("plumbline-{}-v1", domain.as_str());
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(Some(salt.as_bytes()), root.as_bytes())
        .expand(b"plumbline", &mut key)
        .expect("32 bytes are within what HKDF can give");
    key
}
