//! Hashing of passwords, off the async threads and never more at once than there are cores: sign-ins wait for each
//! other, other requests do not wait for them.

use std::sync::LazyLock;

use tokio::sync::Semaphore;

use crate::secrets::SecretText;

static CORES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// Longest password that bcrypt reads whole, in bytes.
const PASSWORD_BYTES_MAX: usize = 72;

/// The hash of a new password.
pub async fn hash(password: String, cost: u32) -> Result<String, bcrypt::BcryptError> {
    let password = SecretText::new(password);
    in_turn(move || bcrypt::non_truncating_hash(password.expose(), cost)).await
}

/// Whether the password is the one that was hashed. Without a hash, or with one that is not bcrypt's, the answer is
/// no and takes as long: nobody learns from the time which e-mails exist. A hash of a lower cost than new ones get takes
/// as long as well; only one of a higher cost, from before the cost was lowered, takes longer until its owner signs in.
pub async fn verify(password: String, hash: Option<String>, cost: u32) -> bool {
    let password = SecretText::new(password);
    in_turn(move || {
        let usable = password.len() <= PASSWORD_BYTES_MAX && !password.contains('\0');
        let checked = hash.filter(|_| usable).and_then(|hash| {
            let same = bcrypt::verify(password.expose(), &hash).ok()?;
            Some((same, cost_of(&hash)?))
        });
        let (same, done) = checked.map_or((false, None), |(same, done)| (same, Some(done)));
        for cost in missing_work(done, cost) {
            let _ = bcrypt::verify("", &nobody(cost));
        }
        same
    })
    .await
}

/// Whether a hash should be made anew: at the cost that hashes have now.
pub(crate) fn is_outdated(hash: &str, cost: u32) -> bool {
    cost_of(hash) != Some(cost)
}

fn cost_of(hash: &str) -> Option<u32> {
    hash.split('$').nth(2)?.parse().ok()
}

/// The costs of the checks that make one at the `done` cost as long as one at the wanted: each step doubles the work, so
/// that of all costs from the one up to below the other is what lies between them.
fn missing_work(done: Option<u32>, wanted: u32) -> std::ops::Range<u32> {
    match done {
        None => wanted..wanted + 1,
        Some(done) => done..wanted.max(done),
    }
}

/// A well-formed hash of no password.
fn nobody(cost: u32) -> String {
    format!("$2b${cost:02}${}", ".".repeat(53))
}

async fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let turn = CORES.acquire().await.expect("the semaphore is never closed");
    let done = tokio::task::spawn_blocking(work).await.expect("bcrypt does not panic");
    drop(turn);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checking_nobodys_password_costs_a_whole_hash() {
        // Ok, not Err: a malformed hash would be refused before any work is done.
        assert!(matches!(bcrypt::verify("", &nobody(4)), Ok(false)));
    }

    #[test]
    fn a_check_is_as_much_work_whatever_the_cost_of_the_hash_was() {
        let work = |cost: u32| 1_u64 << cost;
        for wanted in 4..=15 {
            for done in (4..=wanted).map(Some).chain([None]) {
                let all = done.map_or(0, work) + missing_work(done, wanted).map(work).sum::<u64>();
                assert_eq!(all, work(wanted), "{done:?} {wanted}");
            }
        }
        assert!(missing_work(Some(12), 10).is_empty());
    }

    #[tokio::test]
    async fn only_the_hashed_password_is_right() {
        let hash = hash("correct horse battery".into(), 4).await.expect("short enough");
        assert!(verify("correct horse battery".into(), Some(hash.clone()), 4).await);
        for (wrong, hash) in [
            ("correct horse batter", Some(hash.clone())),
            ("", Some(hash.clone())),
            ("correct horse battery", None),
            ("correct horse battery", Some("!oidc".into())),
            ("correct horse battery\0x", Some(hash.clone())),
        ] {
            assert!(!verify(wrong.into(), hash, 4).await, "{wrong}");
        }
    }
}
