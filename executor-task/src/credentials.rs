//! Cloud credentials of the attempt: made ready here, given to plan and apply alone.
//!
//! Where a role is to be assumed, the child gets the keys of its session and never those that asked for it. What must be a
//! file is one for as long as the call runs, where nobody but the child reads it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use plumbline_core::protocol::{AwsCredentials, AwsKeys, AwsRole, Bundle, TokenFile, TokenFor};
use plumbline_state_proxy::Pauses;
use plumbline_sts::{RoleSession, Sts, StsError, eks_token};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::callback::{Callback, RETRY_PAUSE_MAX};
use crate::error::StepError;
use crate::identity;
use crate::identity_tokens::{self, Place, Renewal};
use crate::log_redaction::Secrets;
use crate::session::Session;
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
    token_files: Vec<TokenFile>,
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
    _renewals: Vec<Renewal>,
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
    pub(crate) async fn prepare(
        settings: &Settings,
        callback: &Callback,
        bundle: &Bundle,
    ) -> Result<Self, StepError> {
        let aws = match &bundle.aws {
            None => None,
            Some(aws) => Some(Aws {
                keys: keys(settings, callback, aws, TokenFor::Aws).await?,
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
                        keys: keys(settings, callback, &eks.aws, TokenFor::Cluster).await?,
                        region: eks.aws.sts_region.clone(),
                        cluster_name: eks.cluster_name.clone(),
                    }),
                },
            }),
        };
        Ok(Self { aws, cluster, token_files: bundle.token_files.clone() })
    }

    /// What no log may show.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let eks = self.cluster.as_ref().and_then(|cluster| cluster.eks.as_ref());
        let all = self.aws.iter().map(|aws| &aws.keys).chain(eks.map(|eks| &eks.keys));
        all.flat_map(words).flatten()
    }

    /// Lays out what one call needs.
    pub(crate) async fn open(&self, session: &Session) -> Result<Opened, StepError> {
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
            files.push((KUBECONFIG_VARIABLES, cluster.kubeconfig(&session.secrets)?));
        }
        if files.is_empty() && self.token_files.is_empty() {
            return Ok(Opened { environment, _renewals: Vec::new(), _directory: None });
        }
        let (given, isolation) = (&session.layout.given, session.isolation);
        let failed = || StepError::machine("the credentials cannot be laid out");
        let directory = tempfile::Builder::new().prefix("credentials-").tempdir_in(given).map_err(failed())?;
        isolation.share(directory.path()).map_err(failed())?;
        for (number, (names, content)) in files.into_iter().enumerate() {
            let path = directory.path().join(number.to_string());
            std::fs::write(&path, content).map_err(failed())?;
            isolation.share(&path).map_err(failed())?;
            environment.extend(names.iter().map(|name| ((*name).into(), path.clone().into_os_string())));
        }
        let mut renewals = Vec::new();
        for (number, file) in self.token_files.iter().enumerate() {
            let path = directory.path().join(format!("token-{number}"));
            environment.push(token_variable(file, &path));
            renewals.push(identity_tokens::keep(place(session, file, path)).await?);
        }
        Ok(Opened { environment, _renewals: renewals, _directory: Some(directory) })
    }
}

fn place(session: &Session, file: &TokenFile, path: PathBuf) -> Place {
    Place {
        callback: session.callback.clone(),
        secrets: Arc::clone(&session.secrets),
        isolation: session.isolation,
        wanted: file.wanted(),
        path,
    }
}

/// What leads a cloud's libraries to the token in a file.
fn token_variable(file: &TokenFile, path: &Path) -> (OsString, OsString) {
    match file {
        TokenFile::Azure => ("ARM_OIDC_TOKEN_FILE_PATH".into(), path.into()),
        TokenFile::Gcp { workload_identity_provider, client_email } => {
            let account = json!({
                "type": "external_account",
                "universe_domain": "googleapis.com",
                "audience": format!("//iam.googleapis.com/{workload_identity_provider}"),
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": "https://sts.googleapis.com/v1/token",
                "service_account_impersonation_url": format!(
                    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{client_email}:generateAccessToken"
                ),
                "credential_source": { "file": path },
            });
            ("GOOGLE_CREDENTIALS".into(), account.to_string().into())
        }
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
        secrets.add_passing(&token);
        let mut kubeconfig: Value = serde_json::from_str(&self.kubeconfig)
            .map_err(|_| StepError::Permanent("the kubeconfig of the bundle cannot be read".into()))?;
        kubeconfig["users"][0]["user"] = json!({ "token": token });
        Ok(kubeconfig.to_string())
    }
}

/// The keys that the child gets. Our own role's never go there, nor what lets us assume the account's.
async fn keys(
    settings: &Settings,
    callback: &Callback,
    aws: &AwsCredentials,
    wanted: TokenFor,
) -> Result<AwsKeys, StepError> {
    let Some(role) = &aws.role else {
        return aws.keys.clone().ok_or_else(|| {
            StepError::Permanent("the AWS account has neither keys nor roles: register it anew".into())
        });
    };
    let deadline = Instant::now() + PATIENCE;
    let sts = Sts::new(&aws.sts_region, settings.sts_endpoint.as_deref())
        .map_err(|error| StepError::Permanent(format!("PLUMBLINE_STS_ENDPOINT {error}")))?;
    if aws.web_identity {
        // The child never sees the token: with it, it could have a session without the account's session policy.
        let token = identity_tokens::fetch(callback, wanted).await?.token;
        return assumed(role, deadline, async || sts.assume_with_token(&token, role).await).await;
    }
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
    assumed(role, deadline, async || sts.assume(asking, Utc::now(), role).await).await
}

/// Asks until AWS has said yes or no.
async fn assumed(
    role: &AwsRole,
    deadline: Instant,
    ask: impl AsyncFn() -> Result<RoleSession, StsError>,
) -> Result<AwsKeys, StepError> {
    let mut pauses = Pauses::up_to(RETRY_PAUSE_MAX);
    loop {
        match ask().await {
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
