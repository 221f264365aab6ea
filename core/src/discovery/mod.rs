//! Looking into repositories for directories that could become workspaces.
