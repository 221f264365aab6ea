//! Which of a workspace's accounts trusts tokens of our own issuer, and as whom it takes them.

use super::aws::{self, store::StoredAwsAccount};
use super::credentials::aws_number;
use super::{azure, clusters, gcp};
use crate::access::Scope;
use crate::db::{DbError, Query};
use crate::protocol::TokenFor;
use crate::workspaces::Workspace;

/// An account that trusts tokens of our own issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusting {
    /// Whom a token for it is for.
    pub audience: String,
    /// Number or id of the account there.
    pub account: String,
    /// What the audit log calls such an account.
    pub resource_type: &'static str,
    /// Whether it is AWS, which reads session tags from tokens.
    pub is_aws: bool,
}

/// The account of the workspace that a token is wanted for, if it trusts tokens.
pub async fn trusting(
    query: &impl Query,
    workspace: &Workspace,
    wanted: TokenFor,
) -> Result<Option<Trusting>, DbError> {
    let unit = workspace.business_unit_id;
    match wanted {
        TokenFor::Aws => {
            let Some(number) = aws_number(workspace) else { return Ok(None) };
            Ok(aws::store::find_by_number(query, unit, number).await?.and_then(trusting_aws))
        }
        TokenFor::Cluster => {
            let Some(id) = workspace.cluster_id else { return Ok(None) };
            let cluster = clusters::store::find(query, Scope::One(unit), id).await?;
            let Some(number) = cluster.and_then(|cluster| cluster.fields.aws_account_id) else {
                return Ok(None);
            };
            Ok(aws::store::find_by_number(query, unit, &number).await?.and_then(trusting_aws))
        }
        TokenFor::Azure => {
            let Some(id) = &workspace.azure_subscription_id else { return Ok(None) };
            let found = azure::store::find_by_azure_id(query, unit, id).await?;
            Ok(found.and_then(|subscription| {
                Some(Trusting {
                    audience: subscription.fields.oidc_audience?,
                    account: subscription.subscription_id,
                    resource_type: "azure_subscription",
                    is_aws: false,
                })
            }))
        }
        TokenFor::Gcp => {
            let Some(id) = &workspace.gcp_project_id else { return Ok(None) };
            let found = gcp::store::find_by_gcp_id(query, unit, id).await?;
            Ok(found.and_then(|project| {
                // What a provider takes for whom a token is for, unless it was told otherwise.
                let provider = project.fields.workload_identity_provider?;
                Some(Trusting {
                    audience: format!("https://iam.googleapis.com/{provider}"),
                    account: project.project_id,
                    resource_type: "gcp_project",
                    is_aws: false,
                })
            }))
        }
    }
}

fn trusting_aws(account: StoredAwsAccount) -> Option<Trusting> {
    Some(Trusting {
        audience: account.fields.oidc_audience?,
        account: account.account_id,
        resource_type: "aws_account",
        is_aws: true,
    })
}
