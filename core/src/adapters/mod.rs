//! Implementations of the ports that need no cloud SDK.

mod directory_store;
mod wakers;

pub use directory_store::{DirectoryStore, Grant, GrantError};
pub use wakers::{InProcessWaker, NoWaker};
