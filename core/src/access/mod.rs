//! Who acts, within which business units, and what that lets them do.
//!
//! A [`Ctx`] is made once per request by the edge and passed to every use case. Scope is a type: a statement can
//! only be written against `One(unit)` or a superadmin's `All`, and creating needs `One`.
//! Invariant: power is what the database says at this request, never what a token claims.

mod model;
mod rules;

pub use model::{Actor, Capability, Credential, Ctx, Role, Scope, TraceParent};
pub use rules::{AccessError, Permission};
