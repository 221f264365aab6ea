//! After the claim: every write carries the lease, and what a lost lease may still do is nothing.
