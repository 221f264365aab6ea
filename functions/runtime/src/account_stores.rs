//! Opens the stores of units' own accounts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::Utc;
use plumbline_core::ports::{BlobError, BlobStore, OpenError, OpenedStore, StateStores};
use plumbline_core::protocol::{AwsKeys, AwsRole};
use plumbline_core::secrets::SecretText;
use plumbline_core::state_stores::{StateAccess, StatePlace};
use plumbline_object_store::{AzureAccess, AzurePlace, AzureStore, GcsAccess, GcsPlace, GcsStore};
use plumbline_s3::{S3Credentials, S3Place, S3Store};
use plumbline_sts::{Sts, StsError};

use crate::environment::{AZURE_LOGIN_ENDPOINT, Environment, STS_ENDPOINT};

/// Where services answer, instead of their public addresses: only tests and emulators set them.
#[derive(Clone, Debug, Default)]
pub struct StoreEndpoints {
    /// S3, with buckets in its paths.
    pub s3: Option<String>,
    /// AWS's token service.
    pub sts: Option<String>,
    /// Azure's blobs, with storage accounts in its paths.
    pub azure: Option<String>,
    /// Azure's directories.
    pub azure_directories: Option<String>,
    /// Google's storage, which then also trades its tokens.
    pub gcs: Option<String>,
}

impl StoreEndpoints {
    /// As the settings of a function say.
    pub fn from_environment(environment: &Environment) -> Self {
        let find = |name: &str| environment.find(name).map(str::to_owned);
        Self {
            s3: find("PLUMBLINE_STATE_S3_ENDPOINT"),
            sts: find(STS_ENDPOINT),
            azure: find("PLUMBLINE_STATE_AZURE_ENDPOINT"),
            azure_directories: find(AZURE_LOGIN_ENDPOINT),
            gcs: find("PLUMBLINE_STATE_GCS_ENDPOINT"),
        }
    }
}

/// Opens places with the credentials of their accounts, or as this function where those only trust a role.
#[derive(Clone, Debug)]
pub struct AccountStores {
    endpoints: StoreEndpoints,
    /// This function's own role; `None` where it has none.
    own: Option<AwsKeys>,
}

impl AccountStores {
    /// With the settings of a function.
    pub(crate) fn from_environment(environment: &Environment) -> Self {
        let find = |name: &str| environment.find(name).map(str::to_owned);
        let own = find("AWS_ACCESS_KEY_ID").zip(find("AWS_SECRET_ACCESS_KEY"));
        let own = own.map(|(access_key_id, secret_access_key)| AwsKeys {
            access_key_id,
            secret_access_key,
            session_token: find("AWS_SESSION_TOKEN"),
        });
        Self { endpoints: StoreEndpoints::from_environment(environment), own }
    }

    /// Where services answer elsewhere; this process has no role of its own.
    pub fn at(endpoints: StoreEndpoints) -> Self {
        Self { endpoints, own: None }
    }

    async fn s3(
        &self,
        place: S3Place,
        (keys, role): (Option<&AwsKeys>, Option<&AwsRole>),
        sts_region: &str,
    ) -> Result<OpenedStore, OpenError> {
        let (keys, renew_at) = match (keys, role) {
            (Some(keys), None) => (keys.clone(), None),
            (keys, Some(role)) => {
                let keys = keys.or(self.own.as_ref()).ok_or_else(|| {
                    OpenError::Refused(
                        "the account has no keys, and this function has no role that could assume the account's".into(),
                    )
                })?;
                self.assume(keys, role, sts_region).await?
            }
            (None, None) => {
                return Err(OpenError::Refused("the account has neither keys nor a role".into()));
            }
        };
        let credentials = S3Credentials {
            access_key_id: keys.access_key_id,
            secret_access_key: SecretText::new(keys.secret_access_key),
            session_token: keys.session_token.map(SecretText::new),
        };
        let store = S3Store::open(&place, &credentials).map_err(refused)?;
        Ok(OpenedStore { blobs: Arc::new(store), renew_at })
    }

    async fn assume(
        &self,
        keys: &AwsKeys,
        role: &AwsRole,
        region: &str,
    ) -> Result<(AwsKeys, Option<Instant>), OpenError> {
        let sts = Sts::new(region, self.endpoints.sts.as_deref())
            .map_err(|error| OpenError::Unavailable(format!("{STS_ENDPOINT} {error}")))?;
        // Counted from before the question: the session cannot end earlier.
        let asked_at = Instant::now();
        let session = sts.assume(keys, Utc::now(), role).await.map_err(|error| match error {
            StsError::Refused(why) => {
                OpenError::Refused(format!("{} cannot be assumed: {why}", role.role_arn))
            }
            StsError::Unavailable(why) => {
                OpenError::Unavailable(format!("AWS cannot be asked for {}: {why}", role.role_arn))
            }
        })?;
        let half = Duration::from_secs(u64::try_from(role.duration_seconds / 2).unwrap_or(0));
        Ok((session.keys, Some(asked_at + half)))
    }
}

#[async_trait]
impl StateStores for AccountStores {
    async fn open(&self, place: &StatePlace, access: &StateAccess) -> Result<OpenedStore, OpenError> {
        match (place, access) {
            (StatePlace::S3 { bucket, region }, StateAccess::Aws { keys, role, sts_region }) => {
                let endpoint = self.endpoints.s3.clone();
                let place =
                    S3Place { bucket: bucket.clone(), region: region.clone(), prefix: None, endpoint };
                self.s3(place, (keys.as_ref(), role.as_ref()), sts_region).await
            }
            (
                StatePlace::AzureBlob { storage_account, container },
                StateAccess::Azure { tenant_id, client_id, client_secret },
            ) => {
                let endpoint = self.endpoints.azure.as_ref();
                let place = AzurePlace {
                    account: storage_account.clone(),
                    container: container.clone(),
                    prefix: None,
                    endpoint: endpoint
                        .map(|base| format!("{}/{storage_account}", base.trim_end_matches('/'))),
                };
                let access = AzureAccess::ClientSecret {
                    tenant_id: tenant_id.clone(),
                    client_id: client_id.clone(),
                    client_secret: client_secret.clone(),
                    directory_endpoint: self.endpoints.azure_directories.clone(),
                };
                Ok(lasting(AzureStore::open(&place, &access).map_err(refused)?))
            }
            (StatePlace::Gcs { bucket, prefix }, StateAccess::Gcp { service_account }) => {
                let endpoint = self.endpoints.gcs.clone();
                let place = GcsPlace { bucket: bucket.clone(), prefix: prefix.clone(), endpoint };
                let access = GcsAccess::ServiceAccountKey(service_account.clone());
                Ok(lasting(GcsStore::open(&place, &access).map_err(refused)?))
            }
            _ => Err(OpenError::Refused("the place is of another cloud than its account".into())),
        }
    }
}

/// A store that gets its own tokens, as long as the credentials are good.
fn lasting(store: impl BlobStore + 'static) -> OpenedStore {
    OpenedStore { blobs: Arc::new(store), renew_at: None }
}

fn refused(error: BlobError) -> OpenError {
    match error {
        BlobError::Refused(why) => OpenError::Refused(why),
        other => OpenError::Refused(other.to_string()),
    }
}
