//! Tokens of the installation's own issuer, for this attempt: fetched when one is needed, or kept in a file that is fresh
//! whenever somebody reads it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plumbline_core::protocol::{IdentityToken, IdentityTokenRequest, TokenFor};
use tokio::task::JoinHandle;

use crate::callback::Callback;
use crate::error::StepError;
use crate::isolation::Isolation;
use crate::log_redaction::Secrets;

/// Shortest time between two tokens: at the end of an attempt they are over soon.
const RENEWAL_PAUSE_MIN: Duration = Duration::from_secs(5);

/// A fresh token for one of the run's accounts.
pub(crate) async fn fetch(callback: &Callback, wanted: TokenFor) -> Result<IdentityToken, StepError> {
    callback.post("identity-token", &IdentityTokenRequest { wanted }).await
}

/// Where tokens for one account are kept.
pub(crate) struct Place {
    pub(crate) callback: Callback,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) isolation: Isolation,
    pub(crate) wanted: TokenFor,
    pub(crate) path: PathBuf,
}

/// Renews the token in a file for as long as this lives.
pub(crate) struct Renewal(JoinHandle<()>);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Lays a token into the file, and another one there when half of its life is over.
pub(crate) async fn keep(place: Place) -> Result<Renewal, StepError> {
    let mut pause = place.renew().await?;
    Ok(Renewal(tokio::spawn(async move {
        loop {
            tokio::time::sleep(pause).await;
            pause = match place.renew().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "the token in a file is not renewed, trying again");
                    RENEWAL_PAUSE_MIN
                }
            };
        }
    })))
}

impl Place {
    /// How long to wait until the next time.
    async fn renew(&self) -> Result<Duration, StepError> {
        let token = fetch(&self.callback, self.wanted).await?;
        self.secrets.add_passing(&token.token);
        self.lay(&token.token).map_err(StepError::machine("a token cannot be laid out"))?;
        Ok((Duration::from_secs(token.expires_in_seconds) / 2).max(RENEWAL_PAUSE_MIN))
    }

    /// In one step: whoever reads at this moment reads a whole token.
    fn lay(&self, token: &str) -> std::io::Result<()> {
        let fresh: &Path = &self.path.with_extension("fresh");
        std::fs::write(fresh, token)?;
        self.isolation.share(fresh)?;
        std::fs::rename(fresh, &self.path)
    }
}
