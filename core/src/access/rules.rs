//! What each role may do. The one table of permissions; routes and use cases name a permission, never a role.

use super::model::{Ctx, Role, Scope};
use crate::ids::{BusinessUnitId, UserId};

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
    /// Trigger, cancel, approve and reject runs.
    OperateRuns,
    /// Write state by hand, lock and unlock one's own lock.
    WriteState,
    /// Take somebody's lock away, roll back, promote or discard quarantined state, resolve a blocked workspace.
    AdministerState,
    /// Create, change, import and delete workspaces.
    AdministerWorkspaces,
    /// Write variables of a workspace.
    WriteWorkspaceVariables,
    /// Write variables of the unit, and variable sets.
    AdministerVariables,
    /// Read the audit log of the unit.
    ReadAudit,
    /// Create and change business units, verify every audit chain.
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
            | Self::OperateRuns
            | Self::WriteState
            | Self::WriteWorkspaceVariables => Some(Role::Operator),
            Self::AdministerState
            | Self::AdministerWorkspaces
            | Self::AdministerVariables
            | Self::ReadAudit => Some(Role::Admin),
            Self::AdministerPlatform => None,
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

    /// The person behind the request.
    pub fn person(&self) -> Result<UserId, AccessError> {
        self.actor.user_id().ok_or(AccessError::PersonRequired)
    }
}
