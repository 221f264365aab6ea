//! Who whoever meets a lock is told about.

use http::StatusCode;
use plumbline_core::protocol::RunPhase;
use plumbline_core::tfstates::LockInfo;
use plumbline_core::tfstates::service::{self, StateActor};
use plumbline_runtime::Function;
use serde_json::Value;

use super::state_client::{Backend, lock_info};

#[tokio::test]
async fn whoever_meets_the_lock_of_a_run_is_told_which_run_holds_it_and_where_to_look() {
    let backend = Backend::start().await;
    let apply = backend.executor(RunPhase::Apply).await;
    let StateActor::Executor { run_id, .. } = apply else { unreachable!() };
    let deps = backend.plane.as_function(Function::Callback);
    let info = LockInfo::parse(lock_info("l").as_bytes()).unwrap();
    for _ in 0..2 {
        service::lock(&deps, &apply, backend.workspace, &info).await.unwrap();
    }
    let (status, _, holder) = backend.lock("mine").await;
    assert_eq!(status, StatusCode::LOCKED);
    let holder: Value = serde_json::from_slice(&holder).unwrap();
    assert_eq!(
        (&holder["ID"], &holder["Operation"]),
        (&"l".into(), &"OperationTypeApply".into()),
        "{holder}"
    );
    assert!(holder["Who"].as_str().unwrap().contains(&run_id.to_string()), "{holder}");
    let url = format!("{}/api/v1/runs/{run_id}", backend.plane.deps.public_url);
    assert!(holder["Info"].as_str().unwrap().contains(&url), "{holder}");
    service::unlock(&deps, &apply, backend.workspace, &info).await.unwrap();
}

#[tokio::test]
async fn a_persons_own_words_about_their_lock_are_kept_byte_for_byte() {
    let backend = Backend::start().await;
    let info = "{ \"Who\" : \"me\",\"ID\":\"l\",  \"Custom\": 1.50 }";
    assert_eq!(backend.send_as(&backend.token, "LOCK", &backend.path(), info).await.0, StatusCode::OK);
    let (status, _, holder) = backend.lock("other").await;
    assert_eq!((status, holder.as_ref()), (StatusCode::LOCKED, info.as_bytes()));
}
