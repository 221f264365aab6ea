//! A way to Postgres that counts round trips on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Counts the server's ReadyForQuery messages: one ends every round trip, since nothing is sent ahead. Ends when
/// dropped.
pub struct Wire {
    /// The database's URL through here.
    pub url: String,
    trips: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Wire {
    /// Listens before the database that the URL names.
    pub async fn before(database_url: &str) -> anyhow::Result<Self> {
        let (scheme, rest) = database_url.split_once('@').context("a URL with a user")?;
        let (server, database) = rest.split_once('/').context("a URL with a database")?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("{scheme}@{}/{database}", listener.local_addr()?);
        let trips = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(accept(listener, server.to_owned(), Arc::clone(&trips)));
        Ok(Self { url, trips, accepting })
    }

    /// How many there were since the last call.
    pub fn take(&self) -> usize {
        self.trips.swap(0, Ordering::SeqCst)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: String, trips: Arc<AtomicUsize>) {
    while let Ok((client, _)) = listener.accept().await {
        // Closing the client's end says that the server is away.
        let Ok(upstream) = TcpStream::connect(&server).await else { continue };
        let (mut from_client, to_client) = client.into_split();
        let (from_server, mut to_server) = upstream.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        tokio::spawn(pass(from_server, to_client, Arc::clone(&trips)));
    }
}

/// Passes the server's messages on: a kind of one byte, a length that counts itself, and the rest.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, trips: Arc<AtomicUsize>) {
    let mut head = [0; 5];
    while from.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut rest = vec![0; usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(4)];
        if from.read_exact(&mut rest).await.is_err() {
            return;
        }
        // Counted before the client can see it.
        if head[0] == b'Z' {
            trips.fetch_add(1, Ordering::SeqCst);
        }
        if to.write_all(&[&head[..], &rest].concat()).await.is_err() {
            return;
        }
    }
}
