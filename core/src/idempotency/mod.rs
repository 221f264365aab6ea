//! Idempotency keys: a repeated POST answers what the first one did.
