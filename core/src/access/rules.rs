//! What each role and each API key may do. The one table of permissions; routes and use cases name a permission, never
//! a role.

use super::model::{Capability, Credential, Ctx, Role, Scope};
use crate::ids::{BusinessUnitId, UserId, WorkspaceId};

/// One thing that a caller may or may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// See workspaces, runs, steps, plan summaries.
    Read,
    /// See the queue.
    ReadTasks,
    /// See raw logs and plan texts, which may hold what redaction missed.
    ReadLogs,
    /// Download raw state, outputs and unredacted artifacts.
    ReadState,
    /// Trigger and cancel runs that only plan.
    PlanRuns,
    /// Trigger and cancel runs that change something, approve and reject.
    ApplyRuns,
    /// Run one of the unit's finished or dead tasks again.
    ReplayTasks,
    /// Write state by hand, lock and unlock one's own lock.
    WriteState,
    /// Take somebody's lock away, roll back, promote or discard quarantined state, resolve a blocked workspace.
    AdministerState,
    /// Create, change, import and delete workspaces.
    AdministerWorkspaces,
    /// Read the audit log of the unit.
    ReadAudit,
    /// See how the unit's integrations are set up, secrets masked.
    ReadIntegrations,
    /// Set up the unit's integrations.
    AdministerIntegrations,
    /// See the platform's tunables.
    ReadRuntimeConfig,
    /// Make, rotate and revoke API keys of the unit.
    AdministerKeys,
    /// Create and change business units, change tunables and the secret that tokens are signed with, verify every audit
    /// chain.
    AdministerPlatform,
}

impl Permission {
    /// The least role that has the permission; `None` means superadmins only.
    pub fn least_role(self) -> Option<Role> {
        match self {
            Self::Read => Some(Role::Viewer),
            Self::ReadTasks
            | Self::ReadLogs
            | Self::ReadState
            | Self::PlanRuns
            | Self::ApplyRuns
            | Self::ReplayTasks
            | Self::WriteState
            | Self::ReadIntegrations => Some(Role::Operator),
            Self::AdministerState
            | Self::AdministerWorkspaces
            | Self::AdministerKeys
            | Self::ReadAudit
            | Self::AdministerIntegrations
            | Self::ReadRuntimeConfig => Some(Role::Admin),
            Self::AdministerPlatform => None,
        }
    }

    /// The least capability of an API key that has the permission, if its owner's role has it, too; `None` means that
    /// no key has it: people, keys and units are for people.
    pub fn least_capability(self) -> Option<Capability> {
        match self {
            Self::Read => Some(Capability::Read),
            Self::ReadTasks | Self::ReadLogs | Self::PlanRuns | Self::ReadIntegrations => {
                Some(Capability::Plan)
            }
            // State holds secrets in the clear, and a plan of ours does not need a key that reads it.
            Self::ReadState | Self::ApplyRuns | Self::ReplayTasks | Self::WriteState => {
                Some(Capability::Apply)
            }
            Self::AdministerState
            | Self::AdministerWorkspaces
            | Self::ReadAudit
            | Self::AdministerIntegrations
            | Self::ReadRuntimeConfig => Some(Capability::Admin),
            Self::AdministerKeys | Self::AdministerPlatform => None,
        }
    }
}

/// Why a caller may not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The caller's role is too low.
    #[error("this needs the role {}, and you have {}", .needs.map_or("superadmin", Role::as_str), .has.as_str())]
    Forbidden {
        /// The least role that would do; `None` is superadmin.
        needs: Option<Role>,
        /// The caller's role.
        has: Role,
    },
    /// The API key does not go so far.
    #[error("this needs an API key with the capability {}, and this one has {}", .needs.as_str(), .has.as_str())]
    KeyForbidden {
        /// The least capability that would do.
        needs: Capability,
        /// The key's.
        has: Capability,
    },
    /// No API key does this.
    #[error("no API key can do this: sign in as a person")]
    KeysForbidden,
    /// The API key reaches only some workspaces, and this concerns more than one of them.
    #[error(
        "this API key reaches only the workspaces on its list, and this is about the whole business unit"
    )]
    KeyConfined,
    /// Creating something needs exactly one business unit.
    #[error(
        "name one business unit in the header X-Business-Unit: this cannot be done in all of them at once"
    )]
    UnitRequired,
    /// Only a person can do this.
    #[error("only a person can do this")]
    PersonRequired,
}

impl Ctx {
    /// Refuses unless the caller has the permission in the request's scope.
    pub fn require(&self, permission: Permission) -> Result<(), AccessError> {
        if let Credential::Key { capability: has, .. } = self.credential {
            let needs = permission.least_capability().ok_or(AccessError::KeysForbidden)?;
            if has < needs {
                return Err(AccessError::KeyForbidden { needs, has });
            }
        }
        let allowed = match permission.least_role() {
            _ if self.is_superadmin => true,
            Some(least) => self.role >= least,
            None => false,
        };
        if allowed {
            Ok(())
        } else {
            Err(AccessError::Forbidden { needs: permission.least_role(), has: self.role })
        }
    }

    /// The one unit of the request.
    pub fn unit(&self) -> Result<BusinessUnitId, AccessError> {
        match self.scope {
            Scope::One(unit) => Ok(unit),
            Scope::All => Err(AccessError::UnitRequired),
        }
    }

    /// The only workspaces that the caller reaches; `None` is all of the scope.
    pub fn workspaces(&self) -> Option<&[WorkspaceId]> {
        match &self.credential {
            Credential::Key { workspaces, .. } => workspaces.as_deref(),
            Credential::Session(_) => None,
        }
    }

    /// The same as a parameter of a statement that filters with `($1::uuid[] IS NULL OR workspace_id = ANY ($1))`.
    pub fn workspaces_param(&self) -> Option<Vec<uuid::Uuid>> {
        self.workspaces().map(|ids| ids.iter().map(|id| id.0).collect())
    }

    /// Whether the caller reaches the workspace, if it is of the scope.
    pub fn reaches(&self, workspace: WorkspaceId) -> bool {
        self.workspaces().is_none_or(|ids| ids.contains(&workspace))
    }

    /// Refuses API keys, whatever they may do.
    pub fn require_session(&self) -> Result<(), AccessError> {
        match self.credential {
            Credential::Session(_) => Ok(()),
            Credential::Key { .. } => Err(AccessError::KeysForbidden),
        }
    }

    /// The person behind the request.
    pub fn person(&self) -> Result<UserId, AccessError> {
        self.actor.user_id().ok_or(AccessError::PersonRequired)
    }
}
