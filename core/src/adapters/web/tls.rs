//! Whom a call believes, and by which certificate the caller is known.

use std::net::SocketAddr;

use reqwest::{Certificate, ClientBuilder, Identity};
use url::Url;

use super::WebError;
use crate::secrets::SecretText;

/// What one call has of certificates. Without any of it the public authorities are believed.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The only authorities that are believed, in PEM.
    pub authorities: Option<Vec<u8>>,
    /// Whether any certificate is believed.
    pub is_unchecked: bool,
    /// The name in the certificate, where it is not the host's.
    pub server_name: Option<String>,
    /// Our own certificate and its key, in PEM.
    pub own: Option<SecretText>,
}

impl Trust {
    /// Sets a client up for a host at these addresses; gives the address that it must call.
    pub(super) fn apply(
        &self,
        mut client: ClientBuilder,
        url: &Url,
        addresses: &[SocketAddr],
    ) -> Result<(ClientBuilder, Url), WebError> {
        let refused = |why: &str| WebError::Refused(why.to_owned());
        if let Some(pem) = &self.authorities {
            let authorities = Certificate::from_pem_bundle(pem)
                .map_err(|_| refused("the certificate of the authority cannot be read"))?;
            client = client.tls_certs_only(authorities);
        }
        if self.is_unchecked {
            client = client.tls_danger_accept_invalid_certs(true);
        }
        if let Some(own) = &self.own {
            let identity = Identity::from_pem(own.as_bytes())
                .map_err(|_| refused("the client certificate or its key cannot be read"))?;
            client = client.identity(identity);
        }
        let mut address = url.clone();
        if let Some(name) = &self.server_name {
            address
                .set_host(Some(name))
                .map_err(|_| refused("the name in the certificate is not the name of a host"))?;
        }
        let host = address.host_str().unwrap_or_default().to_owned();
        Ok((client.resolve_to_addrs(&host, addresses), address))
    }
}
