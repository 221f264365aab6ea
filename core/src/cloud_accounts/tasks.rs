//! What the queued tasks of cloud accounts need. The function that does them calls the cloud.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::aws::store::StoredAwsAccount;
use super::gcp::ServiceAccount;
use super::{aws, azure, clusters, gcp};
use crate::Deps;
use crate::access::Scope;
use crate::ids::{AwsAccountId, AzureSubscriptionId, ClusterId, GcpProjectId};
use crate::protocol::{AwsKeys, AwsRole};
use crate::secrets::{SealError, SecretText};
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
    /// `None`: only executors can try, with the role of their own or a token.
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
    aws_trial(deps, task, found.ok_or_else(gone)?)
}

fn aws_trial(
    deps: &Deps,
    task: &ClaimedTask,
    account: StoredAwsAccount,
) -> Result<Result<AwsTrial, String>, FailedAttempt> {
    let keys = match opened(aws::service::open(deps, &account))? {
        Ok(keys) => keys,
        Err(why) => return Ok(Err(why)),
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

/// A service principal that is to be tried.
#[derive(Debug)]
pub struct AzureTrial {
    /// The subscription that it must see.
    pub subscription_id: String,
    /// Its directory.
    pub tenant_id: String,
    /// Who it is.
    pub client_id: String,
    /// Its secret.
    pub client_secret: SecretText,
}

/// Opens what a test needs; what cannot be tried is the test's answer.
pub async fn open_azure_trial(
    deps: &Deps,
    task: &ClaimedTask,
) -> Result<Result<AzureTrial, String>, FailedAttempt> {
    let id = AzureSubscriptionId(task.subject_id);
    let found = {
        let conn = deps.db.conn().await.map_err(database)?;
        azure::store::find(&conn, Scope::One(task.business_unit_id), id).await.map_err(database)?
    };
    let subscription = found.ok_or_else(gone)?;
    Ok(opened(azure::service::open(deps, &subscription))?.and_then(|secret| {
        let client_secret = secret.ok_or_else(trusts_runs)?;
        let fields = subscription.fields;
        Ok(AzureTrial {
            subscription_id: subscription.subscription_id,
            tenant_id: fields.tenant_id,
            client_id: fields.client_id,
            client_secret,
        })
    }))
}

/// A service account's key that is to be tried.
#[derive(Debug)]
pub struct GcpTrial {
    /// Who it is.
    pub client_email: String,
    account: ServiceAccount,
}

impl GcpTrial {
    /// What the account proves itself with, or why it cannot.
    pub async fn assertion(&self, now: DateTime<Utc>) -> Result<SecretText, &'static str> {
        gcp::assertion(&self.account, now).await
    }
}

/// Opens what a test needs; what cannot be tried is the test's answer.
pub async fn open_gcp_trial(
    deps: &Deps,
    task: &ClaimedTask,
) -> Result<Result<GcpTrial, String>, FailedAttempt> {
    let id = GcpProjectId(task.subject_id);
    let found = {
        let conn = deps.db.conn().await.map_err(database)?;
        gcp::store::find(&conn, Scope::One(task.business_unit_id), id).await.map_err(database)?
    };
    let project = found.ok_or_else(gone)?;
    Ok(opened(gcp::service::open(deps, &project))?.and_then(|key| {
        let account = key.ok_or_else(trusts_runs)?;
        Ok(GcpTrial { client_email: project.client_email, account })
    }))
}

/// A kubeconfig that is to be tried.
#[derive(Debug)]
pub struct ClusterTrial {
    /// The API server.
    pub server_url: String,
    /// What the kubeconfig calls all this.
    pub context: String,
    /// The authorities whose certificates it believes, in PEM; `None`: the public ones.
    pub authorities: Option<Vec<u8>>,
    /// Whether it believes any certificate.
    pub is_unchecked: bool,
    /// The name in the server's certificate, where it is not the host's.
    pub server_name: Option<String>,
    /// How its user gets in.
    pub way_in: WayIn,
}

/// How the user of a kubeconfig gets in.
#[derive(Debug)]
pub enum WayIn {
    /// With this `Authorization`.
    Header(SecretText),
    /// With a certificate and its key, in PEM.
    Certificate(SecretText),
    /// With a token that is made with credentials of an AWS account.
    Eks {
        /// The cluster's name at AWS.
        cluster_name: String,
        /// The account; of its roles only that of plans.
        aws: Box<AwsTrial>,
    },
}

/// Opens what a test needs; what cannot be tried is the test's answer.
pub async fn open_cluster_trial(
    deps: &Deps,
    task: &ClaimedTask,
) -> Result<Result<ClusterTrial, String>, FailedAttempt> {
    let unit = task.business_unit_id;
    let conn = deps.db.conn().await.map_err(database)?;
    let found = clusters::store::find(&conn, Scope::One(unit), ClusterId(task.subject_id)).await;
    let cluster = found.map_err(database)?.ok_or_else(gone)?;
    let kubeconfig = match opened(clusters::service::open(deps, &cluster))? {
        Ok(kubeconfig) => kubeconfig,
        Err(why) => return Ok(Err(why)),
    };
    if let Err(error) = kubeconfig.check_again(cluster.fields.allow_insecure_tls) {
        return Ok(Err(error.to_string()));
    }
    let way_in = match (&cluster.fields.aws_account_id, kubeconfig.eks_cluster_name()) {
        (Some(number), Some(cluster_name)) => {
            let found = aws::store::find_by_number(&conn, unit, number).await.map_err(database)?;
            let aws = match aws_trial(deps, task, found.ok_or_else(gone)?)? {
                Ok(trial) => Box::new(trial),
                Err(why) => return Ok(Err(format!("AWS account {number}: {why}"))),
            };
            WayIn::Eks { cluster_name: cluster_name.to_owned(), aws }
        }
        _ => match kubeconfig.way_in() {
            Ok(way_in) => way_in,
            Err(why) => return Ok(Err(why.to_owned())),
        },
    };
    Ok(Ok(kubeconfig.trial(way_in)))
}

/// What could not be opened as a sentence, unless this function lacks a key: that is a defect.
fn opened<T>(result: Result<T, SealError>) -> Result<Result<T, String>, FailedAttempt> {
    match result {
        Ok(secret) => Ok(Ok(secret)),
        Err(SealError::Unreadable(why)) => {
            Ok(Err(format!("what is stored cannot be opened ({why}): replace it")))
        }
        Err(SealError::Key(error)) => Err(FailedAttempt::Permanent(error.to_string())),
    }
}

fn gone() -> FailedAttempt {
    FailedAttempt::Permanent("the account is gone".into())
}

fn trusts_runs() -> String {
    "it trusts tokens of runs and stores nothing that could be tried: only a run shows whether it works"
        .into()
}
