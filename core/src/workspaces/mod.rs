//! Workspaces: one Terraform directory in one place.
