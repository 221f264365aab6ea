//! Trying a kubeconfig: whether the API server answers, is the one that the kubeconfig knows, and lets its user in.

use chrono::Utc;
use plumbline_core::Deps;
use plumbline_core::adapters::web::{Question, Trust, below};
use plumbline_core::cloud_accounts::clusters::ClusterTest;
use plumbline_core::cloud_accounts::tasks::{AwsTrial, ClusterTrial, WayIn, open_cluster_trial};
use plumbline_core::secrets::SecretText;
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use plumbline_sts::{Sts, StsError, eks_token};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asking::{Asker, Failed, read, word};

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "gitVersion")]
    git_version: String,
}

/// What everybody whom the server knows may read.
#[derive(Deserialize)]
struct Api {
    #[expect(dead_code, reason = "that it is there shows who answers")]
    versions: Vec<String>,
}

/// A [`ClusterTest`]. Whatever does not work is a result.
pub(crate) async fn test(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let trial = match open_cluster_trial(deps, task).await? {
        Ok(trial) => trial,
        Err(why) => {
            let failed = ClusterTest { ok: false, detail: Some(why), context: None, server_version: None };
            return Ok(json!(failed));
        }
    };
    let context = Some(trial.context.clone());
    Ok(json!(match try_out(deps, trial).await {
        Ok(version) => ClusterTest { ok: true, detail: None, context, server_version: Some(version) },
        Err(Failed(why)) => ClusterTest { ok: false, detail: Some(why), context, server_version: None },
    }))
}

async fn try_out(deps: &Deps, trial: ClusterTrial) -> Result<String, Failed> {
    let (authorization, own) = match trial.way_in {
        WayIn::Header(header) => (Some(header), None),
        WayIn::Certificate(own) => (None, Some(own)),
        WayIn::Eks { cluster_name, aws } => (Some(token_of(deps, &cluster_name, &aws).await?), None),
    };
    let trust = Trust {
        authorities: trial.authorities,
        is_unchecked: trial.is_unchecked,
        server_name: trial.server_name,
        own,
    };
    let asker = Asker::new(deps);
    let ask = async |part: &str| {
        let url = below(&trial.server_url, &[part])?;
        let mut question = Question::get(&url).trusting(trust.clone());
        if let Some(header) = &authorization {
            question = question.header("authorization", header.clone());
        }
        asker.ask(question).await
    };
    // Anybody may ask most servers for their version, so it shows nothing about the user.
    let answer = ask("api").await?;
    match answer.status.as_u16() {
        200 => drop(read::<Api>("the server", &answer)?),
        401 => return Err(Failed("the server does not know the user of the kubeconfig (401)".into())),
        403 => return Err(Failed("the server lets the user of the kubeconfig see nothing (403)".into())),
        status => return Err(Failed(format!("the server answers {status} to what every API server knows"))),
    }
    let answer = ask("version").await?;
    let version: Version = read("the server", &answer)?;
    let text = version.git_version;
    // `v1.33.1+k3s1`
    let plain: String = text.chars().take_while(|c| *c != '+').collect();
    word(&plain).map(str::to_owned).ok_or_else(|| Failed("what the server answers cannot be read".into()))
}

/// What opens an EKS cluster, made with the account's own credentials as runs make it.
async fn token_of(deps: &Deps, cluster_name: &str, aws: &AwsTrial) -> Result<SecretText, Failed> {
    let account = |why: &str| Failed(format!("AWS account {}: {why}", aws.account_id));
    let Some(keys) = &aws.keys else {
        return Err(account(
            "it has no keys: executors assume its roles, and only a run shows whether they may",
        ));
    };
    let sts = Sts::new(&aws.region, deps.sts_endpoint.as_deref())
        .map_err(|error| account(&format!("PLUMBLINE_STS_ENDPOINT {error}")))?;
    let now = Utc::now();
    let session;
    let keys = match aws.roles.first() {
        None => keys,
        Some(role) => {
            session = sts.assume(keys, now, role).await.map_err(|error| match error {
                StsError::Refused(why) => account(&format!("{} cannot be assumed: {why}", role.role_arn)),
                StsError::Unavailable(why) => account(&format!("AWS cannot be asked: {why}")),
            })?;
            &session.keys
        }
    };
    Ok(SecretText::new(format!("Bearer {}", eks_token(keys, &aws.region, cluster_name, now))))
}
