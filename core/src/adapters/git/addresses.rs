//! Which hosts may be reached.

use std::net::IpAddr;
use std::time::Duration;

use super::GitError;
use crate::workspaces::may_reach;

const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Every address of a host. One that may not be reached refuses them all: a name with a public and a private address
/// is up to something.
pub(super) async fn resolve(host: &str, port: u16, allow_private: bool) -> Result<Vec<IpAddr>, GitError> {
    let lookup = tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((host, port))).await;
    let found = match lookup {
        Ok(Ok(found)) => found,
        Ok(Err(_)) | Err(_) => {
            return Err(GitError::Unavailable(format!("the host {host} cannot be resolved")));
        }
    };
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|socket| socket.ip().to_canonical()) {
        if !may_reach(address, allow_private) {
            return Err(GitError::Refused(format!(
                "the host {host} is at an address that may not be reached"
            )));
        }
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(GitError::Unavailable(format!("the host {host} has no address")));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_disguised_loopback_is_refused() {
        for host in ["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "0.0.0.0"] {
            assert!(matches!(resolve(host, 443, false).await, Err(GitError::Refused(_))), "{host}");
        }
        assert!(resolve("127.0.0.1", 443, true).await.is_ok());
        assert!(matches!(resolve("169.254.169.254", 80, true).await, Err(GitError::Refused(_))));
    }
}
