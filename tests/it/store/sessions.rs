//! Sessions below the API.

use std::time::Duration;

use plumbline_core::db::Query as _;
use plumbline_core::sessions::{self, SessionError};

use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane};

#[tokio::test]
async fn no_token_is_stored_as_it_is() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let pair = sessions::service::login(&plane.deps, ADMIN_EMAIL, PASSWORD, None).await.expect("signed in");
    let conn = plane.db().conn().await.expect("a connection");
    let row = conn
        .query_one("SELECT string_agg(sessions::text, '') AS all FROM sessions", &[])
        .await
        .expect("sessions");
    let stored: String = row.get("all");
    let hex: String = pair.refresh_token.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!stored.contains(&pair.refresh_token) && !stored.contains(&hex));
    assert!(!format!("{pair:?}").contains(&pair.refresh_token));
}

#[tokio::test]
async fn attempts_from_one_address_are_throttled_across_accounts() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let try_from = async |n: i32, address| {
        let email = format!("user{n}@plumbline.test");
        sessions::service::login(&plane.deps, &email, "wrong password", Some(address)).await
    };
    for n in 0..plane.deps.limits.logins_per_minute {
        assert!(matches!(try_from(n, "192.0.2.1").await, Err(SessionError::WrongCredentials)));
    }
    assert!(matches!(try_from(99, "192.0.2.1").await, Err(SessionError::Throttled { .. })));
    assert!(matches!(try_from(99, "192.0.2.2").await, Err(SessionError::WrongCredentials)));
}

#[tokio::test]
async fn sessions_and_attempts_are_forgotten_when_they_are_long_over() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    assert_eq!(sessions::service::forget(&plane.deps).await.expect("swept"), 0);
    plane.advance(Duration::from_secs(9 * 24 * 3600)).await;
    assert_eq!(sessions::service::forget(&plane.deps).await.expect("swept"), 2);
}
