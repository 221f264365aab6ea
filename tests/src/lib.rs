//! The integration tests live in `it/`; what `make bench` measures lives here.

pub mod bench;
