//! What the queued tasks of integrations need. The function that does them asks the service.

use super::model::Setting;
use super::{registry, service};
use crate::Deps;
use crate::secrets::{SealError, SecretText};
use crate::tasks::{ClaimedTask, FailedAttempt};
use crate::workspaces::tasks::database;

/// The unit's token of its Slack bot. What is not there, or cannot be opened, is the test's answer: a sentence.
pub async fn open_slack_token(
    deps: &Deps,
    task: &ClaimedTask,
) -> Result<Result<SecretText, String>, FailedAttempt> {
    open(deps, task, &registry::SLACK_BOT_TOKEN, "no bot token is set").await
}

/// The unit's key for Infracost.
pub async fn open_infracost_key(
    deps: &Deps,
    task: &ClaimedTask,
) -> Result<Result<SecretText, String>, FailedAttempt> {
    open(deps, task, &registry::INFRACOST_API_KEY, "no API key is set").await
}

async fn open(
    deps: &Deps,
    task: &ClaimedTask,
    setting: &'static Setting,
    missing: &str,
) -> Result<Result<SecretText, String>, FailedAttempt> {
    let conn = deps.db.conn().await.map_err(database)?;
    let values = service::of_unit(&conn, task.business_unit_id, &[setting]).await.map_err(database)?;
    match values.secret(setting, &deps.keys) {
        Ok(Some(secret)) => Ok(Ok(secret)),
        Ok(None) => Ok(Err(missing.to_owned())),
        Err(SealError::Unreadable(why)) => {
            Ok(Err(format!("what is set cannot be opened ({why}): set it again")))
        }
        Err(SealError::Key(error)) => Err(FailedAttempt::Permanent(error.to_string())),
    }
}
