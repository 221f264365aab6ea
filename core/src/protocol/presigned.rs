//! A request that somebody without credentials may send until it expires.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A signed request to the object store.
#[derive(Clone, Serialize, Deserialize)]
pub struct Presigned {
    /// `GET` or `PUT`.
    pub method: String,
    /// The full URL. A credential: never logged.
    pub url: String,
    /// Headers that must be sent exactly so.
    pub headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Presigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presigned").field("method", &self.method).finish_non_exhaustive()
    }
}
