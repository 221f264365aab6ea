//! What the queued tasks of cloud accounts need. The function that does them calls the cloud.

use std::collections::BTreeMap;

use super::aws;
use crate::Deps;
use crate::access::Scope;
use crate::ids::AwsAccountId;
use crate::protocol::{AwsKeys, AwsRole};
use crate::secrets::SealError;
use crate::tasks::{ClaimedTask, FailedAttempt};
use crate::workspaces::tasks::database;

/// The shortest session that STS gives.
const TEST_SESSION_SECONDS: i32 = 900;

/// An account whose credentials are to be tried.
#[derive(Debug)]
pub struct AwsTrial {
    /// Its number: whoever the credentials are must belong to it.
    pub account_id: String,
    /// Whose STS is asked.
    pub region: String,
    /// `None`: only executors can try, with the role of their own.
    pub keys: Option<AwsKeys>,
    /// Roles to assume, each once.
    pub roles: Vec<AwsRole>,
}

/// Opens what a test needs. An account that is gone, or cannot be opened, is the test's answer: a sentence.
pub async fn open_aws_trial(
    deps: &Deps,
    task: &ClaimedTask,
) -> Result<Result<AwsTrial, String>, FailedAttempt> {
    let id = AwsAccountId(task.subject_id);
    let found = {
        let conn = deps.db.conn().await.map_err(database)?;
        aws::store::find(&conn, Scope::One(task.business_unit_id), id).await.map_err(database)?
    };
    let account = found.ok_or_else(|| FailedAttempt::Permanent("the account is gone".into()))?;
    let keys = match aws::service::open(deps, &account) {
        Ok(keys) => keys,
        Err(SealError::Unreadable(why)) => {
            return Ok(Err(format!("the stored keys cannot be opened ({why}): replace them")));
        }
        Err(SealError::Key(error)) => return Err(FailedAttempt::Permanent(error.to_string())),
    };
    let mut roles: Vec<String> =
        [account.fields.plan_role_arn, account.fields.apply_role_arn].into_iter().flatten().collect();
    roles.dedup();
    let role = |role_arn: String| AwsRole {
        role_arn,
        external_id: account.external_id.clone(),
        session_name: format!("plumbline-test-{}", task.lease.task_id),
        duration_seconds: TEST_SESSION_SECONDS,
        session_policy: account.fields.session_policy.as_ref().map(ToString::to_string),
        tags: BTreeMap::from([("plumbline:phase".to_owned(), "test".to_owned())]),
    };
    Ok(Ok(AwsTrial {
        account_id: account.account_id,
        region: account.fields.default_region,
        keys,
        roles: roles.into_iter().map(role).collect(),
    }))
}
