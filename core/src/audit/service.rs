//! Use cases of the audit log.

use super::Entry;
use crate::db::{DbError, Tx};

/// Appends an entry to its chain. Call it last: it locks the chain's head until the transaction ends.
pub async fn record(tx: &Tx<'_>, entry: &Entry) -> Result<(), DbError> {
    let _ = (tx, entry);
    todo!("audit")
}
