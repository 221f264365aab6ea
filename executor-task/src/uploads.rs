//! Artifacts on their way to and from the object store: begin, send to the signed URL, commit.

use std::path::Path;
use std::time::Duration;

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::{ArtifactKind, UploadAnswer, UploadBegin};
use plumbline_state_proxy::{Digests, Pauses, digests, transfers};
use reqwest::Method;

use crate::callback::Callback;
use crate::error::StepError;

/// Signed URLs live for a minute: each try asks for a fresh one.
const TRIES: u32 = 8;
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Uploads a file of ours and commits it.
pub(crate) async fn upload(
    callback: &Callback,
    kind: ArtifactKind,
    path: &Path,
) -> Result<Digests, StepError> {
    let found = digests(path).map_err(StepError::machine("an artifact cannot be read"))?;
    let begin = UploadBegin { kind, size_bytes: found.size_bytes, sha256: found.sha256 };
    let mut pauses = Pauses::up_to(PAUSE_MAX);
    for attempt in 1..=TRIES {
        let answer: UploadAnswer = callback.post("artifacts", &begin).await?;
        match transfers::put(callback.http(), &answer.request, path, found.size_bytes).await {
            Ok(()) => {
                let commit = format!("artifacts/{}/commit", kind.as_str());
                callback.tell(Method::POST, &commit, &serde_json::json!({})).await?;
                return Ok(found);
            }
            Err(reason) => {
                tracing::warn!(artifact = kind.as_str(), attempt, %reason, "an upload did not work")
            }
        }
        pauses.pause().await;
    }
    Err(StepError::Transient(format!("the {} could not be uploaded", kind.as_str())))
}

/// Downloads an artifact and checks its digest. Returns whether there is one.
pub(crate) async fn download(
    callback: &Callback,
    kind: ArtifactKind,
    to: &Path,
    sha256: Sha256Digest,
) -> Result<(), StepError> {
    let name = kind.as_str();
    for attempt in 1..=TRIES {
        let answer: Option<UploadAnswer> = callback.find(&format!("artifacts/{name}")).await?;
        let answer =
            answer.ok_or_else(|| StepError::Permanent(format!("the {name} of the plan is not there")))?;
        match transfers::get(callback.http(), &answer.request, to).await {
            Ok(()) => {
                let found = digests(to).map_err(StepError::machine("an artifact cannot be read"))?;
                if found.sha256 == sha256 {
                    return Ok(());
                }
                return Err(StepError::Permanent(format!("the {name} is not the one that was approved")));
            }
            Err(reason) => tracing::warn!(artifact = name, attempt, %reason, "a download did not work"),
        }
        tokio::time::sleep(Duration::from_millis(200) * attempt).await;
    }
    Err(StepError::Transient(format!("the {name} could not be downloaded")))
}
