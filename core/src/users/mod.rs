//! People: who may sign in, with what password, and what they may do where.
//!
//! Invariants: an e-mail is stored in lower case; a user without a password hash cannot sign in with a password, and
//! finding that out takes as long as a wrong password; the last superadmin who can sign in stays one; an invitation is
//! good once, and is kept as a digest.

#[cfg(feature = "store")]
pub mod changes;
#[cfg(feature = "store")]
pub mod credentials;
mod error;
#[cfg(feature = "store")]
mod invites_store;
mod model;
#[cfg(feature = "store")]
pub mod passwords;
#[cfg(feature = "store")]
pub mod provided;
#[cfg(feature = "store")]
mod provided_store;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use error::UserError;
pub use model::{
    Invite, Me, MembershipView, NewMembership, NewUser, Password, UserChange, UserFilter, UserView,
};
pub use rules::{PasswordFault, check_password, normal_email};
