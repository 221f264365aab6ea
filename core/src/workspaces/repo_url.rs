//! Addresses of repositories. A [`RepoUrl`] is one that Git may be given: a transport that runs nothing, no password
//! inside, nothing that could be taken for an option.

use url::{Host, Url};

use super::LocalRepos;

/// Longest address, in bytes.
const URL_BYTES_MAX: usize = 2048;
/// Another spelling of a path on this machine; it is stored as the plain path.
const LOCAL_PREFIX: &str = "local://";

/// How Git reaches a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `http` or `https`.
    Http,
    /// `ssh`, also as `user@host:path`.
    Ssh,
    /// A path on this machine.
    Local,
}

/// A checked and normalised address of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoUrl {
    text: String,
    transport: Transport,
    endpoint: Option<(String, u16)>,
}

impl RepoUrl {
    /// Checks an address. The scheme and the host become lower case and trailing slashes go, so that one repository
    /// has one spelling.
    pub fn parse(text: &str, local: LocalRepos) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > URL_BYTES_MAX {
            return Err("must have 1 to 2,048 bytes");
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("must not contain blanks or control characters");
        }
        if text.starts_with('-') {
            return Err("must not begin with a dash");
        }
        if let Some(path) = text.strip_prefix(LOCAL_PREFIX).or_else(|| text.starts_with('/').then_some(text))
        {
            return Self::local(path, local);
        }
        // `ext::command` and its like hand the rest to a program of that name.
        if text.split_once("::").is_some_and(|(before, _)| !before.contains(['/', '[', '@'])) {
            return Err("transport helpers (name::address) are refused");
        }
        if text.contains("://") { Self::url(text) } else { Self::scp_like(text) }
    }

    /// As it is stored and given to Git.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How Git reaches it.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Host and port; `None` for a path on this machine.
    pub fn endpoint(&self) -> Option<(&str, u16)> {
        self.endpoint.as_ref().map(|(host, port)| (host.as_str(), *port))
    }

    /// Whether nobody between us and the host can listen.
    pub fn is_encrypted(&self) -> bool {
        self.transport == Transport::Ssh || self.text.starts_with("https://")
    }

    /// The path at the host, without slashes at its ends.
    pub fn path(&self) -> &str {
        let path = match (self.text.split_once("://"), self.transport) {
            (_, Transport::Local) => &self.text,
            (Some((_, rest)), _) => rest.split_once('/').map_or("", |(_, path)| path),
            (None, _) => self.text.split_once(':').map_or("", |(_, path)| path),
        };
        path.trim_matches('/')
    }

    /// The path of a local repository.
    pub fn local_path(&self) -> Option<&str> {
        (self.transport == Transport::Local).then_some(self.text.as_str())
    }

    fn local(path: &str, local: LocalRepos) -> Result<Self, &'static str> {
        if local == LocalRepos::Refused {
            return Err("paths on this machine are not allowed here: use https, http or ssh");
        }
        if !path.starts_with('/') || path.split('/').any(|part| part == "..") || path.contains('\\') {
            return Err("a local path must be absolute, without .. or backslashes");
        }
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return Err("the root directory is not a repository");
        }
        Ok(Self { text: path.to_owned(), transport: Transport::Local, endpoint: None })
    }

    fn url(text: &str) -> Result<Self, &'static str> {
        let url = Url::parse(text).map_err(|_| "is not a URL")?;
        let transport = match url.scheme() {
            "http" | "https" => Transport::Http,
            "ssh" => Transport::Ssh,
            _ => return Err("only https, http and ssh are allowed"),
        };
        if url.password().is_some() || (transport == Transport::Http && !url.username().is_empty()) {
            return Err("must not contain a user name or password: send them apart");
        }
        if url.username().starts_with('-') || url.username().contains('%') {
            return Err("has a user name that ssh could misread");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("must not have a query or a fragment");
        }
        let host = host_of(&url)?;
        if url.path().trim_matches('/').is_empty() {
            return Err("names no repository");
        }
        let default_port = if transport == Transport::Ssh { 22 } else { 443 };
        let port = url.port_or_known_default().unwrap_or(default_port);
        let text = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { text, transport, endpoint: Some((host, port)) })
    }

    fn scp_like(text: &str) -> Result<Self, &'static str> {
        let (place, path) = text.split_once(':').ok_or("is neither a URL nor of the form user@host:path")?;
        let (user, host) = place.split_once('@').unwrap_or(("git", place));
        let word = |word: &str| {
            !word.is_empty()
                && !word.starts_with(['-', '.'])
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
        };
        if !word(user) || !word(host) {
            return Err("is neither a URL nor of the form user@host:path");
        }
        // `fd:7` and `file:x` look like a host with a path.
        if ["ext", "fd", "file"].contains(&host) && !place.contains('@') {
            return Err("only https, http and ssh are allowed");
        }
        let path = path.trim_end_matches('/');
        if path.is_empty() || path.starts_with('-') {
            return Err("names no repository");
        }
        let host = host.to_ascii_lowercase();
        let text = [user, "@", &host, ":", path].concat();
        Ok(Self { text, transport: Transport::Ssh, endpoint: Some((host, 22)) })
    }
}

fn host_of(url: &Url) -> Result<String, &'static str> {
    match url.host() {
        Some(Host::Domain(name)) if name.starts_with('-') || name.contains('%') => Err("has a bad host"),
        Some(Host::Domain(name)) => Ok(name.to_owned()),
        Some(Host::Ipv4(address)) => Ok(address.to_string()),
        Some(Host::Ipv6(address)) => Ok(address.to_string()),
        None => Err("names no host"),
    }
}
