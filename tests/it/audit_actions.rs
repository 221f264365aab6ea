//! Every action that the audit log knows: how it comes about, and what it then says. A new one does not compile here
//! without a row.

mod settings;
mod states;
mod stories;

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use plumbline_core::audit::Action;
use plumbline_core::protocol::ArtifactKind;
use plumbline_core::rekeys;
use plumbline_core::runs::sweeps;
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use crate::executors::{ADDS_ONE, FakeExecutor, NO_CHANGES, nonce, prepare_on, record, trade};
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane};
use crate::world::World;

/// A story that ends with some actions in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Story {
    SignIn,
    Keys,
    CiLogins,
    Units,
    People,
    Passwords,
    Settings,
    Workspaces,
    Accounts,
    Variables,
    Repositories,
    Applied,
    Decided,
    Empty,
    Lost,
    States,
    Shared,
    RootKey,
    GitCredentials,
    OidcLogins,
    Issuer,
}

/// Who the entry must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Person,
    System,
}

/// Where an action comes about, what it is done to, and by whom.
fn row(action: Action) -> (Story, &'static str, By) {
    use Action as A;
    use By::{Person, System};
    match action {
        A::Login | A::Logout | A::SessionRefreshReused => (Story::SignIn, "session", Person),
        // What is done by nobody that is known here is the system's.
        A::LoginFailed | A::UserBootstrap => (Story::SignIn, "user", System),
        A::ApiKeyCreate | A::ApiKeyRegenerate | A::ApiKeyRotate | A::ApiKeyRevoke => {
            (Story::Keys, "api_key", Person)
        }
        A::JwtSecretCreate => (Story::SignIn, "jwt_secret", System),
        A::JwtSecretRotate => (Story::Settings, "jwt_secret", Person),
        A::IssuerKeyCreate => (Story::Issuer, "issuer_key", System),
        A::IssuerKeyRotate => (Story::Issuer, "issuer_key", Person),
        A::IdentityTokenIssue => (Story::Issuer, "aws_account", System),
        A::ConfigWrite | A::ConfigDelete => (Story::Settings, "config", Person),
        A::BusinessUnitCreate | A::BusinessUnitUpdate | A::BusinessUnitArchive | A::BusinessUnitUnarchive => {
            (Story::Units, "business_unit", Person)
        }
        A::UserCreate | A::UserUpdate | A::UserDisable | A::UserEnable | A::UserDelete => {
            (Story::People, "user", Person)
        }
        A::MembershipGrant | A::MembershipRevoke => (Story::People, "membership", Person),
        A::UserSetPassword
        | A::UserChangePassword
        | A::UserChangePasswordFailed
        | A::UserInvite
        | A::UserInviteRevoke
        | A::UserInviteAccept
        | A::SessionEndAll => (Story::Passwords, "user", Person),
        A::SessionEnd => (Story::Passwords, "session", Person),
        A::CiTrustRuleCreate | A::CiTrustRuleDelete => (Story::CiLogins, "ci_trust_rule", Person),
        A::CiLogin => (Story::CiLogins, "api_key", System),
        A::CiLoginFailed => (Story::CiLogins, "business_unit", System),
        A::WorkspaceCreate
        | A::WorkspaceUpdate
        | A::WorkspaceDelete
        | A::WorkspaceLock
        | A::WorkspaceUnlock => (Story::Workspaces, "workspace", Person),
        A::VariableCreate | A::VariableUpdate | A::VariableDelete => (Story::Variables, "variable", Person),
        A::WorkspaceVariableCreate | A::WorkspaceVariableUpdate | A::WorkspaceVariableDelete => {
            (Story::Variables, "workspace_variable", Person)
        }
        A::VariableSetCreate
        | A::VariableSetUpdate
        | A::VariableSetDelete
        | A::VariableSetAttach
        | A::VariableSetDetach => (Story::Variables, "variable_set", Person),
        A::UserLink => (Story::OidcLogins, "user", System),
        A::SignInCodeReused => (Story::OidcLogins, "session", System),
        A::RunSecretsUse => (Story::Variables, "run", System),
        A::WorkspaceImport | A::RepositoryDiscover | A::TaskReplay => (Story::Repositories, "task", Person),
        A::GitCredentialCreate | A::GitCredentialUpdate | A::GitCredentialDelete | A::GitCredentialTest => {
            (Story::GitCredentials, "git_credential", Person)
        }
        A::GitCredentialUse => (Story::GitCredentials, "git_credential", System),
        A::AwsAccountCreate | A::AwsAccountUpdate | A::AwsAccountDelete | A::AwsAccountTest => {
            (Story::Accounts, "aws_account", Person)
        }
        A::AzureSubscriptionCreate
        | A::AzureSubscriptionUpdate
        | A::AzureSubscriptionDelete
        | A::AzureSubscriptionTest => (Story::Accounts, "azure_subscription", Person),
        A::GcpProjectCreate | A::GcpProjectUpdate | A::GcpProjectDelete | A::GcpProjectTest => {
            (Story::Accounts, "gcp_project", Person)
        }
        A::ClusterCreate | A::ClusterUpdate | A::ClusterDelete | A::ClusterTest => {
            (Story::Accounts, "cluster", Person)
        }
        A::IntegrationTest => (Story::Settings, "integration", Person),
        A::CredentialsUse => (Story::Accounts, "aws_account", System),
        A::RunTrigger | A::RunApprove | A::RunRead => (Story::Applied, "run", Person),
        A::RunPlanned | A::RunApplyBegin | A::RunEnd => (Story::Applied, "run", System),
        A::RunCancel | A::RunReject => (Story::Decided, "run", Person),
        A::RunExpire => (Story::Decided, "run", System),
        A::RunAutoApprove | A::RunApplySkipped => (Story::Empty, "run", System),
        A::ExecutorTicketReused | A::ExecutorIdentityRefused | A::ExecutorLost => {
            (Story::Lost, "executor", System)
        }
        A::RekeyBegin => (Story::RootKey, "rekey", Person),
        A::RekeyEnd => (Story::RootKey, "rekey", System),
        A::WorkspaceBlock => (Story::Lost, "workspace", System),
        A::WorkspaceUnblock => (Story::Lost, "workspace", Person),
        A::StateFlag => (Story::States, "tfstate", System),
        A::StateWrite
        | A::StateQuarantine
        | A::StatePromote
        | A::StateDiscard
        | A::StateRollback
        | A::StateRead
        | A::StateLock
        | A::StateUnlock
        | A::StateForceUnlock
        | A::StateAcceptLineage => (Story::States, "tfstate", Person),
        A::StateShare => (Story::Shared, "tfstate", Person),
        A::StateSharedRead | A::StateExpire => (Story::Shared, "tfstate", System),
    }
}

