//! The object store: S3's protocol over a directory, on a host name of its own.
//!
//! The API is reached as `127.0.0.1` and the store as `localhost`: clients then drop the API's credentials when they
//! follow a redirect to the store, as they do on AWS.

use std::path::Path;

use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ports::send_at_once;

/// The only bucket.
pub(crate) const BUCKET: &str = "plumbline";
/// The region that requests are signed for.
pub(crate) const REGION: &str = "us-east-1";

/// What a client of the store needs.
#[derive(Clone)]
pub(crate) struct Access {
    /// Names the key.
    pub key_id: String,
    /// Signs requests.
    pub secret: String,
    /// Where the store listens.
    pub url: String,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Serves the directory until `stop`. Objects lie below a directory that is named as the bucket.
pub(crate) fn serve(
    directory: &Path,
    access: &Access,
    listener: TcpListener,
    tracker: &TaskTracker,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory.join(BUCKET)).context("cannot create the bucket")?;
    let files = s3s_fs::FileSystem::new(directory)
        .map_err(|error| anyhow::anyhow!("cannot open the object store: {error:?}"))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(access.key_id.clone(), access.secret.clone()));
    tracker.spawn(accept(listener, builder.build(), stop));
    Ok(())
}

async fn accept(listener: TcpListener, service: S3Service, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((mut socket, _)) = accepted else { continue };
        send_at_once(&mut socket);
        let (service, stop) = (service.clone(), stop.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(error = %error, "a connection to the object store broke");
                    }
                }
                () = stop.cancelled() => {}
            }
        });
    }
}
