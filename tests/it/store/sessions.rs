//! Sessions below the API.

use std::time::Duration;

use plumbline_core::db::Query as _;
use plumbline_core::sessions::{self, Origin, SessionError};

use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane};

fn from(address: &str) -> Origin {
    Origin::new(Some(address), None)
}

#[tokio::test]
async fn no_token_is_stored_as_it_is() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let pair = sessions::service::login(&plane.deps, ADMIN_EMAIL, PASSWORD, &Origin::default())
        .await
        .expect("signed in");
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
        sessions::service::login(&plane.deps, &email, "wrong password", &from(address)).await
    };
    for n in 0..plane.deps.limits.logins_per_minute {
        assert!(matches!(try_from(n, "192.0.2.1").await, Err(SessionError::WrongCredentials)));
    }
    assert!(matches!(try_from(99, "192.0.2.1").await, Err(SessionError::Throttled { .. })));
    assert!(matches!(try_from(99, "192.0.2.2").await, Err(SessionError::WrongCredentials)));
}

async fn attempt(plane: &TestPlane, password: &str, address: &str) -> Result<(), SessionError> {
    sessions::service::login(&plane.deps, ADMIN_EMAIL, password, &from(address)).await.map(|_| ())
}

/// Guesses until there is no guess left, and says how many there were.
async fn guess(plane: &TestPlane, address: &str) -> i32 {
    let mut guesses = 0;
    while let Err(SessionError::WrongCredentials) = attempt(plane, "a wrong password", address).await {
        guesses += 1;
        assert!(guesses < 1000, "nothing stops {address}");
    }
    guesses
}

#[tokio::test]
async fn a_stranger_cannot_keep_the_owner_out() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let limit = plane.deps.limits.logins_per_minute;
    let home = "192.0.2.1";
    attempt(&plane, PASSWORD, home).await.expect("the owner's address is known from now on");

    // As many guesses as one address gets, and then none with the right password either.
    assert_eq!(guess(&plane, "198.51.100.7").await, limit);
    assert!(matches!(attempt(&plane, PASSWORD, "198.51.100.7").await, Err(SessionError::Throttled { .. })));
    attempt(&plane, PASSWORD, home).await.expect("at home nothing was counted");
    // Neither where the owner has never been: a single address uses up a tenth of what the account takes.
    attempt(&plane, PASSWORD, "203.0.113.9").await.expect("on the way");
}

#[tokio::test]
async fn a_crowd_of_strangers_gets_few_guesses_and_keeps_the_owner_out_of_unknown_networks_only() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let home = "2001:db8:1:2::7";
    attempt(&plane, PASSWORD, home).await.expect("signed in");
    let mut guesses = 0;
    for n in 0..15 {
        guesses += guess(&plane, &format!("198.51.100.{n}")).await;
    }
    assert_eq!(guesses, plane.deps.limits.account_logins_per_minute, "over all of them");
    assert!(matches!(attempt(&plane, PASSWORD, "203.0.113.9").await, Err(SessionError::Throttled { .. })));
    attempt(&plane, PASSWORD, home).await.expect("at home");
    attempt(&plane, PASSWORD, "2001:db8:1:2:ffff::1").await.expect("at home with another address of it");
    let other = "somebody@plumbline.test";
    let elsewhere =
        sessions::service::login(&plane.deps, other, "a wrong password", &from("203.0.113.9")).await;
    assert!(matches!(elsewhere, Err(SessionError::WrongCredentials)), "another account is not concerned");
    plane.advance(Duration::from_secs(61)).await;
    attempt(&plane, PASSWORD, "203.0.113.9").await.expect("a minute later");
}

#[tokio::test]
async fn one_customer_with_65536_networks_is_no_crowd() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let per_network = plane.deps.limits.logins_per_minute;
    let mut guesses = 0;
    for n in 0..12 {
        guesses += guess(&plane, &format!("2001:db8:7:{n:x}::1")).await;
    }
    assert_eq!(guesses, per_network * 5, "over all of the /48");
    attempt(&plane, PASSWORD, "203.0.113.9").await.expect("the account is not used up");
    attempt(&plane, PASSWORD, "2001:db8:8::1").await.expect("nor another /48");
}

