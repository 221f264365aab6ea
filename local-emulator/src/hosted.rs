//! The functions as programs behind Lambda's runtime API, with the variables that they get on AWS.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use async_trait::async_trait;
use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse as _;
use plumbline_core::Deps;
use plumbline_core::adapters::InProcessWaker;
use plumbline_core::ports::Waker as _;
use plumbline_core::secrets::Domain;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::functions::{Functions, executor_environment};
use crate::home::{Home, random_word};
use crate::lambda_host::{FunctionHost, front};
use crate::object_store::{Access, BUCKET, REGION};
use crate::options::{Options, Wakes};
use crate::ports;
use crate::timers::Work;

/// How long a function that answers requests may take; the gateway gives up at the same time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const WORK_TIMEOUT: Duration = Duration::from_secs(120);

/// Every function's processes, and the queue that wakes the worker.
pub(crate) struct Hosted {
    api: FunctionHost,
    tfstate: FunctionHost,
    callback: FunctionHost,
    worker: FunctionHost,
    reconciler: FunctionHost,
    queue: JoinHandle<()>,
}

impl Hosted {
    pub(crate) async fn start(
        options: &Options,
        home: &Home,
        database_url: &str,
        access: &Access,
        deps: &Deps,
        waker: InProcessWaker,
    ) -> anyhow::Result<Self> {
        let (queue_url, queue) = serve_queue(waker, options.wakes).await?;
        let mut variables = deps.keys.export(&Domain::ALL);
        variables.extend(executor_environment(options));
        let own = [
            ("DATABASE_URL", database_url.to_owned()),
            ("PLUMBLINE_PUBLIC_URL", deps.public_url.to_string()),
            ("PLUMBLINE_BLOBS", format!("s3://{BUCKET}")),
            ("PLUMBLINE_WAKER", format!("sqs:{queue_url}/wake")),
            ("PLUMBLINE_ALLOW_PRIVATE_ADDRESSES", "true".to_owned()),
            ("PLUMBLINE_LAUNCHER", "local".to_owned()),
            ("PLUMBLINE_EXECUTOR_PROGRAM", options.programs.join("executor-task").display().to_string()),
            ("PLUMBLINE_EXECUTOR_DIRECTORY", home.path("executors").display().to_string()),
            ("AWS_ENDPOINT_URL_S3", access.url.clone()),
            ("AWS_ENDPOINT_URL_SQS", queue_url),
            ("AWS_ACCESS_KEY_ID", access.key_id.clone()),
            ("AWS_SECRET_ACCESS_KEY", access.secret.clone()),
            ("AWS_REGION", REGION.to_owned()),
            // Nobody answers at the metadata address here.
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ("PLUMBLINE_LIMIT_BCRYPT_COST", options.limits.bcrypt_cost.to_string()),
            ("PLUMBLINE_LOG", std::env::var("PLUMBLINE_LOG").unwrap_or_else(|_| "info".into())),
        ];
        variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let host = |name: &'static str, program: &str, timeout: Duration| -> anyhow::Result<FunctionHost> {
            let program = options.programs.join(program);
            ensure!(program.is_file(), "the function's program {} does not exist", program.display());
            Ok(FunctionHost::new(name, program, variables.clone(), timeout))
        };
        Ok(Self {
            api: host("api", "plumbline-api", ANSWER_TIMEOUT)?,
            tfstate: host("tfstate", "plumbline-tfstate", ANSWER_TIMEOUT)?,
            callback: host("callback", "plumbline-callback", ANSWER_TIMEOUT)?,
            worker: host("worker", "plumbline-worker", WORK_TIMEOUT)?,
            reconciler: host("reconciler", "plumbline-reconciler", WORK_TIMEOUT)?,
            queue,
        })
    }

    pub(crate) fn functions(&self) -> Functions {
        Functions {
            api: front(self.api.clone()),
            tfstate: front(self.tfstate.clone()),
            callback: front(self.callback.clone()),
        }
    }

    pub(crate) fn work(&self) -> Arc<dyn Work> {
        Arc::new(Invoked { worker: self.worker.clone(), reconciler: self.reconciler.clone() })
    }

    pub(crate) async fn stop(self) {
        self.queue.abort();
        for function in [self.worker, self.reconciler, self.api, self.tfstate, self.callback] {
            function.stop().await;
        }
    }
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
            "body": "{}",
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

/// The one call of SQS that functions make: a message is a wake-up, whatever it says.
async fn serve_queue(waker: InProcessWaker, wakes: Wakes) -> anyhow::Result<(String, JoinHandle<()>)> {
    let listener = ports::listen(0, "queue").await?;
    let url = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
    let router = Router::new().fallback(receive).with_state((waker, wakes));
    let server = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(error = %error, "the queue ended");
        }
    });
    Ok((url, server))
}

async fn receive(
    State((waker, wakes)): State<(InProcessWaker, Wakes)>,
    axum::Json(message): axum::Json<serde_json::Value>,
) -> axum::response::Response {
    let delay = message.get("DelaySeconds").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if wakes != Wakes::Never {
        waker.wake(Duration::from_secs(delay)).await;
    }
    let answer = json!({ "MessageId": random_word(), "MD5OfMessageBody": "" });
    ([("content-type", "application/x-amz-json-1.0")], answer.to_string()).into_response()
}
