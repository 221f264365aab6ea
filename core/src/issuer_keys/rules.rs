//! What the issuer is called, and what its tokens may be.

use std::time::Duration;

use url::{Host, Url};

use crate::ids::{BusinessUnitId, WorkspaceId};
use crate::protocol::RunPhase;

/// No token lives longer, whatever is set.
pub const TOKEN_AGE_MAX: Duration = Duration::from_secs(600);

const AUDIENCE_CHARS_MAX: usize = 255;

/// Why this installation issues no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerOff {
    /// Clouds fetch its keys over TLS.
    #[error("PLUMBLINE_PUBLIC_URL does not begin with https://, and clouds trust no other issuer")]
    Unencrypted,
    /// Its documents lie at the root of a host.
    #[error("PLUMBLINE_PUBLIC_URL has more than a host, and the issuer's documents lie at the root of one")]
    NotAHost,
}

/// The issuer's name: the public address without a slash at its end. In the emulator it may be on this machine.
pub fn issuer(public_url: &str, is_one_machine: bool) -> Result<String, IssuerOff> {
    let url = Url::parse(public_url).map_err(|_| IssuerOff::NotAHost)?;
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if is_one_machine && is_here => {}
        _ => return Err(IssuerOff::Unencrypted),
    }
    let is_host = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if !is_host {
        return Err(IssuerOff::NotAHost);
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// What trust policies name: ids, which nobody can take over by a new name.
pub fn subject(unit: BusinessUnitId, workspace: WorkspaceId, phase: RunPhase) -> String {
    format!("unit:{unit}:workspace:{workspace}:phase:{}", phase_word(phase))
}

/// The phase in a token.
pub(super) fn phase_word(phase: RunPhase) -> &'static str {
    match phase {
        RunPhase::Plan => "plan",
        RunPhase::Apply => "apply",
    }
}

/// Whom a token is for: a word without blanks, as clouds compare it letter by letter.
pub fn check_audience(audience: &str) -> Result<(), &'static str> {
    if (1..=AUDIENCE_CHARS_MAX).contains(&audience.len()) && audience.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err("must have 1 to 255 visible ASCII characters")
}
