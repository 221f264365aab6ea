//! The object store in Azure Blob Storage and in Google Cloud Storage, opened with credentials that are given: places of
//! tenants' own accounts, never the platform's own store.
//!
//! The crate `object_store` signs, keeps tokens, tries again and speaks most calls. Its errors do not say which of a
//! service's refusals one was, so `wire` puts a typed fault into what it passes on; and it knows no condition on the end of
//! a large object, so the ends of those are spoken here: a block list with `If-None-Match: *` on Azure, a resumable upload
//! with `ifGenerationMatch=0` on Google's.
//!
//! Objects are written once: every write carries its condition, so it may be sent again whatever became of its answer. No
//! store here checks a SHA-256 of ours, so [`BlobHead::sha256`](plumbline_core::ports::BlobHead) is `None`, and whoever
//! must know reads the object. Neither platform signs an upload of exactly these bytes, so
//! [`presign_put`](plumbline_core::ports::BlobStore::presign_put) is refused: large uploads stage in the platform's own
//! store and are copied.
//!
//! What is left of a large object that nobody ends: blocks on Azure, a session on Google's. Nobody sees either, and both
//! services remove them after a week by themselves.

mod azure;
mod bucket;
mod gcs;
mod wire;

pub use azure::{AzureAccess, AzurePlace, AzureStore};
pub use gcs::{GcsAccess, GcsPlace, GcsStore};
