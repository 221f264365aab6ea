//! Implementations of the ports that need no cloud SDK.

mod directory_store;
mod local_launcher;
mod wakers;

pub use directory_store::DirectoryStore;
pub use local_launcher::LocalLauncher;
pub use wakers::{InProcessWaker, NoWaker};