#[tokio::test]
async fn every_action_comes_about_and_says_who_did_what_to_which() {
    let mut stories: BTreeMap<Story, Vec<Action>> = BTreeMap::new();
    for action in Action::ALL {
        stories.entry(row(*action).0).or_default().push(*action);
    }
    for (story, actions) in stories {
        let plane = Box::pin(tell(story)).await;
        plane.admin_token().await;
        // Time may have passed since, more than a token lives.
        let admin = plane.login(ADMIN_EMAIL).await;
        for action in actions {
            let (_, resource_type, by) = row(action);
            let path = format!("/api/v1/audit?action={}", action.as_str());
            let (status, _, log) = plane.call("GET", &path, admin.as_str(), None).await;
            assert_eq!(status, StatusCode::OK, "{log}");
            let entries = log["items"].as_array().unwrap();
            assert!(!entries.is_empty(), "{story:?} never comes to {}", action.as_str());
            for entry in entries {
                assert_eq!(entry["resource_type"], resource_type, "{entry}");
                assert!(!entry["resource_id"].as_str().unwrap().is_empty(), "{entry}");
                assert_eq!(entry["user_id"].is_string(), by == By::Person, "{entry}");
                let about = |field: &str| entry[field].is_string();
                assert_eq!(about("run_id"), resource_type == "run" || of_a_run(action), "{entry}");
                let in_workspace = ["run", "workspace", "workspace_variable", "tfstate"]
                    .contains(&resource_type)
                    || of_a_run(action);
                assert_eq!(about("workspace_id"), in_workspace, "{entry}");
            }
        }
        let (_, _, verified) = plane.call("GET", "/api/v1/audit/verify", admin.as_str(), None).await;
        assert_eq!(verified["ok"], true, "{story:?}: {verified}");
    }
}

