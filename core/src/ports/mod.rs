//! Traits for the outside world. One exists where two real implementations do, or where the only one needs a client of
//! the cloud, which core must not build.

mod blob_store;
mod caller_identity;
mod checkpoint_signer;
mod launcher;
mod pieces;
mod state_stores;
mod token_signer;
mod waker;

pub use blob_store::{
    BlobError, BlobHead, BlobPrefix, BlobStore, PartWriter, UploadTerms, check_key, holds, settle,
};
pub use caller_identity::{CallerArn, CallerIdentity, IdentityError};
pub use checkpoint_signer::{CheckpointSigner, SignerError};
pub use launcher::{ExecutorFate, LaunchError, LaunchRequest, Launcher};
pub use pieces::Pieces;
pub use state_stores::{OpenError, OpenedStore, StateStores};
pub use token_signer::{NamedSigner, TokenSigner};
pub use waker::Waker;
