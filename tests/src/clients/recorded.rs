//! One request as the proxy saw it.

use std::fmt;

/// What was asked for, what the answer was, and what was wrong with either.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// `GET`, `POST?ID`, or method and path where the client's settings have no word for it.
    pub operation: String,
    /// The server's; without one there was no answer.
    pub status: Option<u16>,
    /// What the proxy did with it.
    pub mark: &'static str,
    /// What no client may send and no server may answer.
    pub wrongs: Vec<String>,
    /// How the body of the answer was encoded.
    pub coding: Option<String>,
}

impl Recorded {
    pub(super) fn new(operation: &str, status: Option<u16>, mark: &'static str) -> Self {
        Self { operation: operation.to_owned(), status, mark, wrongs: Vec::new(), coding: None }
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)?;
        if let Some(status) = self.status {
            write!(f, " {status}")?;
        }
        if let Some(coding) = &self.coding {
            write!(f, " {coding}")?;
        }
        if !self.mark.is_empty() {
            write!(f, " {}", self.mark)?;
        }
        for wrong in &self.wrongs {
            write!(f, " [{wrong}]")?;
        }
        Ok(())
    }
}