/// Actions on something else than a run that still belong to one.
fn of_a_run(action: Action) -> bool {
    matches!(
        action,
        Action::WorkspaceBlock
            | Action::WorkspaceUnblock
            | Action::GitCredentialUse
            | Action::CredentialsUse
            | Action::IdentityTokenIssue
            | Action::ExecutorTicketReused
            | Action::ExecutorIdentityRefused
            | Action::ExecutorLost
            | Action::StateSharedRead
    )
}

async fn tell(story: Story) -> TestPlane {
    match story {
        Story::SignIn => sign_in().await,
        Story::Keys => stories::keys().await,
        Story::CiLogins => crate::api::ci_logins::story().await,
        Story::Units => units().await,
        Story::People => stories::people().await,
        Story::Passwords => stories::passwords().await,
        Story::Settings => settings::settings().await,
        Story::Workspaces => workspaces().await,
        Story::Accounts => settings::accounts().await,
        Story::Issuer => settings::issuer().await,
        Story::Variables => settings::variables().await,
        Story::Repositories => repositories().await,
        Story::Applied => applied().await,
        Story::Decided => decided().await,
        Story::Empty => empty().await,
        Story::Lost => lost().await,
        Story::States => states::states().await,
        Story::Shared => states::shared().await,
        Story::RootKey => root_key().await,
        Story::OidcLogins => crate::api::oidc_logins::story().await,
        Story::GitCredentials => settings::git_credentials().await,
    }
}

async fn ok(
    plane: &TestPlane,
    token: &str,
    method: &str,
    path: &str,
    body: impl Into<Option<Value>>,
) -> Value {
    let headers = [("if-match", "*"), ("x-business-unit", "default")];
    let answer = plane.call_with(method, &format!("/api/v1/{path}"), token, body, &headers).await;
    assert!(answer.0.is_success() || answer.0.is_redirection(), "{method} {path}: {} {}", answer.0, answer.2);
    answer.2
}

async fn sign_in() -> TestPlane {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let credentials = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let pair = ok(&plane, "", "POST", "auth/token", credentials.clone()).await;
    let wrong = json!({ "email": ADMIN_EMAIL, "password": "wrong" });
    assert_eq!(plane.call("POST", "/api/v1/auth/token", None, wrong).await.0, StatusCode::UNAUTHORIZED);
    let refresh = json!({ "refresh_token": pair["refresh_token"] });
    ok(&plane, "", "POST", "auth/refresh", refresh.clone()).await;
    plane.advance(Duration::from_secs(30)).await;
    assert_eq!(plane.call("POST", "/api/v1/auth/refresh", None, refresh).await.0, StatusCode::UNAUTHORIZED);
    let other = ok(&plane, "", "POST", "auth/token", credentials).await;
    ok(&plane, other["access_token"].as_str().unwrap(), "POST", "auth/logout", None).await;
    plane
}

async fn units() -> TestPlane {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let made = ok(&plane, &admin, "POST", "business-units", json!({ "slug": "blue", "name": "Blue" })).await;
    let path = format!("business-units/{}", made["id"].as_str().unwrap());
    ok(&plane, &admin, "PUT", &path, json!({ "name": "Bluer" })).await;
    ok(&plane, &admin, "POST", &format!("{path}/archive"), None).await;
    ok(&plane, &admin, "POST", &format!("{path}/unarchive"), None).await;
    plane
}

async fn workspaces() -> TestPlane {
    let world = World::new().await;
    let path = format!("workspaces/{}", world.workspace);
    ok(&world.plane, &world.token, "PUT", &path, json!({ "environment": "prod" })).await;
    let reason = json!({ "reason": "by hand" });
    ok(&world.plane, &world.token, "POST", &format!("{path}/lock"), reason).await;
    ok(&world.plane, &world.token, "POST", &format!("{path}/unlock"), None).await;
    ok(&world.plane, &world.token, "DELETE", &path, None).await;
    world.plane
}

