//! Sealing values for the database: Fernet under the domain's key, bound to the place where the value belongs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{Domain, Keyring, KeyringError, SecretText};

/// Where a sealed value belongs.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// The row.
    pub row: Uuid,
}

impl Place {
    fn header(self) -> String {
        format!("{}.{}.{}\n", self.table, self.column, self.row)
    }
}

/// Why a value could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// No key for the domain.
    #[error(transparent)]
    Key(KeyringError),
    /// Sealed under a root key that is not in the ring, damaged, or moved from another row.
    #[error("a sealed value cannot be opened: {0}")]
    Unreadable(&'static str),
}

impl From<KeyringError> for SealError {
    fn from(error: KeyringError) -> Self {
        match error {
            KeyringError::OtherRoot => Self::Unreadable("it was sealed under another root key"),
            other => Self::Key(other),
        }
    }
}

/// Names the root key that sealed a value.
pub fn key_id_of(sealed: &str) -> Option<&str> {
    sealed.split_once(':').map(|(key_id, _)| key_id)
}

impl Keyring {
    /// Seals a value for one place, under the current root's key.
    pub fn seal(&self, domain: Domain, place: Place, plaintext: &str) -> Result<String, SealError> {
        let bound = Zeroizing::new([&place.header(), plaintext].concat());
        Ok(format!("{}:{}", self.key_id(), fernet(self.key(domain)?)?.encrypt(bound.as_bytes())))
    }

    /// Opens a value that belongs to one place, whichever root of the ring has sealed it.
    pub fn open(&self, domain: Domain, place: Place, sealed: &str) -> Result<SecretText, SealError> {
        let (key_id, token) = sealed.split_once(':').ok_or(SealError::Unreadable("it names no key"))?;
        let fernet = fernet(self.key_of(key_id, domain)?)?;
        let bound = fernet.decrypt(token).map_err(|_| SealError::Unreadable("it is damaged"))?;
        let bound = Zeroizing::new(bound);
        let bound = std::str::from_utf8(&bound).map_err(|_| SealError::Unreadable("it is not text"))?;
        let plaintext = bound.strip_prefix(&place.header());
        plaintext.map(SecretText::new).ok_or(SealError::Unreadable("it belongs to another row"))
    }
}

fn fernet(key: &[u8; 32]) -> Result<fernet::Fernet, SealError> {
    let key = Zeroizing::new(URL_SAFE.encode(key));
    fernet::Fernet::new(&key).ok_or(SealError::Unreadable("the key has a wrong length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "the root key of last year, 32 characters or more";
    const NEW: &str = "the root key of this year, 32 characters or more";

    fn place(row: u128) -> Place {
        Place { table: "runs", column: "variables_sealed", row: Uuid::from_u128(row) }
    }

    #[test]
    fn a_value_opens_with_the_root_that_it_names_and_is_sealed_with_the_current_one() {
        let (old, both) =
            (Keyring::from_root(OLD).expect("a root"), Keyring::from_roots(NEW, &[OLD]).expect("two"));
        let new = Keyring::from_root(NEW).expect("a root");
        let before = old.seal(Domain::Git, place(1), "s3cr3t").expect("sealed");
        let after = both.seal(Domain::Git, place(1), "s3cr3t").expect("sealed");
        assert_eq!((key_id_of(&before), key_id_of(&after)), (Some(old.key_id()), Some(new.key_id())));
        for sealed in [&before, &after] {
            assert_eq!(both.open(Domain::Git, place(1), sealed).expect("opened").expose(), "s3cr3t");
        }
        assert_eq!(new.open(Domain::Git, place(1), &after).expect("opened").expose(), "s3cr3t");
        let error = new.open(Domain::Git, place(1), &before).expect_err("no such root");
        assert!(error.to_string().contains("another root key"), "{error}");
    }

    #[test]
    fn a_value_opens_only_in_its_place_and_domain() {
        let ring = Keyring::from_root(NEW).expect("a root");
        let sealed = ring.seal(Domain::Git, place(1), "s3cr3t").expect("sealed");
        let refused = |domain, place| ring.open(domain, place, &sealed).expect_err("refused").to_string();
        assert!(refused(Domain::Git, place(2)).contains("another row"));
        assert!(refused(Domain::Variables, place(1)).contains("damaged"));
        assert!(ring.open(Domain::Git, place(1), "nothing").is_err());
    }
}
