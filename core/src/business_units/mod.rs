//! Business units: the tenants.
