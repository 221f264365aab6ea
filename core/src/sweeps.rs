//! What the reconciler does each minute. Every sweep is itself a claim, commits by itself, and is safe at any
//! parallelism.
