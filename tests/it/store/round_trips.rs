//! How often a call of the state backend goes to Postgres and back, counted on the wire.

use http::StatusCode;
use plumbline_core::db::{Connect, Db, PgMode};
use plumbline_core::protocol::RunPhase;
use plumbline_core::sessions;
use plumbline_core::tfstates::LockInfo;
use plumbline_core::tfstates::service::{self, InlineWrite};
use plumbline_tests::wire::Wire;
use serde_json::json;

use super::state_client::{Backend, lock_info, state};
use crate::plane::ADMIN_EMAIL;

/// The budget of the design, the look-up of the caller included.
const ROUND_TRIPS_MAX: usize = 3;

/// Puts a counter between the plane and its database.
async fn count(backend: &mut Backend) -> Wire {
    let wire = Wire::before(&backend.plane.database_url).await.unwrap();
    let connect = Connect { url: wire.url.clone(), pool_size: 1, mode: PgMode::Direct };
    backend.plane.share(Db::new(&connect).unwrap());
    wire
}

#[tokio::test]
async fn a_call_of_the_state_backend_takes_at_most_three_round_trips() {
    let mut backend = Backend::start().await;
    let counter = count(&mut backend).await;
    // The first cycle signs in and prepares statements, which a function does once; the second one is a busy day's.
    for serial in 1..=2 {
        let first = serial == 1;
        let lock = format!("l-{serial}");
        counter.take();
        let check = |name: &str, status: StatusCode, expected: StatusCode| {
            assert_eq!(status, expected, "{name}");
            let trips = counter.take();
            assert!(trips > 0, "{name} was not counted");
            assert!(first || trips <= ROUND_TRIPS_MAX, "{name} took {trips} round trips");
        };
        check("LOCK", backend.lock(&lock).await.0, StatusCode::OK);
        check("LOCK of a held one", backend.lock("other").await.0, StatusCode::LOCKED);
        let written = backend.write(Some(&lock), &state(serial, "l", "a")).await.0;
        check("POST", written, StatusCode::OK);
        check("GET", backend.read().await.0, StatusCode::OK);
        check("UNLOCK", backend.unlock(&lock).await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn an_executors_state_calls_take_two_round_trips_after_the_look_up_of_the_caller() {
    let mut backend = Backend::start().await;
    let apply = backend.executor(RunPhase::Apply).await;
    let counter = count(&mut backend).await;
    let (deps, workspace) = (backend.plane.deps.clone(), backend.workspace);
    for serial in 1..=2 {
        let lock = format!("l-{serial}");
        let info = LockInfo::parse(lock_info(&lock).as_bytes()).unwrap();
        let body = state(serial, "l", "a").into();
        let write = InlineWrite { lock_id: Some(&lock), content_md5: None, body };
        let mut trips = Vec::new();
        counter.take();
        service::lock(&deps, &apply, workspace, &info).await.unwrap();
        trips.push(counter.take());
        service::read(&deps, &apply, workspace).await.unwrap();
        trips.push(counter.take());
        service::write_inline(&deps, &apply, workspace, &write).await.unwrap();
        trips.push(counter.take());
        service::unlock(&deps, &apply, workspace, &info).await.unwrap();
        trips.push(counter.take());
        assert!(serial == 1 || trips == [2, 1, 2, 2], "{trips:?}");
    }
}

#[tokio::test]
async fn a_caller_is_looked_up_in_one_round_trip_also_after_a_rotation() {
    let mut backend = Backend::start().await;
    let counter = count(&mut backend).await;
    let deps = backend.plane.deps.clone();
    let admin = backend.plane.admin_token().await;
    let look_up = async |token: &str| {
        sessions::service::authenticate(&deps, token, None).await.unwrap();
        counter.take()
    };
    // The statement is prepared once.
    look_up(&admin).await;
    assert_eq!(look_up(&admin).await, 1);
    let (status, ..) = backend.plane.call("POST", "/api/v1/auth/jwt-secrets", &*admin, json!({})).await;
    assert_eq!(status, StatusCode::CREATED);
    let newer = backend.plane.login(ADMIN_EMAIL).await;
    counter.take();
    assert_eq!((look_up(&admin).await, look_up(&newer).await), (1, 1));
}
