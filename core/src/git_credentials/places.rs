//! For which repositories a credential is used: one host, one transport, the longest path prefix.

use crate::workspaces::{RepoUrl, Transport};

/// A repository as credentials are matched with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// How Git speaks with the host.
    pub transport: Transport,
    /// With its port unless that is the transport's own.
    pub host: String,
    /// Without slashes at its ends and without `.git`.
    pub path: String,
    /// Whether nobody between us and the host can listen.
    pub is_encrypted: bool,
}

impl Place {
    /// `None` for a path on this machine: nobody asks for a credential there.
    pub fn of(repository: &RepoUrl) -> Option<Self> {
        let (host, port) = repository.endpoint()?;
        let path = repository.path();
        Some(Self {
            transport: repository.transport(),
            host: with_port(&host.to_ascii_lowercase(), port, repository.transport()),
            path: path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/').to_owned(),
            is_encrypted: repository.is_encrypted(),
        })
    }
}

/// Whether a credential of this transport, host and prefix is for the repository. A path that goes up again is below no
/// prefix.
pub fn covers(transport: Transport, host: &str, prefix: &str, place: &Place) -> bool {
    let rest = place.path.strip_prefix(prefix);
    let is_below = prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_plain = !place.path.split('/').any(|part| part == ".." || part == "." || part.is_empty());
    transport == place.transport && host == place.host && is_below && (is_plain || prefix.is_empty())
}

/// The credential for a repository: of those that cover it the one with the longest prefix.
pub fn best<T>(
    candidates: impl IntoIterator<Item = T>,
    place: &Place,
    of: impl Fn(&T) -> (Transport, &str, &str),
) -> Option<T> {
    candidates
        .into_iter()
        .filter(|one| {
            let (transport, host, prefix) = of(one);
            covers(transport, host, prefix, place)
        })
        .max_by_key(|one| of(one).2.len())
}

/// The port that an address need not name.
pub(super) fn own_port(transport: Transport) -> u16 {
    if transport == Transport::Ssh { 22 } else { 443 }
}

/// A host as credentials name it: an IPv6 address in brackets, a port only if it is not the transport's own.
pub(super) fn with_port(host: &str, port: u16, transport: Transport) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    if port == own_port(transport) { host } else { format!("{host}:{port}") }
}
