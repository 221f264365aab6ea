//! The derived keys of one process: those of the current root, which seal, and those of other roots, which only open.

use std::collections::BTreeMap;

use hkdf::Hkdf;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::root_key::{self, RootKeyError};

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// Signing refresh tokens, and sealing the secrets of access tokens.
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
    /// The cookie of a sign-in that is under way at the identity provider.
    Signin,
    /// Private keys of our own issuer.
    Issuer,
}

impl Domain {
    /// Every domain.
    pub const ALL: [Self; 14] = [
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
        Self::Signin,
        Self::Issuer,
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
            Self::Signin => "signin",
            Self::Issuer => "issuer",
        }
    }

    /// Whether values are sealed with it: they are sealed again when the root key is replaced. The other keys sign and
    /// derive what does not last.
    pub fn seals(self) -> bool {
        match self {
            Self::Executors | Self::Audit | Self::Blobs | Self::Signin => false,
            Self::Sessions
            | Self::Config
            | Self::Aws
            | Self::Azure
            | Self::Gcp
            | Self::Kubernetes
            | Self::Git
            | Self::Variables
            | Self::Instances
            | Self::Issuer => true,
        }
    }

    /// The environment variable with the key of the current root.
    pub fn variable(self) -> String {
        format!("PLUMBLINE_KEY_{}", self.as_str().to_uppercase())
    }

    /// The variable with the keys of other roots: `<key id>:<64 hex digits>`, separated by blanks.
    fn previous_variable(self) -> String {
        format!("PLUMBLINE_PREVIOUS_KEY_{}", self.as_str().to_uppercase())
    }
}

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// It cannot be a root key.
    #[error(transparent)]
    Root(#[from] RootKeyError),
    /// A derived key is not 64 hex digits.
    #[error("the key of the domain {0} is not 64 hex digits")]
    Malformed(&'static str),
    /// A derived key of another root is not named.
    #[error("the previous keys of the domain {0} are not written as <key id>:<64 hex digits>")]
    MalformedPrevious(&'static str),
    /// This function was not given the key.
    #[error("this function has no key for the domain {0}")]
    Missing(&'static str),
    /// No root key in the ring has this id.
    #[error("it was sealed under another root key")]
    OtherRoot,
}

type Key = Zeroizing<[u8; 32]>;

/// What was derived from one root key.
#[derive(Clone)]
struct RootKeys {
    /// Names the root key in sealed values: the first 8 hex digits of a digest of it.
    id: String,
    keys: BTreeMap<Domain, Key>,
}

/// The derived keys that a process was given.
#[derive(Clone)]
pub struct Keyring {
    current: RootKeys,
    others: Vec<RootKeys>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let others: Vec<&str> = self.others.iter().map(|root| root.id.as_str()).collect();
        f.debug_struct("Keyring")
            .field("key_id", &self.current.id)
            .field("domains", &self.current.keys.keys())
            .field("others", &others)
            .finish_non_exhaustive()
    }
}

impl Keyring {
    /// Derives every domain's key from the root key: the emulator and the deploy do this, functions do not.
    pub fn from_root(root: &str) -> Result<Self, KeyringError> {
        Self::from_roots(root, &[])
    }

    /// The same with root keys that only open. While a root key is replaced these are the ones before it, and for a
    /// moment at the beginning the next one.
    pub fn from_roots(root: &str, others: &[&str]) -> Result<Self, KeyringError> {
        let current = RootKeys::derive(root)?;
        let others: Vec<RootKeys> =
            others.iter().map(|root| RootKeys::derive(root)).collect::<Result<_, _>>()?;
        if others.iter().any(|other| other.id == current.id) {
            return Err(RootKeyError::Repeated.into());
        }
        Ok(Self { current, others })
    }

    /// Takes derived keys as a function gets them: `find` gives the variables that [`Keyring::export`] has made. `None`
    /// if there is no derived key at all.
    pub fn from_derived<'a>(
        key_id: &str,
        find: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Option<Self>, KeyringError> {
        let mut ring =
            Self { current: RootKeys { id: key_id.to_owned(), keys: BTreeMap::new() }, others: Vec::new() };
        for domain in Domain::ALL {
            if let Some(text) = find(&domain.variable()) {
                let key = decode(text).ok_or(KeyringError::Malformed(domain.as_str()))?;
                ring.current.keys.insert(domain, key);
            }
            for word in find(&domain.previous_variable()).unwrap_or_default().split_whitespace() {
                let malformed = KeyringError::MalformedPrevious(domain.as_str());
                let (id, text) = word.split_once(':').filter(|(id, _)| !id.is_empty()).ok_or(malformed)?;
                let key = decode(text).ok_or(malformed)?;
                ring.other(id).keys.insert(domain, key);
            }
        }
        Ok(Some(ring).filter(|ring| !ring.current.keys.is_empty()))
    }

    /// The other root of this name; made if it is new.
    fn other(&mut self, id: &str) -> &mut RootKeys {
        let at = self.others.iter().position(|root| root.id == id).unwrap_or_else(|| {
            self.others.push(RootKeys { id: id.to_owned(), keys: BTreeMap::new() });
            self.others.len() - 1
        });
        &mut self.others[at]
    }

    /// The key of a domain, which seals and signs.
    pub fn key(&self, domain: Domain) -> Result<&[u8; 32], KeyringError> {
        self.current.key(domain)
    }

    /// Every key of a domain, the current root's first: what one of them has signed is ours.
    pub fn every_key(&self, domain: Domain) -> Result<impl Iterator<Item = &[u8; 32]>, KeyringError> {
        let current = self.current.key(domain)?;
        Ok(std::iter::once(current).chain(self.others.iter().filter_map(move |root| root.key(domain).ok())))
    }

    /// The key that opens what the named root has sealed.
    pub fn key_of(&self, key_id: &str, domain: Domain) -> Result<&[u8; 32], KeyringError> {
        let mut roots = std::iter::once(&self.current).chain(&self.others);
        roots.find(|root| root.id == key_id).ok_or(KeyringError::OtherRoot)?.key(domain)
    }

    /// Names the current root key.
    pub fn key_id(&self) -> &str {
        &self.current.id
    }

    /// The names of all root keys in the ring, the current one first.
    pub fn key_ids(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.current).chain(&self.others).map(|root| root.id.as_str())
    }

    /// Whether there are other roots than the current one: a root key is being replaced.
    pub fn is_rotating(&self) -> bool {
        !self.others.is_empty()
    }

    /// The same keys, but only those of the given domains.
    #[must_use]
    pub fn only(&self, domains: &[Domain]) -> Self {
        let kept = |root: &RootKeys| root.only(domains);
        Self { current: kept(&self.current), others: self.others.iter().map(kept).collect() }
    }

    /// The derived keys as environment variables for a function's process.
    pub fn export(&self) -> Vec<(String, String)> {
        let mut variables = vec![("PLUMBLINE_KEY_ID".to_owned(), self.current.id.clone())];
        for domain in Domain::ALL {
            if let Ok(key) = self.current.key(domain) {
                variables.push((domain.variable(), hex::encode(key)));
            }
            let named =
                |root: &RootKeys| Some(format!("{}:{}", root.id, hex::encode(root.key(domain).ok()?)));
            let others: Vec<String> = self.others.iter().filter_map(named).collect();
            if !others.is_empty() {
                variables.push((domain.previous_variable(), others.join(" ")));
            }
        }
        variables
    }
}

impl RootKeys {
    fn derive(root: &str) -> Result<Self, KeyringError> {
        root_key::check(root)?;
        let keys = Domain::ALL.into_iter().map(|domain| (domain, derive(root, domain))).collect();
        let digest = Sha256::digest(Zeroizing::new(["plumbline-key-id:", root].concat()).as_bytes());
        Ok(Self { id: hex::encode(&digest[..4]), keys })
    }

    fn key(&self, domain: Domain) -> Result<&[u8; 32], KeyringError> {
        self.keys.get(&domain).map(|key| &**key).ok_or(KeyringError::Missing(domain.as_str()))
    }

    fn only(&self, domains: &[Domain]) -> Self {
        let keys = self.keys.iter().filter(|(domain, _)| domains.contains(domain));
        Self { id: self.id.clone(), keys: keys.map(|(domain, key)| (*domain, key.clone())).collect() }
    }
}

fn derive(root: &str, domain: Domain) -> Key {
    let salt = format!("plumbline-{}-v1", domain.as_str());
    let mut key = Key::default();
    Hkdf::<Sha256>::new(Some(salt.as_bytes()), root.as_bytes())
        .expand(b"plumbline", &mut *key)
        .expect("32 bytes are within what HKDF can give");
    key
}

/// `None` also for what no derivation gives: one byte again and again is a placeholder.
fn decode(text: &str) -> Option<Key> {
    let mut key = Key::default();
    hex::decode_to_slice(text, &mut *key).ok()?;
    let is_random = key.iter().any(|byte| *byte != key[0]);
    is_random.then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "the root key of last year, 32 characters or more";
    const NEW: &str = "the root key of this year, 32 characters or more";

    fn imported(ring: &Keyring) -> Keyring {
        let variables: BTreeMap<String, String> = ring.export().into_iter().collect();
        let find = |name: &str| variables.get(name).map(String::as_str);
        Keyring::from_derived(ring.key_id(), find).expect("well-formed").expect("it has keys")
    }

    #[test]
    fn every_root_of_a_ring_survives_the_environment_of_a_function() {
        let ring = Keyring::from_roots(NEW, &[OLD]).expect("two roots");
        let old = Keyring::from_root(OLD).expect("a root");
        let given = imported(&ring.only(&[Domain::Git, Domain::Variables]));
        assert!(given.is_rotating() && given.key_id() == ring.key_id());
        for domain in [Domain::Git, Domain::Variables] {
            assert_eq!(given.key(domain), ring.key(domain));
            assert_eq!(given.key_of(old.key_id(), domain), old.key(domain));
            assert_eq!(given.every_key(domain).expect("keys").count(), 2);
        }
        assert_eq!(given.key(Domain::Aws), Err(KeyringError::Missing("aws")));
        assert_eq!(given.key_of(old.key_id(), Domain::Aws), Err(KeyringError::Missing("aws")));
        assert_eq!(given.key_of("00000000", Domain::Git), Err(KeyringError::OtherRoot));
    }

    #[test]
    fn a_ring_of_one_root_knows_no_other() {
        let ring = imported(&Keyring::from_root(NEW).expect("a root"));
        assert!(!ring.is_rotating());
        assert_eq!(ring.every_key(Domain::Audit).expect("keys").count(), 1);
        let twice = Keyring::from_roots(NEW, &[NEW]).map(|_| ());
        assert_eq!(twice, Err(RootKeyError::Repeated.into()));
    }

    #[test]
    fn malformed_keys_are_refused_by_domain() {
        let zeros = "00".repeat(32);
        for text in ["", "x", "00ff", zeros.as_str()] {
            let find = |name: &str| (name == "PLUMBLINE_KEY_GIT").then_some(text);
            let error = Keyring::from_derived("id", find).map(|_| ());
            assert_eq!(error, Err(KeyringError::Malformed("git")), "{text}");
        }
        let key = hex::encode(Keyring::from_root(OLD).expect("a root").key(Domain::Git).expect("a key"));
        for text in [key.clone(), format!(":{key}"), "id:00ff".to_owned()] {
            let find = |name: &str| (name == "PLUMBLINE_PREVIOUS_KEY_GIT").then_some(text.as_str());
            let error = Keyring::from_derived("id", find).map(|_| ());
            assert_eq!(error, Err(KeyringError::MalformedPrevious("git")), "{text}");
        }
    }

    #[test]
    fn no_key_is_shown() {
        let ring = Keyring::from_roots(NEW, &[OLD]).expect("two roots");
        let shown = format!("{ring:?} {ring:#?}");
        for (name, value) in ring.export().into_iter().filter(|(name, _)| name != "PLUMBLINE_KEY_ID") {
            let keys = value.split_whitespace().map(|word| word.rsplit(':').next().unwrap_or(word));
            for key in keys {
                assert!(!shown.contains(key), "{name}");
            }
        }
    }
}
