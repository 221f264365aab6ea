//! What can go wrong between us and Postgres, sorted by what a caller does about it.

use tokio_postgres::error::SqlState;

/// A database error.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// No connection could be had, or it broke: passes by itself.
    #[error("the database cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server gave up on the statement for the sake of others (deadlock, lock timeout, serialization,
    /// shutdown): trying the whole transaction again may work.
    #[error("the database asked to try again")]
    TryAgain(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A unique constraint refused the row.
    #[error("a row with the same {constraint} exists")]
    Duplicate {
        /// The constraint's name.
        constraint: String,
    },
    /// A foreign key refused the row: what it points to is not there.
    #[error("the row refers to something that does not exist ({constraint})")]
    Missing {
        /// The constraint's name.
        constraint: String,
    },
    /// Anything else is a defect of ours.
    #[error("database error")]
    Other(#[source] tokio_postgres::Error),
    /// A row did not have the shape that the code expects.
    #[error("a row could not be read: {0}")]
    Row(String),
}

impl DbError {
    /// Whether waiting and trying again may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::TryAgain(_))
    }

    /// Whether the named unique constraint was violated.
    pub fn is_duplicate_of(&self, name: &str) -> bool {
        matches!(self, Self::Duplicate { constraint } if constraint == name)
    }
}

impl From<tokio_postgres::Error> for DbError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return if error.is_closed()
                || std::error::Error::source(&error).is_some_and(|s| s.is::<std::io::Error>())
            {
                Self::Unavailable(error.into())
            } else {
                Self::Other(error)
            };
        };
        let constraint = || db.constraint().unwrap_or("row").to_owned();
        match db.code() {
            &SqlState::UNIQUE_VIOLATION => Self::Duplicate { constraint: constraint() },
            &SqlState::FOREIGN_KEY_VIOLATION => Self::Missing { constraint: constraint() },
            &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::LOCK_NOT_AVAILABLE
            | &SqlState::QUERY_CANCELED => Self::TryAgain(error.into()),
            &SqlState::ADMIN_SHUTDOWN
            | &SqlState::CRASH_SHUTDOWN
            | &SqlState::CANNOT_CONNECT_NOW
            | &SqlState::TOO_MANY_CONNECTIONS
            | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Self::Unavailable(error.into()),
            _ => Self::Other(error),
        }
    }
}

impl From<deadpool_postgres::PoolError> for DbError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => match Self::from(error) {
                // A refused or half-open connection has no SQLSTATE; the server is simply not there.
                Self::Other(error) => Self::Unavailable(error.into()),
                known => known,
            },
            other => Self::Unavailable(other.into()),
        }
    }
}
