//! Keys and sealed values.
//!
//! One root key, no default. Each domain has its own key (HKDF-SHA256, salt `plumbline-<domain>-v1`); a function gets
//! only the domain keys that it needs, never the root. A sealed value names the root key that sealed it, and its
//! plaintext begins with where it belongs, which is checked at opening: a ciphertext moved to another row is refused.

mod keyring;
mod sealed;

pub use keyring::{Domain, Keyring, KeyringError};
pub use sealed::{Place, SealError};
