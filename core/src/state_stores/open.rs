//! The places that this process has opened. Opening one may mean to ask a token service; using it again does not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::{StatePlace, StoreAccount};
use crate::ids::StateStoreId;
use crate::ports::{BlobStore, OpenedStore, StateStores};

/// Places that are kept open in one process.
const OPEN_MAX: usize = 64;

/// Opened places, each by the version of the account that it was opened with.
#[derive(Debug, Default)]
pub struct OpenStores {
    /// `None`: this process opens none.
    opener: Option<Arc<dyn StateStores>>,
    open: Mutex<Opened>,
}

#[derive(Debug, Default)]
struct Opened {
    by_id: HashMap<StateStoreId, Entry>,
    /// Counts uses, to know the place that was not used for longest.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    account: StoreAccount,
    account_version: i32,
    place: StatePlace,
    opened: OpenedStore,
    used: u64,
}

impl Entry {
    fn is_good(&self, version: i32, at: Instant) -> bool {
        self.account_version == version && self.opened.renew_at.is_none_or(|renew_at| at < renew_at)
    }
}

impl OpenStores {
    /// None is open yet.
    pub fn new(opener: Arc<dyn StateStores>) -> Self {
        Self { opener: Some(opener), open: Mutex::default() }
    }

    pub(super) fn opener(&self) -> Option<&dyn StateStores> {
        self.opener.as_deref()
    }

    /// An open place, unless its account was edited since or its credentials are about to end.
    pub(super) fn find(&self, id: StateStoreId, version: i32, at: Instant) -> Option<Arc<dyn BlobStore>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.uses += 1;
        let used = open.uses;
        let entry = open.by_id.get_mut(&id).filter(|entry| entry.is_good(version, at))?;
        entry.used = used;
        Some(Arc::clone(&entry.opened.blobs))
    }

    /// The row of an open place.
    pub(super) fn id_of(&self, account: StoreAccount, place: &StatePlace) -> Option<StateStoreId> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = open.by_id.iter();
        entries.find(|(_, entry)| entry.account == account && entry.place == *place).map(|(id, _)| *id)
    }

    /// Keeps a place open, in the stead of the one that was not used for longest if there are too many.
    pub(super) fn keep(
        &self,
        id: StateStoreId,
        (account, account_version): (StoreAccount, i32),
        place: StatePlace,
        opened: OpenedStore,
    ) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.uses += 1;
        let entry = Entry { account, account_version, place, opened, used: open.uses };
        open.by_id.insert(id, entry);
        while open.by_id.len() > OPEN_MAX {
            let oldest = open.by_id.iter().min_by_key(|(_, entry)| entry.used).map(|(id, _)| *id);
            let Some(oldest) = oldest else { break };
            open.by_id.remove(&oldest);
        }
    }
}
