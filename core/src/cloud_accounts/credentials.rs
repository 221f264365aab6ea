//! What a phase of a run gets of its workspace's accounts: opened in the trade, handed over in the bundle, recorded.
//!
//! What is linked (`state_aws_account_id`, subscription, project, cluster) is there, by foreign keys, and must work: a run
//! without the credentials that it should have fails before it begins. The account that only names a workspace's place may be
//! unknown; then the run gets none, and says so.

use std::collections::BTreeMap;

use serde_json::json;

use super::aws::{self, store::StoredAwsAccount};
use super::{Cloud, CredentialsError, UsedCredential, azure, clusters, gcp};
use crate::Deps;
use crate::access::{Actor, Scope};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::db::{DbError, Query, Tx};
use crate::ids::{ClusterId, ExecutorId, RunId, WorkspaceId};
use crate::issuer_keys::{self, IssuerOff};
use crate::protocol::{AwsCredentials, AwsRole, ClusterAccess, EksAccess, RunPhase, TokenFile};
use crate::secrets::SealError;
use crate::workspaces::Workspace;

/// The word for "in no account".
const GLOBAL: &str = "global";

/// Whose credentials, and for what.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The run's workspace.
    pub workspace: &'a Workspace,
    /// The run.
    pub run_id: RunId,
    /// What it is about to do.
    pub phase: RunPhase,
}

/// What the phase gets.
#[derive(Default)]
pub struct Granted {
    /// For AWS.
    pub aws: Option<AwsCredentials>,
    /// For a cluster.
    pub cluster: Option<ClusterAccess>,
    /// For Azure and GCP, as their providers read it.
    pub environment: BTreeMap<String, String>,
    /// Tokens instead of secrets, for those two.
    pub token_files: Vec<TokenFile>,
    /// What no log may show.
    pub secrets: Vec<String>,
    /// What was granted and what not, without any of it.
    pub used: Vec<UsedCredential>,
}

/// Opens everything that the workspace is linked to. All look-ups are within the workspace's own unit.
pub async fn for_attempt(
    query: &impl Query,
    deps: &Deps,
    asked: Asked<'_>,
) -> Result<Granted, CredentialsError> {
    let mut granted = Granted::default();
    let workspace = asked.workspace;
    grant_aws(query, deps, asked, &mut granted).await?;
    if let Some(id) = &workspace.azure_subscription_id {
        grant_azure(query, deps, asked, id, &mut granted).await?;
    }
    if let Some(id) = &workspace.gcp_project_id {
        grant_gcp(query, deps, asked, id, &mut granted).await?;
    }
    if let Some(id) = workspace.cluster_id {
        grant_cluster(query, deps, asked, id, &mut granted).await?;
    }
    Ok(granted)
}

/// The AWS account whose credentials the workspace's runs get.
pub(super) fn aws_number(workspace: &Workspace) -> Option<&str> {
    let place = Some(workspace.aws_account_id.as_str()).filter(|account| *account != GLOBAL);
    workspace.state_aws_account_id.as_deref().or(place)
}

/// Records that an executor got them: one entry for each account. The last statements of the trade.
pub async fn record_use(
    tx: &Tx<'_>,
    asked: Asked<'_>,
    executor: ExecutorId,
    used: &[UsedCredential],
) -> Result<(), DbError> {
    for one in used.iter().filter(|one| one.missing.is_none()) {
        let entry = Entry {
            business_unit_id: Some(asked.workspace.business_unit_id),
            actor: Actor::System,
            action: Action::CredentialsUse,
            resource_type: match one.cloud {
                Cloud::Aws => "aws_account",
                Cloud::Azure => "azure_subscription",
                Cloud::Gcp => "gcp_project",
                Cloud::Kubernetes => "cluster",
            },
            resource_id: one.account.clone(),
            workspace_id: Some(asked.workspace.id),
            run_id: Some(asked.run_id),
            details: json!({ "phase": one.phase, "role_arn": one.role_arn, "executor_id": executor }),
        };
        audit::service::record(tx, &entry).await?;
    }
    Ok(())
}

