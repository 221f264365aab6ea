//! Cloud credentials of the attempt: made ready here, given to plan and apply alone.
//!
//! Where a role is to be assumed, the child gets the keys of its session and never those that asked for it. What must be a
//! file is one for as long as the call runs, where nobody but the child reads it.

use std::ffi::OsString;
use std::time::Duration;

use chrono::Utc;
use plumbline_core::protocol::{AwsCredentials, AwsKeys, Bundle};
use plumbline_sts::{Sts, StsError, eks_token};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::callback::RETRY_PAUSE_MAX;
use crate::error::StepError;
use crate::identity;
use crate::isolation::Isolation;
use crate::log_redaction::Secrets;
use crate::pauses::Pauses;
use crate::session::Layout;
use crate::settings::Settings;

/// How long AWS may be away.
const PATIENCE: Duration = Duration::from_secs(60);
/// What leads to a file with a named profile.
const PROFILE_VARIABLES: &[&str] = &["AWS_SHARED_CREDENTIALS_FILE"];
/// What leads tools and providers to a kubeconfig.
const KUBECONFIG_VARIABLES: &[&str] = &["KUBECONFIG", "KUBE_CONFIG_PATH"];

/// What the calls that may reach a cloud get.
#[derive(Default)]
pub(crate) struct Cloud {
    aws: Option<Aws>,
    cluster: Option<Cluster>,
}

struct Aws {
    keys: AwsKeys,
    region: String,
    profile: Option<String>,
}

struct Cluster {
    kubeconfig: String,
    eks: Option<Eks>,
}

/// Whose token opens an EKS cluster. It lives for minutes, so it is made when it is needed.
struct Eks {
    keys: AwsKeys,
    region: String,
    cluster_name: String,
}

/// The credentials of one call. Their files go with it.
pub(crate) struct Opened {
    environment: Vec<(OsString, OsString)>,
    _directory: Option<TempDir>,
}

impl Opened {
    /// For the call.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        self.environment.clone()
    }
}

impl Cloud {
    /// Gets what the bundle leads to.
    pub(crate) async fn prepare(settings: &Settings, bundle: &Bundle) -> Result<Self, StepError> {
        let aws = match &bundle.aws {
            None => None,
            Some(aws) => Some(Aws {
                keys: keys(settings, aws).await?,
                region: aws.region.clone(),
                profile: aws.profile.clone(),
            }),
        };
        let cluster = match &bundle.cluster {
            None => None,
            Some(access) => Some(Cluster {
                kubeconfig: access.kubeconfig.clone(),
                eks: match &access.eks {
                    None => None,
                    Some(eks) => Some(Eks {
                        keys: keys(settings, &eks.aws).await?,
                        region: eks.aws.sts_region.clone(),
                        cluster_name: eks.cluster_name.clone(),
                    }),
                },
            }),
        };
        Ok(Self { aws, cluster })
    }

    /// What no log may show.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let eks = self.cluster.as_ref().and_then(|cluster| cluster.eks.as_ref());
        let all = self.aws.iter().map(|aws| &aws.keys).chain(eks.map(|eks| &eks.keys));
        all.flat_map(words).flatten()
    }

    /// Lays out what one call needs.
    pub(crate) fn open(
        &self,
        layout: &Layout,
        isolation: Isolation,
        secrets: &Secrets,
    ) -> Result<Opened, StepError> {
        // Without it a provider that has no credentials takes those of the machine that it runs on.
        let mut environment = vec![("AWS_EC2_METADATA_DISABLED".into(), "true".into())];
        let mut files = Vec::new();
        if let Some(aws) = &self.aws {
            environment.extend(aws.environment());
            if let Some(profile) = &aws.profile {
                files.push((PROFILE_VARIABLES, aws.profile_file(profile)));
            }
        }
        if let Some(cluster) = &self.cluster {
            files.push((KUBECONFIG_VARIABLES, cluster.kubeconfig(secrets)?));
        }
        let mut directory = None;
        for (number, (names, content)) in files.into_iter().enumerate() {
            let failed = || StepError::machine("the credentials cannot be laid out");
            if directory.is_none() {
                let made = tempfile::Builder::new()
                    .prefix("credentials-")
                    .tempdir_in(&layout.given)
                    .map_err(failed())?;
                isolation.share(made.path()).map_err(failed())?;
                directory = Some(made);
            }
            let Some(made) = &directory else { continue };
            let path = made.path().join(number.to_string());
            std::fs::write(&path, content).map_err(failed())?;
            isolation.share(&path).map_err(failed())?;
            environment.extend(names.iter().map(|name| ((*name).into(), path.clone().into_os_string())));
        }
        Ok(Opened { environment, _directory: directory })
    }
}

