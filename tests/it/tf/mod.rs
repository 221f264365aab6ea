//! `plumb tf` and the commands for states, as a person runs them: the real program and the real terraform against a
//! server over HTTP, with an object store that signed URLs reach.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod apply;
mod away;
mod backends;
mod large;
mod pushing;
mod stage;
