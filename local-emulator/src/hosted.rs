//! The functions as programs behind Lambda's runtime API, with the variables that they get on AWS.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use async_trait::async_trait;
use plumbline_core::Deps;
use plumbline_core::adapters::InProcessWaker;
use plumbline_core::db::PgMode;
use plumbline_runtime::{Environment, Function};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::functions::{Functions, executor_environment};
use crate::home::{Home, random_word};
use crate::lambda_host::{FunctionHost, front};
use crate::object_store::{Access, BUCKET, REGION};
use crate::options::Options;
use crate::roles::Roles;
use crate::timers::Work;
use crate::{platform, ports};

/// How long a function that answers requests may take; the gateway gives up at the same time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const WORK_TIMEOUT: Duration = Duration::from_secs(120);

/// Every function's processes, and what they ask of AWS.
pub(crate) struct Hosted {
    hosts: BTreeMap<Function, FunctionHost>,
    platform: JoinHandle<()>,
}

impl Hosted {
    pub(crate) async fn start(
        options: &Options,
        home: &Home,
        roles: &Roles,
        access: &Access,
        deps: &Deps,
        waker: InProcessWaker,
    ) -> anyhow::Result<Self> {
        let listener = ports::listen(0, "platform").await?;
        let platform_url = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
        let shared = shared_variables(options, home, access, deps, &platform_url);
        let mut hosts = BTreeMap::new();
        for function in Function::ALL {
            let name = function.as_str();
            let program = options.programs.join(["plumbline-", name].concat());
            ensure!(program.is_file(), "the function's program {} does not exist", program.display());
            let mut variables = function.keys(&deps.keys).export();
            variables.push(("DATABASE_URL".to_owned(), roles.url(function)));
            let mode = if roles.mode() == PgMode::Pooled { "pooled" } else { "direct" };
            variables.push(("PG_MODE".to_owned(), mode.to_owned()));
            variables.extend(shared.iter().cloned());
            hosts.insert(function, FunctionHost::new(name, program, variables, timeout(function)));
        }
        let platform = platform::serve(listener, waker, hosts[&Function::Outbound].clone());
        Ok(Self { hosts, platform })
    }

    pub(crate) fn functions(&self) -> Functions {
        let front = |function| front(self.hosts[&function].clone());
        Functions {
            api: front(Function::Api),
            tfstate: front(Function::Tfstate),
            signin: front(Function::Signin),
            callback: front(Function::Callback),
        }
    }

    pub(crate) fn work(&self) -> Arc<dyn Work> {
        Arc::new(Invoked {
            worker: self.hosts[&Function::Worker].clone(),
            reconciler: self.hosts[&Function::Reconciler].clone(),
        })
    }

    pub(crate) async fn stop(self) {
        self.platform.abort();
        for function in self.hosts.values() {
            function.stop().await;
        }
    }
}

fn timeout(function: Function) -> Duration {
    match function {
        Function::Api | Function::Tfstate | Function::Signin | Function::Callback => ANSWER_TIMEOUT,
        Function::Worker | Function::Outbound | Function::Reconciler => WORK_TIMEOUT,
    }
}

/// What every function gets. Keys and the database's address are not among it.
fn shared_variables(
    options: &Options,
    home: &Home,
    access: &Access,
    deps: &Deps,
    platform_url: &str,
) -> Vec<(String, String)> {
    let own = [
        ("PLUMBLINE_PUBLIC_URL", deps.public_url.to_string()),
        ("PLUMBLINE_BLOBS", format!("s3://{BUCKET}")),
        ("PLUMBLINE_WAKER", format!("sqs:{platform_url}/wake")),
        ("PLUMBLINE_OUTBOUND_FUNCTION", Function::Outbound.as_str().to_owned()),
        ("PLUMBLINE_ALLOW_PRIVATE_ADDRESSES", "true".to_owned()),
        ("PLUMBLINE_LAUNCHER", "local".to_owned()),
        ("PLUMBLINE_EXECUTOR_PROGRAM", options.programs.join("executor-task").display().to_string()),
        ("PLUMBLINE_EXECUTOR_DIRECTORY", home.path("executors").display().to_string()),
        ("AWS_ENDPOINT_URL_S3", access.url.clone()),
        ("AWS_ENDPOINT_URL_SQS", platform_url.to_owned()),
        ("AWS_ENDPOINT_URL_LAMBDA", platform_url.to_owned()),
        ("AWS_ACCESS_KEY_ID", access.key_id.clone()),
        ("AWS_SECRET_ACCESS_KEY", access.secret.clone()),
        ("AWS_REGION", REGION.to_owned()),
        // Nobody answers at the metadata address here.
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ("PLUMBLINE_LIMIT_BCRYPT_COST", options.limits.bcrypt_cost.to_string()),
        ("PLUMBLINE_LOG", std::env::var("PLUMBLINE_LOG").unwrap_or_else(|_| "info".into())),
    ];
    let mut variables = executor_environment(options);
    variables.extend(plumbline_runtime::overriding(&Environment::of_process()));
    variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
    variables
}

/// The worker and the reconciler as programs.
struct Invoked {
    worker: FunctionHost,
    reconciler: FunctionHost,
}

#[async_trait]
impl Work for Invoked {
    async fn work(&self) -> anyhow::Result<()> {
        let record = json!({
            "messageId": random_word(),
            "receiptHandle": random_word(),
            "body": "wake",
            "attributes": {},
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:wake",
            "awsRegion": REGION,
        });
        let event = serde_json::to_vec(&json!({ "Records": [record] }))?;
        self.worker.invoke(event).await?;
        Ok(())
    }

    async fn sweep(&self) -> anyhow::Result<()> {
        let event = json!({
            "version": "0",
            "id": random_word(),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": "000000000000",
            "time": chrono::Utc::now().to_rfc3339(),
            "region": REGION,
            "resources": [],
            "detail": {},
        });
        self.reconciler.invoke(serde_json::to_vec(&event)?).await?;
        Ok(())
    }
}
