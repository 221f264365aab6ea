//! Implementations of the ports that need no cloud SDK.

mod directory_store;
mod git;
mod local_launcher;
mod local_work;
mod wakers;
pub mod web;

pub use directory_store::{DirectoryStore, Grant, GrantError};
pub use git::{Branches, FileList, Git, GitError, GitLogin};
pub use local_launcher::LocalLauncher;
pub use wakers::{InProcessWaker, NoWaker};
