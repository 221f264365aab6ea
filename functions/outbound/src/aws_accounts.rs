//! Trying the credentials of an AWS account: who they are, and whether the roles can be assumed.

use chrono::{DateTime, Utc};
use plumbline_core::Deps;
use plumbline_core::cloud_accounts::aws::AwsTest;
use plumbline_core::cloud_accounts::tasks::{AwsTrial, open_aws_trial};
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use plumbline_sts::{Sts, StsError};
use serde_json::{Value, json};

/// An [`AwsTest`]. What AWS refuses is a result; that it cannot be asked is none.
pub(crate) async fn test(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let trial = match open_aws_trial(deps, task).await? {
        Ok(trial) => trial,
        Err(why) => return Ok(json!(failed(why))),
    };
    let sts = Sts::new(&trial.region, deps.sts_endpoint.as_deref())
        .map_err(|error| FailedAttempt::Permanent(format!("PLUMBLINE_STS_ENDPOINT {error}")))?;
    match try_out(&sts, &trial, Utc::now()).await {
        Ok(found) => Ok(json!(found)),
        Err(StsError::Refused(why)) => Ok(json!(failed(why))),
        Err(StsError::Unavailable(why)) => Err(FailedAttempt::Retry(format!("AWS cannot be asked: {why}"))),
    }
}

fn failed(why: String) -> AwsTest {
    AwsTest { ok: false, detail: Some(why), caller_arn: None, assumed_arns: Vec::new() }
}

async fn try_out(sts: &Sts, trial: &AwsTrial, at: DateTime<Utc>) -> Result<AwsTest, StsError> {
    let Some(keys) = &trial.keys else {
        return Ok(failed(
            "it has no keys: executors assume its roles, and only a run shows whether they may".into(),
        ));
    };
    let caller = sts.caller(keys, at).await?;
    let mut found =
        AwsTest { ok: true, detail: None, caller_arn: Some(caller.arn), assumed_arns: Vec::new() };
    for role in &trial.roles {
        match sts.assume(keys, at, role).await {
            Ok(session) => found.assumed_arns.push(session.arn),
            Err(StsError::Refused(why)) => {
                found.ok = false;
                found.detail = Some(format!("{} cannot be assumed: {why}", role.role_arn));
                return Ok(found);
            }
            Err(away) => return Err(away),
        }
    }
    // Whoever assumes roles may come from anywhere; without roles the keys themselves act.
    if trial.roles.is_empty() && caller.account != trial.account_id {
        found.ok = false;
        found.detail = Some(format!(
            "the keys belong to account {}, and runs would act there and not in {}",
            caller.account, trial.account_id
        ));
    }
    Ok(found)
}
