//! Where the CLI keeps what it remembers between two calls.

use std::path::PathBuf;

/// `$PLUMB_CONFIG_DIR`, else `plumb` in the XDG configuration directory, else in `~/.config`.
pub fn directory() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("PLUMB_CONFIG_DIR")
        .or_else(|| variable("XDG_CONFIG_HOME").map(|base| base.join("plumb")))
        .or_else(|| variable("HOME").map(|home| home.join(".config").join("plumb")))
        .ok_or_else(|| {
            anyhow::anyhow!("neither HOME nor PLUMB_CONFIG_DIR is set, so there is no place for the session")
        })
}
