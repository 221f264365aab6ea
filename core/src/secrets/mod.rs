//! Keys and sealed values.
//!
//! One root key, no default. Each domain has its own key (HKDF-SHA256, salt `plumbline-<domain>-v1`); a function gets
//! only the domain keys that it needs, never the root. A sealed value names the root key that sealed it, and its
//! plaintext begins with where it belongs, which is checked at opening: a ciphertext moved to another row is refused.
//!
//! A keyring holds the keys of the current root, which seal, and those of other roots, which only open: a root key is
//! replaced while everything runs (`rekeys`). What was opened is a [`SecretText`], which shows itself to nobody and is
//! wiped when it is dropped.

#[cfg(feature = "store")]
mod keyring;
#[cfg(feature = "store")]
mod root_key;
#[cfg(feature = "store")]
mod sealed;
mod text;

#[cfg(feature = "store")]
pub use keyring::{Domain, Keyring, KeyringError};
#[cfg(feature = "store")]
pub use root_key::RootKeyError;
#[cfg(feature = "store")]
pub use sealed::{Place, SealError, key_id_of};
pub use text::{SecretText, exposed};
