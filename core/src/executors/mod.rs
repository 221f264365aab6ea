//! Executors: one launched attempt of one task. Tickets, the trade, what a token may do, how an executor stops.
//!
//! Invariants: launch parameters carry no secret but the ticket. A ticket is traded once, for one nonce; with another
//! nonce it is refused, ends an attempt that has not begun to change things, and is audited. A cancelled or superseded
//! task gets nothing. An attempt whose ticket was never traded has provably not begun. On ECS a ticket is worth nothing to
//! anybody but the task that it was made for. What the untrusted child holds, the run password, reads shared outputs while
//! the attempt's lease is live, and does nothing else.

#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
mod identity;
#[cfg(feature = "store")]
pub mod liveness;
#[cfg(feature = "store")]
mod liveness_store;
#[cfg(feature = "store")]
pub mod readers;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod trade;

#[cfg(feature = "store")]
pub use error::ExecutorError;
#[cfg(feature = "store")]
pub use identity::TaskIdentity;
#[cfg(feature = "store")]
pub use service::ExecutorCaller;
