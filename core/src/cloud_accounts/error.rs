//! What the use cases of cloud accounts can say went wrong.

use super::UsedBy;
use crate::access::AccessError;
use crate::db::DbError;
use crate::secrets::{KeyringError, SealError};
use crate::workspaces::InvalidField;

/// Why something with a cloud account did not work.
#[derive(Debug, thiserror::Error)]
pub enum CloudAccountError {
    /// No such account in this scope.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// A value of the request is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The unit has registered it already.
    #[error("this business unit has one with the same {field} already")]
    Duplicate {
        /// What is the same.
        field: &'static str,
    },
    /// The edit was made to an older version.
    #[error("it was edited meanwhile: it is at version {actual}")]
    VersionMismatch {
        /// The version now.
        actual: i32,
    },
    /// Somebody's runs depend on it.
    #[error("it is in use")]
    InUse(UsedBy),
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A secret could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database.
    #[error(transparent)]
    Db(DbError),
}

/// Why a phase gets no bundle.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// They are registered and cannot be used, now or later.
    #[error("the credentials of {account} cannot be used: {why}")]
    Unusable {
        /// Of what, for people.
        account: String,
        /// Why.
        why: String,
    },
    /// This function lacks a key.
    #[error(transparent)]
    Key(#[from] KeyringError),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<DbError> for CloudAccountError {
    fn from(error: DbError) -> Self {
        let DbError::Duplicate { constraint } = &error else {
            return match &error {
                DbError::Missing { constraint } if constraint == "clusters_aws_account" => {
                    super::service::unregistered("aws_account_id").into()
                }
                _ => Self::Db(error),
            };
        };
        match constraint.as_str() {
            "aws_accounts_account" => Self::Duplicate { field: "account_id" },
            "azure_subscriptions_subscription" => Self::Duplicate { field: "subscription_id" },
            "gcp_projects_project" => Self::Duplicate { field: "project_id" },
            "clusters_name" => Self::Duplicate { field: "name" },
            _ => Self::Db(error),
        }
    }
}
