//! Tokens for attempts: what they say, and who gets one.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::rules::{TOKEN_AGE_MAX, phase_word, subject};
use super::{IssuerError, service, signing};
use crate::Deps;
use crate::access::Scope;
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::cloud_accounts::credentials;
use crate::cloud_accounts::trusting::{Trusting, trusting};
use crate::db::{DbError, Query, Tx};
use crate::executors::ExecutorCaller;
use crate::ids::{BusinessUnitId, RunId, WorkspaceId};
use crate::protocol::{IdentityToken, RunPhase, TokenFor};
use crate::runs;
use crate::tasks::{self, LiveLease};
use crate::workspaces::{self, Workspace};

/// What a token says. Whoever trusts it may rely on `sub`; names are for people.
#[derive(Debug, Serialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: String,
    iat: i64,
    nbf: i64,
    exp: i64,
    jti: Uuid,
    business_unit_id: BusinessUnitId,
    business_unit: String,
    workspace_id: WorkspaceId,
    workspace: String,
    environment: String,
    branch: String,
    run_id: RunId,
    phase: RunPhase,
    /// Session tags, where the token is for AWS.
    #[serde(rename = "https://aws.amazon.com/tags", skip_serializing_if = "Option::is_none")]
    aws_tags: Option<Value>,
}

/// A token of the attempt for the account that trusts it. Whom it is for says the account, never the caller.
pub async fn issue(
    deps: &Deps,
    caller: &ExecutorCaller,
    wanted: TokenFor,
) -> Result<IdentityToken, IssuerError> {
    let issuer = service::issuer(deps)?;
    caller.require_lease().map_err(|_| IssuerError::LeaseNotLive)?;
    let (claims, workspace, account) = {
        let conn = deps.db.conn().await?;
        let workspace = find_workspace(&conn, caller).await?;
        let account = trusting(&conn, &workspace, wanted).await?.ok_or(IssuerError::NoAccount)?;
        let lease = tasks::service::find_live(&conn, caller.lease).await?.ok_or(IssuerError::LeaseNotLive)?;
        let claims = claims(&conn, deps, issuer, caller, &workspace, &account, lease).await?;
        (claims, workspace, account)
    };
    let key = signing::signing_key(deps).await?;
    // Signed outside of a transaction, for a KMS may do it, and given out only if the lease is live even then.
    let token = signing::sign(deps, &key, &claims).await?;
    deps.db
        .transaction(async |tx| -> Result<(), IssuerError> {
            tasks::service::lock_live(tx, caller.lease).await?.ok_or(IssuerError::LeaseNotLive)?;
            Ok(record(tx, caller, &workspace, &account, &claims, key.id.into()).await?)
        })
        .await?;
    Ok(IdentityToken { token, expires_in_seconds: (claims.exp - claims.iat).unsigned_abs() })
}

async fn find_workspace(query: &impl Query, caller: &ExecutorCaller) -> Result<Workspace, IssuerError> {
    let scope = Scope::One(caller.business_unit_id);
    let found = workspaces::service::find(query, scope, caller.workspace_id).await?;
    // A workspace whose run is live is not deleted.
    found.ok_or_else(|| DbError::Row("a live run has no workspace".into()).into())
}

async fn claims(
    query: &impl Query,
    deps: &Deps,
    issuer: String,
    caller: &ExecutorCaller,
    workspace: &Workspace,
    account: &Trusting,
    lease: LiveLease,
) -> Result<Claims, IssuerError> {
    let unit = caller.business_unit_id;
    let slug = business_units::service::find_slug(query, unit).await?.unwrap_or_default();
    let branch = runs::service::find_branch(query, unit, caller.run_id).await?.unwrap_or_default();
    let (begins, ends) = life(deps, lease);
    let aws_tags = account.is_aws.then(|| {
        let tags = credentials::session_tags(&slug, workspace.id, caller.run_id, caller.phase);
        let listed: serde_json::Map<String, Value> =
            tags.into_iter().map(|(key, value)| (key, json!([value]))).collect();
        json!({ "principal_tags": listed })
    });
    Ok(Claims {
        iss: issuer,
        sub: subject(unit, workspace.id, caller.phase),
        aud: account.audience.clone(),
        iat: begins,
        nbf: begins,
        exp: ends,
        jti: deps.ids.mint(),
        business_unit_id: unit,
        business_unit: slug,
        workspace_id: workspace.id,
        workspace: workspace.name.clone(),
        environment: workspace.environment.clone(),
        branch,
        run_id: caller.run_id,
        phase: caller.phase,
        aws_tags,
    })
}

/// From now to the token's end, in seconds since 1970: never beyond the end of the attempt.
fn life(deps: &Deps, lease: LiveLease) -> (i64, i64) {
    let age = deps.limits.issuer_token_age.min(TOKEN_AGE_MAX);
    let seconds = |at: DateTime<Utc>| at.timestamp();
    let wanted = seconds(lease.now) + i64::try_from(age.as_secs()).unwrap_or(0);
    (seconds(lease.now), wanted.min(seconds(lease.attempt_ends_at)))
}

async fn record(
    tx: &Tx<'_>,
    caller: &ExecutorCaller,
    workspace: &Workspace,
    account: &Trusting,
    claims: &Claims,
    key: Uuid,
) -> Result<(), DbError> {
    let entry = Entry {
        business_unit_id: Some(caller.business_unit_id),
        actor: caller.actor(),
        action: Action::IdentityTokenIssue,
        resource_type: account.resource_type,
        resource_id: account.account.clone(),
        workspace_id: Some(workspace.id),
        run_id: Some(caller.run_id),
        details: json!({
            "executor_id": caller.executor_id, "phase": phase_word(caller.phase), "subject": claims.sub,
            "audience": claims.aud, "jti": claims.jti, "issuer_key": key,
            "expires_at": DateTime::<Utc>::from_timestamp(claims.exp, 0),
        }),
    };
    audit::service::record(tx, &entry).await
}
