//! Trying what a unit has set up for Slack and Infracost.

use plumbline_core::Deps;
use plumbline_core::adapters::web::{Answer, Question, below};
use plumbline_core::config::tasks::{open_infracost_key, open_slack_token};
use plumbline_core::config::{InfracostTest, SlackTest};
use plumbline_core::secrets::SecretText;
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asking::{Asker, Failed, read, word};

#[derive(Deserialize)]
struct SlackAnswer {
    ok: bool,
    error: Option<String>,
    team: Option<String>,
    user: Option<String>,
}

/// A [`SlackTest`]: asks Slack who the bot is.
pub(crate) async fn slack(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let found = match open_slack_token(deps, task).await? {
        Ok(token) => ask_slack(deps, &token).await,
        Err(why) => Err(Failed(why)),
    };
    Ok(json!(match found {
        Ok(answer) => SlackTest { ok: true, detail: None, team_name: answer.team, bot_name: answer.user },
        Err(Failed(why)) => SlackTest { ok: false, detail: Some(why), team_name: None, bot_name: None },
    }))
}

async fn ask_slack(deps: &Deps, token: &SecretText) -> Result<SlackAnswer, Failed> {
    let asker = Asker::new(deps);
    let url = below(&deps.endpoints.slack, &["auth.test"])?;
    let answer = asker.ask(Question::form(&url, &[]).bearer(token)).await?;
    let said: SlackAnswer = read("Slack", &answer)?;
    if said.ok {
        return Ok(said);
    }
    let error = said.error.as_deref().and_then(word).unwrap_or("without a reason");
    Err(Failed(format!("Slack refuses the bot token: {error}")))
}

/// An [`InfracostTest`]: asks for no price at all.
pub(crate) async fn infracost(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let found = match open_infracost_key(deps, task).await? {
        Ok(key) => ask_infracost(deps, key).await,
        Err(why) => Err(Failed(why)),
    };
    let detail = found.err().map(|Failed(why)| why);
    Ok(json!(InfracostTest { ok: detail.is_none(), detail }))
}

async fn ask_infracost(deps: &Deps, key: SecretText) -> Result<(), Failed> {
    let asker = Asker::new(deps);
    let url = below(&deps.endpoints.infracost, &["graphql"])?;
    let nothing = json!([{ "query": "query { __typename }", "variables": {} }]);
    let question = Question::json(&url, &nothing).header("x-api-key", key);
    match asker.ask(question).await? {
        Answer { status, body } if status.is_success() => {
            let is_list = serde_json::from_slice::<Vec<Value>>(&body).is_ok();
            if is_list { Ok(()) } else { Err(Failed("what Infracost answers cannot be read".into())) }
        }
        Answer { status, .. } if [401, 403].contains(&status.as_u16()) => {
            Err(Failed(format!("Infracost refuses the API key ({status})")))
        }
        Answer { status, .. } => Err(Failed(format!("Infracost answers {status}"))),
    }
}
