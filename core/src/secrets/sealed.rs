//! Sealing values for the database: Fernet under the domain's key, bound to the place where the value belongs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use uuid::Uuid;

use super::{Domain, Keyring, KeyringError};

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
    Key(#[from] KeyringError),
    /// Sealed under another root key, damaged, or moved from another row.
    #[error("a sealed value cannot be opened: {0}")]
    Unreadable(&'static str),
}

impl Keyring {
    /// Seals a value for one place.
    pub fn seal(&self, domain: Domain, place: Place, plaintext: &str) -> Result<String, SealError> {
        let bound = [&place.header(), plaintext].concat();
        Ok(format!("{}:{}", self.key_id(), self.fernet(domain)?.encrypt(bound.as_bytes())))
    }

    /// Opens a value that belongs to one place.
    pub fn open(&self, domain: Domain, place: Place, sealed: &str) -> Result<String, SealError> {
        let (key_id, token) = sealed.split_once(':').ok_or(SealError::Unreadable("it names no key"))?;
        if key_id != self.key_id() {
            return Err(SealError::Unreadable("it was sealed under another root key"));
        }
        let bound =
            self.fernet(domain)?.decrypt(token).map_err(|_| SealError::Unreadable("it is damaged"))?;
        let bound = String::from_utf8(bound).map_err(|_| SealError::Unreadable("it is not text"))?;
        let plaintext = bound.strip_prefix(&place.header());
        plaintext.map(str::to_owned).ok_or(SealError::Unreadable("it belongs to another row"))
    }

    fn fernet(&self, domain: Domain) -> Result<fernet::Fernet, SealError> {
        let key = URL_SAFE.encode(self.key(domain)?);
        fernet::Fernet::new(&key).ok_or(SealError::Unreadable("the key has a wrong length"))
    }
}
