//! People: who may sign in, with what password, and what they may do where.
//!
//! Invariants: an e-mail is stored in lower case; a user without a password hash cannot sign in with a password, and
//! finding that out takes as long as a wrong password.

mod error;
mod model;
#[cfg(feature = "store")]
pub mod passwords;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use error::UserError;
pub use model::{Me, MembershipView};
pub use rules::{check_password, normal_email};
