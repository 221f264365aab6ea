//! Listening on loopback, with errors that name the flag.

use std::io::ErrorKind;
use std::net::Ipv4Addr;

use anyhow::bail;
use tokio::net::{TcpListener, TcpStream};

/// Somebody else listens on a port that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("port {port} is busy; choose another one with {flag} (0 takes any free port)")]
pub struct PortBusy {
    /// The port.
    pub port: u16,
    /// The option that sets it.
    pub flag: &'static str,
}

/// Listens on loopback.
pub(crate) async fn listen(port: u16, flag: &'static str) -> anyhow::Result<TcpListener> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(PortBusy { port, flag }),
        Err(error) => bail!("cannot listen on 127.0.0.1:{port} ({flag}): {error}"),
    }
}

/// Refuses a busy port that another program will listen on.
pub(crate) async fn check_free(port: u16, flag: &'static str) -> anyhow::Result<()> {
    if port == 0 {
        return Ok(());
    }
    // Dropped at once: a listener that never accepted leaves nothing behind.
    listen(port, flag).await.map(drop)
}

/// For every accepted connection. Otherwise the second half of an answer waits until the client acknowledges the first,
/// which clients put off for 40 ms.
pub(crate) fn send_at_once(socket: &mut TcpStream) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a connection broke before it was served");
    }
}
