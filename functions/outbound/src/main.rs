//! The function on AWS: one invocation, one task.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use plumbline_outbound::{TaskAnswer, TaskReference, invoke};
use plumbline_runtime::Function;

// A function has one request at a time: a second thread would only be woken for nothing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    plumbline_runtime::init_logs();
    let deps = plumbline_runtime::deps_from_environment(Function::Outbound)
        .await
        .map_err(|error| error.to_string())?;
    let deps = &deps;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<TaskReference>| -> Result<TaskAnswer, Error> {
        Ok(invoke(deps, event.payload).await?)
    }))
    .await
}