async fn grant_aws(
    query: &impl Query,
    deps: &Deps,
    asked: Asked<'_>,
    granted: &mut Granted,
) -> Result<(), CredentialsError> {
    let Some(number) = aws_number(asked.workspace) else { return Ok(()) };
    let unit = asked.workspace.business_unit_id;
    let Some(account) = aws::store::find_by_number(query, unit, number).await? else {
        let missing =
            "this AWS account is not registered in the business unit, so the run gets no AWS credentials";
        granted.used.push(used(asked, Cloud::Aws, number, None, Some(missing)));
        return Ok(());
    };
    let credentials = aws_credentials(query, deps, asked, &account).await?;
    let role_arn = credentials.role.as_ref().map(|role| role.role_arn.clone());
    granted.used.push(used(asked, Cloud::Aws, number, role_arn, None));
    granted.aws = Some(credentials);
    Ok(())
}

async fn aws_credentials(
    query: &impl Query,
    deps: &Deps,
    asked: Asked<'_>,
    account: &StoredAwsAccount,
) -> Result<AwsCredentials, CredentialsError> {
    let what = || format!("AWS account {}", account.account_id);
    let keys = aws::service::open(deps, account).map_err(|error| unusable(what, error))?;
    let fields = &account.fields;
    if fields.oidc_audience.is_some() {
        issuer_keys::service::issuer(deps).map_err(|off| no_issuer(what, off))?;
    }
    let role_arn = match asked.phase {
        RunPhase::Plan => fields.plan_role_arn.clone(),
        RunPhase::Apply => fields.apply_role_arn.clone(),
    };
    let role = match role_arn {
        None => None,
        Some(role_arn) => Some(AwsRole {
            role_arn,
            external_id: account.external_id.clone(),
            session_name: format!("plumbline-{}", asked.run_id),
            duration_seconds: fields.session_duration_seconds.min(longest_session(deps, asked.phase)),
            session_policy: fields.session_policy.as_ref().map(ToString::to_string),
            tags: {
                let unit =
                    business_units::service::find_slug(query, asked.workspace.business_unit_id).await?;
                session_tags(&unit.unwrap_or_default(), asked.workspace.id, asked.run_id, asked.phase)
            },
        }),
    };
    let region = &asked.workspace.region;
    Ok(AwsCredentials {
        keys,
        role,
        web_identity: fields.oidc_audience.is_some(),
        sts_region: fields.default_region.clone(),
        region: if aws::is_region(region) { region.clone() } else { fields.default_region.clone() },
        profile: fields.aws_profile_name.clone(),
    })
}

/// A session is of no use after its run. The shortest that STS takes is a quarter of an hour.
fn longest_session(deps: &Deps, phase: RunPhase) -> i32 {
    const SECONDS_MIN: i32 = 900;
    let wall_clock = match phase {
        RunPhase::Plan => deps.limits.plan_wall_clock,
        RunPhase::Apply => deps.limits.apply_wall_clock,
    };
    i32::try_from(wall_clock.as_secs()).unwrap_or(i32::MAX).max(SECONDS_MIN)
}

