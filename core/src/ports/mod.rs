//! Traits for the outside world. One exists only where two real implementations do.

mod blob_store;
mod launcher;
mod waker;

pub use blob_store::{BlobError, BlobHead, BlobStore, UploadTerms, check_key};
pub use launcher::{ExecutorFate, LaunchError, LaunchRequest, Launcher};
pub use waker::Waker;
