//! Trying the service principal of an Azure subscription: whether it gets in, and whether it sees the subscription.

use plumbline_core::Deps;
use plumbline_core::adapters::web::{Answer, Question, below};
use plumbline_core::cloud_accounts::azure::AzureTest;
use plumbline_core::cloud_accounts::tasks::{AzureTrial, open_azure_trial};
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asking::{Asker, Failed, read};

#[derive(Deserialize)]
struct Token {
    access_token: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

#[derive(Deserialize)]
struct Subscription {
    #[serde(rename = "displayName")]
    display_name: Option<String>,
}

/// An [`AzureTest`]. Whatever does not work is a result.
pub(crate) async fn test(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let found = match open_azure_trial(deps, task).await? {
        Ok(trial) => try_out(deps, &trial).await,
        Err(why) => Err(Failed(why)),
    };
    Ok(json!(match found {
        Ok(name) => AzureTest { ok: true, detail: None, subscription_name: name },
        Err(Failed(why)) => AzureTest { ok: false, detail: Some(why), subscription_name: None },
    }))
}

async fn try_out(deps: &Deps, trial: &AzureTrial) -> Result<Option<String>, Failed> {
    let asker = Asker::new(deps);
    let scope = format!("{}/.default", deps.endpoints.azure);
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", trial.client_id.as_str()),
        ("client_secret", trial.client_secret.expose()),
        ("scope", scope.as_str()),
    ];
    let login = below(&deps.endpoints.azure_directories, &[&trial.tenant_id, "oauth2", "v2.0", "token"])?;
    let answer = asker.ask(Question::form(&login, &form)).await?;
    if !answer.status.is_success() {
        return Err(refused(&answer));
    }
    let token: Token = read("Azure", &answer)?;
    let mut own = below(&deps.endpoints.azure, &["subscriptions", &trial.subscription_id])?;
    own.set_query(Some("api-version=2022-12-01"));
    let answer = asker.ask(Question::get(&own).bearer(&token.access_token)).await?;
    if !answer.status.is_success() {
        return Err(Failed(format!(
            "the service principal gets in, but does not see the subscription ({}): give it a role there",
            answer.status
        )));
    }
    Ok(read::<Subscription>("Azure", &answer)?.display_name)
}

/// In Azure's own numbers; its sentences are long and hold names of others.
fn refused(answer: &Answer) -> Failed {
    let Ok(refusal) = serde_json::from_slice::<Refusal>(&answer.body) else {
        return Failed(format!("Azure refuses the service principal ({})", answer.status));
    };
    let number = refusal.error_description.split_once("AADSTS").map(|(_, rest)| rest);
    let number: String =
        number.unwrap_or_default().chars().take_while(char::is_ascii_digit).take(10).collect();
    let word: String =
        refusal.error.chars().filter(|c| c.is_ascii_lowercase() || *c == '_').take(40).collect();
    let said = if number.is_empty() { word } else { format!("{word}, AADSTS{number}") };
    Failed(format!("Azure refuses the service principal: {said}"))
}
