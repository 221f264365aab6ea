//! The address of a Plumbline server.

use std::str::FromStr;

use url::{Host, Url};

/// Scheme, host, port and an optional path below which the API lives; no trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server(Url);

impl Server {
    /// The full address of an API path such as `/api/v1/me`.
    pub fn url(&self, path: &str) -> Result<Url, url::ParseError> {
        Url::parse(&format!("{self}{path}"))
    }

    /// Whether the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// Whether what is sent can be read on the way.
    pub fn is_readable_on_the_way(&self) -> bool {
        self.0.scheme() == "http" && !self.is_loopback()
    }

    /// Whether an answer of this server may send the caller there: never from TLS to plain text over a network.
    pub fn may_redirect_to(&self, target: &Url) -> bool {
        match target.scheme() {
            "https" => true,
            "http" => self.0.scheme() == "http" || is_loopback(target),
            _ => false,
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "expected something like https://plumbline.example.com";
        let mut url = Url::parse(text).map_err(|error| format!("{error}; {example}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(example.into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "the address must not contain a user name or password; `plumb login` asks for them".into()
            );
        }
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Server {
        text.parse().expect("valid")
    }

    #[test]
    fn a_path_is_appended_once() {
        let url = server("http://127.0.0.1:8080/base/").url("/api/v1/me").expect("valid");
        assert_eq!(url.as_str(), "http://127.0.0.1:8080/base/api/v1/me");
    }

    #[test]
    fn credentials_in_the_address_are_refused() {
        assert!("https://me:secret@example.com".parse::<Server>().is_err());
        assert!("ftp://example.com".parse::<Server>().is_err());
        assert!("example.com".parse::<Server>().is_err());
    }

    #[test]
    fn tls_is_never_given_up_on_a_redirect() {
        let tls = server("https://plumbline.example.com");
        assert!(!tls.may_redirect_to(&Url::parse("http://store.example.com/a").expect("valid")));
        assert!(tls.may_redirect_to(&Url::parse("https://store.example.com/a").expect("valid")));
        assert!(
            server("http://127.0.0.1:1").may_redirect_to(&Url::parse("http://localhost:2/a").expect("valid"))
        );
    }
}
