//! Opening places for states in somebody's cloud.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use super::BlobStore;
use crate::state_stores::{StateAccess, StatePlace};

/// A place that was opened.
#[derive(Clone, Debug)]
pub struct OpenedStore {
    /// The place.
    pub blobs: Arc<dyn BlobStore>,
    /// From then on it must be opened again: its credentials will end. Until then they last long enough for any URL that is
    /// signed with them.
    pub renew_at: Option<Instant>,
}

/// Why a place cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The credentials are refused, or there are none. Trying again gives the same.
    #[error("{0}")]
    Refused(String),
    /// Passes by itself.
    #[error("{0}")]
    Unavailable(String),
}

/// Opens places. That a place exists need not be known before the first call to what was opened.
#[async_trait]
pub trait StateStores: Send + Sync + std::fmt::Debug {
    /// The place, with these credentials.
    async fn open(&self, place: &StatePlace, access: &StateAccess) -> Result<OpenedStore, OpenError>;
}
