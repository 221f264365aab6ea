//! The state backend that a terraform on this machine sees: HTTP on the loopback interface, in front of the control
//! plane. An executor runs it for the child of a run, `plumb tf` for a person's own terraform.
//!
//! - The child is given no credentials that lead to the control plane, only a password of this proxy.
//! - A state may have any size: small ones travel in the request, others by the object store, and none is ever in memory
//!   as a whole.
//! - What terraform was told is kept, is on disk until the control plane has it: an outage delays a state, it loses none.
//! - The lock is given back only after everything written under it is settled.

mod delivery;
mod digests;
mod facts;
mod locks;
mod pauses;
mod proxy;
mod reading;
mod sending;
mod spools;
pub mod transfers;
mod upstream;

pub use delivery::Delivery;
pub use digests::{Digests, digests};
pub use facts::{StateFileFacts, check_file};
pub use locks::{give_lock_back, take_lock};
pub use pauses::Pauses;
pub use proxy::{Backing, Child, Live, StateProxy};
pub use reading::{ReadError, download};
pub use sending::{Unsent, send_file};
pub use spools::{Spooled, lock_file, spooled};
pub use upstream::{Away, Call, Refusal, Upstream, is_passing};