/// The key's id as well: nobody needs it in a log, and the API shows it to nobody either.
fn words(keys: &AwsKeys) -> [Option<&str>; 3] {
    [Some(&keys.access_key_id), Some(&keys.secret_access_key), keys.session_token.as_deref()]
}

impl Aws {
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all = vec![
            ("AWS_ACCESS_KEY_ID", self.keys.access_key_id.as_str()),
            ("AWS_SECRET_ACCESS_KEY", &self.keys.secret_access_key),
            ("AWS_REGION", &self.region),
            ("AWS_DEFAULT_REGION", &self.region),
        ];
        all.extend(self.keys.session_token.as_deref().map(|token| ("AWS_SESSION_TOKEN", token)));
        all.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// For configurations that name a profile: the libraries then look at nothing else.
    fn profile_file(&self, profile: &str) -> String {
        let AwsKeys { access_key_id, secret_access_key, session_token } = &self.keys;
        let mut text = format!(
            "[{profile}]\naws_access_key_id = {access_key_id}\naws_secret_access_key = {secret_access_key}\n"
        );
        if let Some(token) = session_token {
            text.push_str(&format!("aws_session_token = {token}\n"));
        }
        text
    }
}

impl Cluster {
    fn kubeconfig(&self, secrets: &Secrets) -> Result<String, StepError> {
        let Some(eks) = &self.eks else { return Ok(self.kubeconfig.clone()) };
        let token = eks_token(&eks.keys, &eks.region, &eks.cluster_name, Utc::now());
        secrets.add(&token);
        let mut kubeconfig: Value = serde_json::from_str(&self.kubeconfig)
            .map_err(|_| StepError::Permanent("the kubeconfig of the bundle cannot be read".into()))?;
        kubeconfig["users"][0]["user"] = json!({ "token": token });
        Ok(kubeconfig.to_string())
    }
}

/// The keys that the child gets. Our own role's never go there.
async fn keys(settings: &Settings, aws: &AwsCredentials) -> Result<AwsKeys, StepError> {
    let Some(role) = &aws.role else {
        return aws.keys.clone().ok_or_else(|| {
            StepError::Permanent("the AWS account has neither keys nor roles: register it anew".into())
        });
    };
    let deadline = Instant::now() + PATIENCE;
    let own;
    let asking = match (&aws.keys, &settings.task_role) {
        (Some(keys), _) => keys,
        (None, Some(task_role)) => {
            own = identity::credentials(task_role, deadline).await?;
            own.keys()
        }
        (None, None) => {
            return Err(StepError::Permanent(format!(
                "{} cannot be assumed: the AWS account has no keys, and executors here have no role of their own",
                role.role_arn
            )));
        }
    };
    let sts = Sts::new(&aws.sts_region, settings.sts_endpoint.as_deref())
        .map_err(|error| StepError::Permanent(format!("PLUMBLINE_STS_ENDPOINT {error}")))?;
    let mut pauses = Pauses::up_to(RETRY_PAUSE_MAX);
    loop {
        match sts.assume(asking, Utc::now(), role).await {
            Ok(session) => return Ok(session.keys),
            Err(StsError::Refused(why)) => {
                return Err(StepError::Permanent(format!("{} cannot be assumed: {why}", role.role_arn)));
            }
            Err(StsError::Unavailable(why)) if pauses.would_pass(deadline) => {
                return Err(StepError::Transient(format!("{} cannot be assumed: {why}", role.role_arn)));
            }
            Err(StsError::Unavailable(why)) => tracing::warn!(why, "AWS is asked for a role again"),
        }
        pauses.pause().await;
    }
}
