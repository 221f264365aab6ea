//! The queue's SQL.
