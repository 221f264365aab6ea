//! The Lambda that a deploy invokes before any function of the new version serves.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

// A function has one request at a time: a second thread would only be woken for nothing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    plumbline_runtime::init_logs();
    let db = plumbline_runtime::database_from_environment()?;
    lambda_runtime::run(service_fn(|_event: LambdaEvent<Value>| async {
        let report = plumbline_migrate::handle(&db).await?;
        let key_ids = plumbline_runtime::Environment::of_process();
        plumbline_migrate::check_roots(&db, key_ids.find(plumbline_migrate::ROOT_KEY_IDS)).await?;
        Ok::<_, Error>(serde_json::to_value(report)?)
    }))
    .await
}