#[tokio::test]
async fn what_was_typed_is_kept_only_if_it_is_somebodys_address() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    for typed in ["my.secret@phrase", "correct horse battery"] {
        let refused =
            sessions::service::login(&plane.deps, typed, "a wrong password", &from("192.0.2.1")).await;
        assert!(matches!(refused, Err(SessionError::WrongCredentials)));
        let rows: String = plane.every_row().await.into_values().collect();
        assert!(rows.contains("session.login_failed") && !rows.contains(typed), "{typed}");
    }
    attempt(&plane, "a wrong password", "192.0.2.1").await.unwrap_err();
    let entries = plane.every_row().await.remove("audit_entries").expect("the table");
    assert!(
        entries.lines().any(|row| row.contains("login_failed") && row.contains(ADMIN_EMAIL)),
        "{entries}"
    );
}

#[tokio::test]
async fn a_hash_gets_the_cost_of_today_when_its_owner_signs_in() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let stored = async || {
        let conn = plane.db().conn().await.expect("a connection");
        let row = conn.query_one("SELECT password_hash FROM users", &[]).await.expect("the user");
        row.get::<_, String>(0)
    };
    let first = stored().await;
    assert!(first.starts_with("$2b$04$"), "{first}");
    let dearer = plumbline_core::limits::Limits { bcrypt_cost: 5, ..(*plane.deps.limits).clone() };
    let deps = plumbline_core::Deps { limits: dearer.into(), ..plane.deps.clone() };
    let sign_in =
        async |password| sessions::service::login(&deps, ADMIN_EMAIL, password, &Origin::default()).await;
    sign_in("a wrong password").await.unwrap_err();
    assert_eq!(stored().await, first, "nobody knows what to make it of");
    // Several at once: whoever checked the old hash looks again.
    let all = futures::future::join_all((0..6).map(|_| sign_in(PASSWORD))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert!(stored().await.starts_with("$2b$05$"));
    sign_in(PASSWORD).await.expect("it is the same password");
    sign_in("a wrong password").await.unwrap_err();
}

#[tokio::test]
async fn a_neighbour_who_guesses_at_other_accounts_does_not_keep_the_owner_out() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let office = "192.0.2.1";
    attempt(&plane, PASSWORD, office).await.expect("signed in");
    for n in 0..=plane.deps.limits.logins_per_minute {
        let email = format!("user{n}@plumbline.test");
        let refused = sessions::service::login(&plane.deps, &email, "wrong password", &from(office)).await;
        assert!(refused.is_err());
    }
    attempt(&plane, PASSWORD, office).await.expect("counted apart");
    assert_eq!(guess(&plane, office).await, plane.deps.limits.logins_per_minute, "and limited, too");
}

#[tokio::test]
async fn what_was_right_is_not_counted_and_a_burst_gains_nothing() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    for _ in 0..plane.deps.limits.logins_per_minute * 3 {
        attempt(&plane, PASSWORD, "192.0.2.1").await.expect("an office at nine");
    }
    let burst = (0..40).map(|_| attempt(&plane, "a wrong password", "198.51.100.7"));
    let answers = futures::future::join_all(burst).await;
    let looked_at = answers.iter().filter(|answer| matches!(answer, Err(SessionError::WrongCredentials)));
    assert_eq!(looked_at.count(), usize::try_from(plane.deps.limits.logins_per_minute).unwrap());
}

#[tokio::test]
async fn a_network_is_forgotten_after_a_month() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    attempt(&plane, PASSWORD, "192.0.2.1").await.expect("signed in");
    plane.advance(Duration::from_secs(31 * 24 * 3600)).await;
    for n in 0..10 {
        guess(&plane, &format!("198.51.100.{n}")).await;
    }
    assert!(matches!(attempt(&plane, PASSWORD, "192.0.2.1").await, Err(SessionError::Throttled { .. })));
}

#[tokio::test]
async fn sessions_and_attempts_are_forgotten_when_they_are_long_over() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    assert_eq!(sessions::service::forget(&plane.deps).await.expect("swept"), 0);
    // As long as its address is known.
    plane.advance(Duration::from_secs(29 * 24 * 3600)).await;
    assert_eq!(sessions::service::forget(&plane.deps).await.expect("swept"), 1, "the attempt");
    plane.advance(Duration::from_secs(3 * 24 * 3600)).await;
    assert_eq!(sessions::service::forget(&plane.deps).await.expect("swept"), 1, "the session");
}