/// What policies of the account can ask for, and its own log shows. None of it can change while the run lives.
pub(crate) fn session_tags(
    unit_slug: &str,
    workspace: WorkspaceId,
    run: RunId,
    phase: RunPhase,
) -> BTreeMap<String, String> {
    let phase = match phase {
        RunPhase::Plan => "plan",
        RunPhase::Apply => "apply",
    };
    [
        ("plumbline:unit", unit_slug.to_owned()),
        ("plumbline:workspace", workspace.to_string()),
        ("plumbline:run", run.to_string()),
        ("plumbline:phase", phase.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

async fn grant_azure(
    query: &impl Query,
    deps: &Deps,
    asked: Asked<'_>,
    id: &str,
    granted: &mut Granted,
) -> Result<(), CredentialsError> {
    let what = || format!("Azure subscription {id}");
    let unit = asked.workspace.business_unit_id;
    let found = azure::store::find_by_azure_id(query, unit, id).await?;
    let subscription = found.ok_or_else(|| gone(what))?;
    let secret = azure::service::open(deps, &subscription).map_err(|error| unusable(what, error))?;
    let way_in = match secret {
        Some(secret) => {
            granted.secrets.push(secret.expose().to_owned());
            ("ARM_CLIENT_SECRET", secret.expose().to_owned())
        }
        None => {
            issuer_keys::service::issuer(deps).map_err(|off| no_issuer(what, off))?;
            granted.token_files.push(TokenFile::Azure);
            ("ARM_USE_OIDC", "true".to_owned())
        }
    };
    granted.used.push(used(asked, Cloud::Azure, id, None, None));
    let fields = subscription.fields;
    granted.environment.extend(
        [
            ("ARM_SUBSCRIPTION_ID", subscription.subscription_id),
            ("ARM_TENANT_ID", fields.tenant_id),
            ("ARM_CLIENT_ID", fields.client_id),
            way_in,
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    Ok(())
}

async fn grant_gcp(
    query: &impl Query,
    deps: &Deps,
    asked: Asked<'_>,
    id: &str,
    granted: &mut Granted,
) -> Result<(), CredentialsError> {
    let what = || format!("GCP project {id}");
    let found = gcp::store::find_by_gcp_id(query, asked.workspace.business_unit_id, id).await?;
    let project = found.ok_or_else(|| gone(what))?;
    let key = gcp::service::open(deps, &project).map_err(|error| unusable(what, error))?;
    match (key, project.fields.workload_identity_provider) {
        (Some(key), _) => {
            granted.secrets.push(key.private_key().to_owned());
            granted.environment.insert("GOOGLE_CREDENTIALS".into(), key.to_json());
        }
        (None, Some(workload_identity_provider)) => {
            issuer_keys::service::issuer(deps).map_err(|off| no_issuer(what, off))?;
            let client_email = project.client_email;
            granted.token_files.push(TokenFile::Gcp { workload_identity_provider, client_email });
        }
        (None, None) => {
            let why = "it has neither a key nor the provider of a pool".into();
            return Err(CredentialsError::Unusable { account: what(), why });
        }
    }
    granted.used.push(used(asked, Cloud::Gcp, id, None, None));
    granted.environment.extend(
        [("GOOGLE_PROJECT", project.project_id), ("GOOGLE_REGION", project.fields.default_region)]
            .map(|(name, value)| (name.to_owned(), value)),
    );
    Ok(())
}

async fn grant_cluster(
    query: &impl Query,
    deps: &Deps,
    asked: Asked<'_>,
    id: ClusterId,
    granted: &mut Granted,
) -> Result<(), CredentialsError> {
    let unit = asked.workspace.business_unit_id;
    let cluster = clusters::store::find(query, Scope::One(unit), id)
        .await?
        .ok_or_else(|| gone(|| format!("cluster {id}")))?;
    let what = || format!("cluster {}", cluster.fields.name);
    let kubeconfig = clusters::service::open(deps, &cluster).map_err(|error| unusable(what, error))?;
    // The row holds what the settings of its last edit allowed.
    kubeconfig
        .check_again(cluster.fields.allow_insecure_tls)
        .map_err(|error| CredentialsError::Unusable { account: what(), why: error.to_string() })?;
    let eks = match (&cluster.fields.aws_account_id, kubeconfig.eks_cluster_name()) {
        (Some(number), Some(cluster_name)) => {
            let account = aws::store::find_by_number(query, unit, number)
                .await?
                .ok_or_else(|| gone(|| format!("AWS account {number}")))?;
            let aws = aws_credentials(query, deps, asked, &account).await?;
            let role_arn = aws.role.as_ref().map(|role| role.role_arn.clone());
            granted.used.push(used(asked, Cloud::Aws, number, role_arn, None));
            Some(EksAccess { cluster_name: cluster_name.to_owned(), aws })
        }
        _ => None,
    };
    granted.used.push(used(asked, Cloud::Kubernetes, &cluster.fields.name, None, None));
    granted.secrets.extend(kubeconfig.secrets().into_iter().map(str::to_owned));
    granted.cluster = Some(ClusterAccess { kubeconfig: kubeconfig.to_json(), eks });
    Ok(())
}

fn used(
    asked: Asked<'_>,
    cloud: Cloud,
    account: &str,
    role_arn: Option<String>,
    missing: Option<&str>,
) -> UsedCredential {
    UsedCredential {
        phase: asked.phase,
        cloud,
        account: account.to_owned(),
        role_arn,
        missing: missing.map(str::to_owned),
    }
}

fn gone(account: impl Fn() -> String) -> CredentialsError {
    CredentialsError::Unusable { account: account(), why: "it is not registered any more".into() }
}

fn no_issuer(account: impl Fn() -> String, off: IssuerOff) -> CredentialsError {
    CredentialsError::Unusable { account: account(), why: format!("it trusts tokens, and {off}") }
}

fn unusable(account: impl Fn() -> String, error: SealError) -> CredentialsError {
    match error {
        SealError::Key(error) => error.into(),
        SealError::Unreadable(why) => CredentialsError::Unusable {
            account: account(),
            why: format!("they cannot be opened, because {why}"),
        },
    }
}
