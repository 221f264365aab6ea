//! What all routes share.
