//! The reconciler as a Lambda function, invoked by a schedule.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use plumbline_runtime::Function;
use plumbline_worker::{InvokedOutbound, launcher};
use serde_json::Value;

// A function has one request at a time: a second thread would only be woken for nothing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    plumbline_runtime::init_logs();
    let deps = plumbline_runtime::deps_from_environment(Function::Reconciler).await?;
    let launcher = launcher::from_environment().await?;
    let outbound = InvokedOutbound::from_environment().await?;
    run(service_fn(|_event: LambdaEvent<Value>| async {
        let done = plumbline_reconciler::handle(&deps, &*launcher, &outbound).await;
        let failed: Vec<&str> =
            done.sweeps.iter().filter(|sweep| sweep.outcome.is_err()).map(|sweep| sweep.name).collect();
        // A failed invocation is what the alarm counts.
        if failed.is_empty() && done.worked.is_ok() {
            Ok(())
        } else {
            Err(Error::from(["these failed: ", &failed.join(", ")].concat()))
        }
    }))
    .await
}
