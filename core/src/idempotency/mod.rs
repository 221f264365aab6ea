//! Idempotency keys: a repeated POST answers what the first one did.
//!
//! The stored answer commits with the row that it tells about. Invariants: of two requests with one key, one executes;
//! the other waits for it and gets the same answer. A request that failed leaves no trace, so it can be repeated. A
//! key belongs to one caller in one scope, and to one request: method, path and body.
//!
//! ```ignore
//! match idempotency::service::begin(tx, &key, deps.limits.idempotency_age).await? {
//!     Begun::Replay(answer) => answer,
//!     Begun::First => {
//!         let answer = /* create in tx */;
//!         idempotency::service::store(tx, &key, &answer).await?;
//!         answer
//!     }
//! }
//! ```

mod error;
mod model;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use error::IdempotencyError;
pub use model::{Answer, Begun, Key, principal};
