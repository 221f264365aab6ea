//! Who looks at what right now: a row for each person that their client renews, for others to see who is there.
//!
//! Not a record: rows are overwritten, swept, and may be lost. People are seen in the unit that they look at, by those
//! who belong to it.

mod error;
mod model;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use error::PresenceError;
pub use model::PresenceView;
