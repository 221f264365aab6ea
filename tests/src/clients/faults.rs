//! What networks, people and operating systems do to a request.

use super::case::Request;

/// When something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nth {
    /// At the n-th request of its kind, counted from 1.
    Only(usize),
    /// At the first n.
    First(usize),
    /// At every one.
    Every,
}

/// What is done.
#[derive(Clone, Debug)]
pub enum Act {
    /// The server acts; its answer never arrives.
    LoseAnswer,
    /// The connection breaks before the request reaches the server.
    Refuse,
    /// Somebody between the two answers instead of the server.
    Answer {
        /// With this status.
        status: u16,
        /// With this `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// The body is damaged on its way to the server.
    Damage,
    /// The connection breaks in the middle of the body.
    Cut,
    /// The request waits until the step that started the client is finished.
    Hold,
    /// The client is killed; the request never reaches the server.
    Kill,
    /// Somebody else's request comes first.
    Before(Request),
    /// Somebody else's request comes between this one and its answer.
    After(Request),
}

/// What is done to which request.
#[derive(Clone, Debug)]
pub struct Fault {
    pub(super) operation: &'static str,
    pub(super) nth: Nth,
    pub(super) act: Act,
}

impl Fault {
    /// To the first request of a kind: `LOCK`, `GET`, `POST`, `UNLOCK`.
    pub fn at_first(operation: &'static str, act: Act) -> Self {
        Self { operation, nth: Nth::Only(1), act }
    }

    /// To the n-th, counted from 1.
    pub fn at(operation: &'static str, number: usize, act: Act) -> Self {
        Self { operation, nth: Nth::Only(number), act }
    }

    /// To the first n.
    pub fn at_the_first(operation: &'static str, number: usize, act: Act) -> Self {
        Self { operation, nth: Nth::First(number), act }
    }

    /// To every one.
    pub fn always(operation: &'static str, act: Act) -> Self {
        Self { operation, nth: Nth::Every, act }
    }

    /// `number` counts the requests of the kind, this one included.
    pub(super) fn is_for(&self, operation: &str, number: usize) -> bool {
        let kind = operation.split('?').next() == Some(self.operation);
        kind && match self.nth {
            Nth::Only(nth) => number == nth,
            Nth::First(first) => number <= first,
            Nth::Every => true,
        }
    }
}
