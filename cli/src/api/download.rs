//! Bytes of any size, to a file or to stdout, never held in memory as a whole.

use std::path::Path;

use anyhow::Context as _;
use futures::StreamExt as _;
use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::Call;
use super::problem::ApiError;

impl Call<'_> {
    /// Sends the call and follows one 307 to the object store. The store gets neither the token nor the business unit:
    /// the address itself is the permission.
    pub async fn download(self) -> anyhow::Result<Response> {
        let response = self.open().await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let server = &self.client.server;
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let target = location.and_then(|location| response.url().join(location).ok());
        let target = target
            .filter(|target| {
                response.status() == StatusCode::TEMPORARY_REDIRECT && server.may_redirect_to(target)
            })
            .ok_or_else(|| ApiError::BadRedirect { server: server.to_string() })?;
        let store = target.host_str().unwrap_or_default().to_owned();
        let answer = self.client.http.get(target).send().await;
        let answer = answer.map_err(|error| ApiError::unreachable(&store, &error))?;
        anyhow::ensure!(
            answer.status().is_success(),
            "the object store at {store} answered {} instead of the file; run the command again for a fresh address",
            answer.status().as_u16()
        );
        Ok(answer)
    }
}

/// Writes an answer's bytes to a file, or to stdout for `-`. A file appears only when it is complete.
pub async fn save(response: Response, target: &Path) -> anyhow::Result<u64> {
    if target == Path::new("-") {
        return copy(response, &mut tokio::io::stdout()).await;
    }
    let mut partial = target.as_os_str().to_owned();
    partial.push(".part");
    let written = save_private(response, Path::new(&partial)).await;
    if let Err(error) = written {
        let _ = tokio::fs::remove_file(&partial).await;
        return Err(error);
    }
    tokio::fs::rename(&partial, target)
        .await
        .with_context(|| format!("cannot write {}", target.display()))?;
    written
}

/// State and plans may hold secrets: nobody else may read the file.
async fn save_private(response: Response, path: &Path) -> anyhow::Result<u64> {
    let opened =
        tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).await;
    let mut file = opened.with_context(|| format!("cannot write {}", path.display()))?;
    let bytes = copy(response, &mut file).await?;
    file.sync_all().await?;
    Ok(bytes)
}

async fn copy(response: Response, out: &mut (impl AsyncWrite + Unpin)) -> anyhow::Result<u64> {
    let mut body = response.bytes_stream();
    let mut written = 0;
    while let Some(chunk) = body.next().await {
        let chunk = chunk
            .map_err(|error| error.without_url())
            .context("the download broke off; run the command again")?;
        out.write_all(&chunk).await?;
        written += chunk.len() as u64;
    }
    out.flush().await?;
    Ok(written)
}
