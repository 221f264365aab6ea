//! Places and ways into them as plain data.

use serde::{Deserialize, Serialize};

use crate::ids::{AwsAccountId, AzureSubscriptionId, GcpProjectId};
use crate::protocol::{AwsKeys, AwsRole};
use crate::secrets::SecretText;

/// Which kind of store a workspace's state goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateBackend {
    /// That of the first of its accounts that has one: AWS before Azure before GCP. The platform's own where none has.
    #[default]
    Automatic,
    /// The platform's own, whatever its accounts have.
    Platform,
    /// The bucket of its AWS account.
    S3,
    /// The container of its Azure subscription.
    Azureblob,
    /// The bucket of its GCP project.
    Gcs,
}

impl StateBackend {
    const ALL: [Self; 5] = [Self::Automatic, Self::Platform, Self::S3, Self::Azureblob, Self::Gcs];

    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Platform => "platform",
            Self::S3 => "s3",
            Self::Azureblob => "azureblob",
            Self::Gcs => "gcs",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.as_str() == word)
    }
}

/// The account whose place it is, by the id of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreAccount {
    /// An AWS account.
    Aws(AwsAccountId),
    /// An Azure subscription.
    Azure(AzureSubscriptionId),
    /// A GCP project.
    Gcp(GcpProjectId),
}

/// A place in somebody's cloud.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StatePlace {
    /// A bucket at AWS.
    S3 {
        /// The bucket.
        bucket: String,
        /// Where it is.
        region: String,
    },
    /// A container at Azure.
    AzureBlob {
        /// The storage account.
        storage_account: String,
        /// The container in it.
        container: String,
    },
    /// A bucket at Google.
    Gcs {
        /// The bucket.
        bucket: String,
        /// What names of objects in it begin with.
        prefix: Option<String>,
    },
}

impl std::fmt::Display for StatePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::S3 { bucket, region } => write!(f, "the bucket {bucket} in {region}"),
            Self::AzureBlob { storage_account, container } => {
                write!(f, "the container {container} of the storage account {storage_account}")
            }
            Self::Gcs { bucket, .. } => write!(f, "the bucket {bucket}"),
        }
    }
}

/// What lets us into a place.
#[derive(Clone, Debug)]
pub enum StateAccess {
    /// Keys of AWS, a role of it, or keys that may assume the role.
    Aws {
        /// `None`: this function's own role assumes the account's.
        keys: Option<AwsKeys>,
        /// `None`: the keys themselves act.
        role: Option<AwsRole>,
        /// Whose token service is asked for the role.
        sts_region: String,
    },
    /// A service principal of Azure.
    Azure {
        /// Its directory.
        tenant_id: String,
        /// Who it is.
        client_id: String,
        /// Its secret.
        client_secret: SecretText,
    },
    /// A service account of Google.
    Gcp {
        /// Its key, as Google's libraries read it.
        service_account: SecretText,
    },
}
