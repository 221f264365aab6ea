//! The worker as a Lambda function: an SQS message is a hint, its content is ignored.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use plumbline_runtime::Function;
use plumbline_worker::{InvokedOutbound, handle, launcher};
use serde_json::Value;

// A function has one request at a time: a second thread would only be woken for nothing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    plumbline_runtime::init_logs();
    let deps = plumbline_runtime::deps_from_environment(Function::Worker).await?;
    let launcher = launcher::from_environment().await?;
    let outbound = InvokedOutbound::from_environment().await?;
    run(service_fn(|_event: LambdaEvent<Value>| async {
        handle(&deps, &*launcher, &outbound).await?;
        Ok::<_, Error>(())
    }))
    .await
}
