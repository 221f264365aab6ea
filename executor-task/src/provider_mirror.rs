//! A directory of providers, laid out as terraform's filesystem mirrors are: `<host>/<namespace>/<type>/…`.

use std::io;
use std::path::{Path, PathBuf};

/// A CLI configuration by which the providers in the mirror come from there alone, and all others from their registry:
/// a provider must not be one thing here and another there.
pub(crate) fn cli_config(mirror: &Path) -> io::Result<String> {
    let mirror = mirror.canonicalize()?;
    let providers = serde_json::to_string(&providers(&mirror)?)?;
    let path = serde_json::to_string(&mirror)?;
    Ok(format!(
        "provider_installation {{\n  filesystem_mirror {{\n    path    = {path}\n    include = {providers}\n  }}\n  \
         direct {{\n    exclude = {providers}\n  }}\n}}\n"
    ))
}

/// The addresses of the providers, sorted.
fn providers(mirror: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for host in directories(mirror)? {
        for namespace in directories(&host)? {
            for provider in directories(&namespace)? {
                let address = provider.strip_prefix(mirror).map_err(io::Error::other)?;
                found.push(address.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What else lies there is no provider's: terraform ignores it too.
fn directories(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(parent)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    Ok(entries.into_iter().filter(|path| path.is_dir()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_the_mirror_is_taken_from_there_and_nowhere_else() {
        let mirror = tempfile::tempdir().unwrap();
        for provider in ["b.test/acme/two", "a.test/acme/one/1.0.0/linux_amd64"] {
            std::fs::create_dir_all(mirror.path().join(provider)).unwrap();
        }
        std::fs::write(mirror.path().join("README"), "").unwrap();
        let config = cli_config(mirror.path()).unwrap();
        let providers = r#"["a.test/acme/one","b.test/acme/two"]"#;
        assert!(config.contains(&format!("include = {providers}")), "{config}");
        assert!(config.contains(&format!("exclude = {providers}")), "{config}");
        assert!(cli_config(&mirror.path().join("absent")).is_err());
    }
}
