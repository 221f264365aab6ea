//! Trying the key of a GCP project's service account: whether Google gives a token for it.

use chrono::Utc;
use plumbline_core::Deps;
use plumbline_core::adapters::web::{Question, below};
use plumbline_core::cloud_accounts::gcp::GcpTest;
use plumbline_core::cloud_accounts::tasks::{GcpTrial, open_gcp_trial};
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asking::{Asker, Failed, read, word};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

#[derive(Deserialize)]
struct Token {
    access_token: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// A [`GcpTest`]. Whatever does not work is a result.
pub(crate) async fn test(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let trial = match open_gcp_trial(deps, task).await? {
        Ok(trial) => trial,
        Err(why) => return Ok(json!(GcpTest { ok: false, detail: Some(why), client_email: None })),
    };
    let detail = try_out(deps, &trial).await.err().map(|Failed(why)| why);
    Ok(json!(GcpTest { ok: detail.is_none(), detail, client_email: Some(trial.client_email) }))
}

async fn try_out(deps: &Deps, trial: &GcpTrial) -> Result<(), Failed> {
    let assertion = trial
        .assertion(Utc::now())
        .await
        .map_err(|why| Failed(format!("the private key {why}: replace it")))?;
    let asker = Asker::new(deps);
    let tokens = below(&deps.endpoints.google_oauth, &["token"])?;
    let form = [("grant_type", GRANT), ("assertion", assertion.expose())];
    let answer = asker.ask(Question::form(&tokens, &form)).await?;
    if answer.status.is_success() {
        let token: Token = read("Google", &answer)?;
        return if token.access_token.is_empty() {
            Err(Failed("Google gives no token".into()))
        } else {
            Ok(())
        };
    }
    let refusal = serde_json::from_slice::<Refusal>(&answer.body).ok();
    let said = refusal.as_ref().and_then(|refusal| word(&refusal.error)).unwrap_or(answer.status.as_str());
    Err(Failed(format!("Google refuses the key of the service account: {said}")))
}
