//! Implementations of the ports that need no cloud SDK.

mod directory_store;
mod git;
mod wakers;

pub use directory_store::{DirectoryStore, Grant, GrantError};
pub use git::{Branches, FileList, Git, GitError, GitLogin};
pub use wakers::{InProcessWaker, NoWaker};
