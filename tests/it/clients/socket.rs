//! Requests written by hand on a socket: what no HTTP library would send.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::store::state_client::{Backend, basic};

const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

/// A server to write bytes to.
pub struct Socket {
    host: String,
    authorization: String,
}

impl Socket {
    /// A server at an origin, and a token for it.
    pub fn at(origin: &str, token: &str) -> Self {
        Self { host: origin.trim_start_matches("http://").to_owned(), authorization: basic(token) }
    }

    pub async fn of(backend: &Backend) -> Self {
        Self::at(&backend.serve().await, &backend.token)
    }

    /// Sends a whole request: its status, or `None` if the connection was closed without one.
    pub async fn send(&self, line: &str, headers: &[&str], body: &[u8]) -> Option<u16> {
        self.send_then(line, headers, body, false).await
    }

    /// Sends a request of which nothing more will come than these bytes.
    pub async fn send_and_end(&self, line: &str, headers: &[&str], body: &[u8]) -> Option<u16> {
        self.send_then(line, headers, body, true).await
    }

    async fn send_then(&self, line: &str, headers: &[&str], body: &[u8], ends: bool) -> Option<u16> {
        let mut head = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\nconnection: close\r\n",
            self.host, self.authorization
        );
        for header in headers {
            head += header;
            head += "\r\n";
        }
        head += "\r\n";
        let mut socket = TcpStream::connect(&self.host).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        // A server that has already refused does not take the rest.
        let _ = socket.write_all(body).await;
        if ends {
            let _ = socket.shutdown().await;
        }
        let mut answer = Vec::new();
        let read = tokio::time::timeout(ANSWER_WAIT_MAX, socket.read_to_end(&mut answer)).await;
        let _ = read.expect("an answer, or the end of the connection");
        let text = String::from_utf8_lossy(&answer);
        // After `100 Continue` comes the answer itself.
        let lines =
            text.lines().filter(|line| line.starts_with("HTTP/1.1 ") && !line.starts_with("HTTP/1.1 100"));
        lines.filter_map(|line| line.split(' ').nth(1)?.parse().ok()).next()
    }
}
