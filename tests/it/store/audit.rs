//! The audit log below the API.
