//! Typed ids. Every id is a UUID of version 7, so ids sort by creation time; a type per table keeps a run's id
//! from being passed where a workspace's is meant.

use serde::{Deserialize, Serialize};
#[cfg(feature = "store")]
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = Uuid)]
        pub struct $name(pub Uuid);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(Self(text.parse()?))
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        #[cfg(feature = "store")]
        impl crate::db::Param for $name {
            fn pg_type(&self) -> tokio_postgres::types::Type {
                tokio_postgres::types::Type::UUID
            }
        }

        #[cfg(feature = "store")]
        impl tokio_postgres::types::ToSql for $name {
            fn to_sql(
                &self,
                ty: &tokio_postgres::types::Type,
                out: &mut bytes::BytesMut,
            ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
                self.0.to_sql(ty, out)
            }
            fn accepts(ty: &tokio_postgres::types::Type) -> bool {
                <Uuid as tokio_postgres::types::ToSql>::accepts(ty)
            }
            tokio_postgres::types::to_sql_checked!();
        }

        #[cfg(feature = "store")]
        impl<'a> tokio_postgres::types::FromSql<'a> for $name {
            fn from_sql(
                ty: &tokio_postgres::types::Type,
                raw: &'a [u8],
            ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
                Ok(Self(<Uuid as tokio_postgres::types::FromSql>::from_sql(ty, raw)?))
            }
            fn accepts(ty: &tokio_postgres::types::Type) -> bool {
                <Uuid as tokio_postgres::types::FromSql>::accepts(ty)
            }
        }
    )*};
}

ids! {
    /// A tenant.
    BusinessUnitId;
    /// A person.
    UserId;
    /// One Terraform directory of one repository in one place (account, region, environment).
    WorkspaceId;
    /// One pass of one command over one workspace.
    RunId;
    /// One row of the queue.
    TaskId;
    /// One launched executor: one attempt of one task.
    ExecutorId;
    /// One accepted version of a workspace's Terraform state.
    StateVersionId;
    /// One state body that came with a lost lock and waits for a person.
    QuarantinedStateId;
    /// One large state body on its way into the object store.
    StateUploadId;
    /// One place outside the platform where states lie.
    StateStoreId;
    /// One resource in the index of what states contain.
    ResourceId;
    /// One immutable object in the object store.
    BlobId;
    /// One named output of a run.
    ArtifactId;
    /// One registered AWS account; its number is another thing.
    AwsAccountId;
    /// One registered Azure subscription.
    AzureSubscriptionId;
    /// One registered GCP project.
    GcpProjectId;
    /// One registered Kubernetes cluster.
    ClusterId;
    /// One sign-in and all refresh tokens that follow from it.
    SessionId;
    /// One way into the repositories of one host, of one tenant.
    GitCredentialId;
    /// A long-lived credential of a program.
    ApiKeyId;
    /// One secret that access tokens are signed with: `kid` in their header.
    JwtSecretId;
    /// One key of our own issuer: `kid` in the header of its tokens.
    IssuerKeyId;
    /// A rule by which a CI system's tokens are taken.
    TrustRuleId;
    /// One Terraform variable, or a run's own copy of it.
    VariableId;
    /// One named list of variables.
    VariableSetId;
}

/// Makes ids. The only place where ids come from.
#[cfg(feature = "store")]
#[derive(Clone, Copy, Debug, Default)]
pub struct IdSource;

#[cfg(feature = "store")]
impl IdSource {
    /// A new, time-ordered id. Ids made later in one process sort after earlier ones.
    pub fn mint<I: From<Uuid>>(&self) -> I {
        I::from(Uuid::now_v7())
    }

    /// The id that a repeated attempt of the same work also gets: it depends on the work's own id and on what the row
    /// is about, and sorts with the work.
    pub fn derive<I: From<Uuid>>(&self, work: Uuid, about: &str) -> I {
        let digest = Sha256::new().chain_update(work).chain_update(about).finalize();
        let mut bytes = *work.as_bytes();
        // The first six bytes are the time.
        bytes[6..].copy_from_slice(&digest[..10]);
        I::from(uuid::Builder::from_bytes(bytes).with_version(uuid::Version::SortRand).into_uuid())
    }
}
