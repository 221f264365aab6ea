//! The matrix of real clients: `terraform` and `tofu` against a state backend, through a proxy that records every request
//! and does to it what networks do.
//!
//! A [`Case`] is data: a module, steps with the requests that are expected of each, and what must hold afterwards. What a
//! client can see is checked on any server; what only the server knows, where a [`Target`] can look. Nothing here knows
//! Plumbline's API.

mod case;
pub mod cases;
mod checks;
mod engine;
mod faults;
mod program;
mod proxy;
mod recorded;
mod report;
mod target;
mod trace;

pub use case::{Address, Call, Case, Head, Request, Step};
pub use engine::run;
pub use faults::{Act, Fault};
pub use program::{Program, find};
pub use report::{Outcome, Report, run_all};
pub use target::{AnyServer, Favour, Insight, Methods, Place, Target, Who};