async fn repositories() -> TestPlane {
    let world = World::new().await;
    let request = json!({ "repo_url": "https://git.example.com/infra.git" });
    ok(&world.plane, &world.token, "POST", "workspaces/import", request.clone()).await;
    let asked = ok(&world.plane, &world.token, "POST", "workspaces/discover", request).await;
    let worker = world.plane.as_function(Function::Worker);
    let limits = &world.plane.deps.limits;
    let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "test", 10, limits).await.unwrap();
    assert_eq!(claimed.len(), 2);
    for task in claimed {
        let failure = FailedAttempt::Permanent("the forge said no".into());
        let failed = worker
            .db
            .transaction(async |tx| tasks::service::fail(tx, task.lease, &failure, 0.0, limits).await);
        failed.await.unwrap();
    }
    let replay = format!("tasks/{}/replay", asked["task_id"].as_str().unwrap());
    ok(&world.plane, &world.token, "POST", &replay, None).await;
    world.plane
}

async fn applied() -> TestPlane {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    assert_eq!(executor.upload(ArtifactKind::Outputs, b"{}").await, StatusCode::NO_CONTENT);
    assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT);
    for secret in ["outputs", "plan_json"] {
        ok(&world.plane, &world.token, "GET", &format!("runs/{id}/artifacts/{secret}"), None).await;
    }
    world.plane
}

async fn decided() -> TestPlane {
    let world = World::new().await;
    let cancelled = world.planned().await;
    ok(&world.plane, &world.token, "POST", &format!("runs/{cancelled}/cancel"), json!({})).await;
    // Also where the run is asked to stop and goes on for a while.
    let (begun, executor) = world.applying().await;
    ok(&world.plane, &world.token, "POST", &format!("runs/{begun}/cancel"), json!({})).await;
    assert_eq!(executor.fail("cancelled", "interrupted").await.0, StatusCode::NO_CONTENT);
    let rejected = world.planned().await;
    ok(&world.plane, &world.token, "POST", &format!("approvals/{rejected}/reject"), json!({})).await;
    world.planned().await;
    world.plane.advance(world.plane.deps.limits.plan_age + Duration::from_secs(1)).await;
    assert_eq!(sweeps::expire_plans(&world.plane.as_function(Function::Reconciler)).await.unwrap(), 1);
    world.plane
}

async fn empty() -> TestPlane {
    let world = World::new().await;
    let body = json!({ "workspace_id": world.workspace, "command": "apply",
                       "auto_approve_if_no_changes": true, "auto_approve_skip_apply": true });
    ok(&world.plane, &world.token, "POST", "runs", body).await;
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
    world.plane
}

async fn lost() -> TestPlane {
    let world = World::new().await;
    // Somebody who cannot prove to be the launched task.
    let on_ecs = world.trigger("plan").await;
    let (_, launch) = prepare_on(&world.plane, "ecs").await.unwrap();
    record(&world.plane, &launch, "arn:aws:ecs:eu-central-1:123456789012:task/plumbline/0123").await;
    assert_eq!(trade(&world.plane, &launch.ticket, &nonce(1)).await.0, StatusCode::FORBIDDEN);
    ok(&world.plane, &world.token, "POST", &format!("runs/{on_ecs}/cancel"), json!({})).await;
    world.trigger("plan").await;
    let first = FakeExecutor::start(&world.plane).await;
    assert_eq!(trade(&world.plane, &first.launch.ticket, &nonce(2)).await.0, StatusCode::CONFLICT);
    world.plane.advance(world.plane.deps.limits.backoff_max).await;
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    world.applying().await;
    world.plane.advance(world.plane.deps.limits.apply_wall_clock + Duration::from_secs(1)).await;
    tasks::sweeps::judge_silent(&world.plane.as_function(Function::Reconciler)).await.unwrap();
    let unblock = format!("workspaces/{}/unblock", world.workspace);
    ok(&world.plane, &world.token, "POST", &unblock, json!({ "note": "looked at it" })).await;
    world.plane
}

async fn root_key() -> TestPlane {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    ok(&plane, &admin, "POST", "admin/rekey", None).await;
    rekeys::sweeps::reseal(&plane.as_function(Function::Reconciler)).await.unwrap();
    plane
}
