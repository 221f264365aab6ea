//! How many guesses anybody gets, without giving strangers the power to keep an account's owner out.
//!
//! A limit per account alone is a weapon: whoever knows an e-mail address fails ten times a minute, and its owner cannot
//! sign in any more. So an attempt is counted under what it can be blamed on:
//!
//! - **From a network from which the account was signed in to lately**, it counts against this account and this network
//!   together, and against nothing else. Strangers cannot use this allowance up, neither by guessing at the account from
//!   elsewhere nor by guessing at other accounts from next door. Only somebody behind the owner's own address who guesses
//!   at the owner's own account can.
//! - **From anywhere else** it counts against the network first, whichever account it is for: `logins_per_minute`. Only
//!   an attempt that the network still had counts against the account, which takes many times as much:
//!   `account_logins_per_minute`. One network can therefore never shut an account, not even to somebody who signs in for
//!   the first time and has no known network yet; many networks together can, and then only to unknown networks. Against
//!   them the account's limit is what keeps a crowd from guessing without end.
//! - **Where no address is known** one client cannot be told from another, and the account alone is counted.
//!
//! An attempt is counted before the password is looked at, so that a burst at once gains nothing, and taken back when
//! it was right: an office whose people all sign in at nine is no attack. The answer to a refused attempt does not
//! depend on whether the account exists, nor on whether the password was right. What remains: somebody at the owner's
//! own address can tell that the account was used from there.
//!
//! An IPv6 network is a /64, all of whose addresses one line has. Some customers have a /48, which is as many networks as
//! the old Internet has machines in a /16: all of it together gets five times what one network gets, so that nobody is a
//! crowd alone.

use std::time::Duration;

use super::SessionError;
use super::model::Origin;
use super::{rules, store};
use crate::Deps;
use crate::db::{DbError, Query};
use crate::digest::Sha256Digest;
use crate::ids::UserId;

/// How long a network stays known after a sign-in from there.
pub(super) const KNOWN_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How many networks' worth of attempts a /48 has.
const NETWORKS_PER_SITE: i32 = 5;

/// An attempt that was admitted, and what it was counted under.
#[derive(Debug)]
#[must_use = "what was no guess is forgiven"]
pub struct Attempt(Vec<String>);

impl Attempt {
    /// Takes the attempt back: it was right, or no guess.
    pub async fn forgive(&self, query: &impl Query) -> Result<(), DbError> {
        store::forgive(query, &self.0).await
    }
}

/// Counts a sign-in with a password.
pub(super) async fn admit_login(
    deps: &Deps,
    email: Option<&str>,
    origin: &Origin,
) -> Result<Attempt, SessionError> {
    let network = origin.address.map(rules::network);
    // A digest, because what people type into the e-mail field may be long, or their password.
    let account = email.map(|email| format!("account:{}", Sha256Digest::of(email.as_bytes())));
    let limits = &deps.limits;
    let (per_network, per_account) = (limits.logins_per_minute, limits.account_logins_per_minute);
    let conn = deps.db.conn().await?;
    match (account, network) {
        (Some(account), Some(network)) => {
            let is_known = match email {
                Some(email) => store::is_known(&conn, email, &network, KNOWN_AGE).await?,
                None => false,
            };
            if is_known {
                return count(&conn, [format!("{account}@{network}")], per_network).await;
            }
            let Attempt(mut keys) = count_network(&conn, origin, per_network).await?;
            let Attempt(more) = count(&conn, [account], per_account).await?;
            keys.extend(more);
            Ok(Attempt(keys))
        }
        (None, Some(_)) => count_network(&conn, origin, per_network).await,
        (Some(account), None) => count(&conn, [format!("{account}@nowhere")], per_network).await,
        (None, None) => Ok(Attempt(Vec::new())),
    }
}

/// Counts an attempt to use an invitation.
pub async fn admit_invite(deps: &Deps, origin: &Origin) -> Result<Attempt, SessionError> {
    // Nobody guesses 32 random bytes; this keeps somebody from making us look for ever.
    admit_from(deps, "invite", origin).await
}

/// Counts an attempt to sign in as a job of a CI system.
pub async fn admit_ci(deps: &Deps, origin: &Origin) -> Result<Attempt, SessionError> {
    // Nobody guesses a signature; this keeps somebody from making us check for ever.
    admit_from(deps, "ci", origin).await
}

async fn admit_from(deps: &Deps, what: &str, origin: &Origin) -> Result<Attempt, SessionError> {
    let network = origin.address.map_or_else(|| "nowhere".to_owned(), rules::network);
    count(&deps.db.conn().await?, [format!("{what}:{network}")], deps.limits.logins_per_minute).await
}

/// Counts a return from the identity provider. Behind one address many may come back at once, and each that was right
/// is taken back.
pub async fn admit_return(deps: &Deps, origin: &Origin) -> Result<Attempt, SessionError> {
    let network = origin.address.map_or_else(|| "nowhere".to_owned(), rules::network);
    count(&deps.db.conn().await?, [format!("oidc:{network}")], deps.limits.logins_per_minute).await
}

/// Counts an attempt to trade a one-time code.
pub async fn admit_code(deps: &Deps, origin: &Origin) -> Result<Attempt, SessionError> {
    // Nobody guesses 32 random bytes; this keeps somebody from making us look for ever.
    let network = origin.address.map_or_else(|| "nowhere".to_owned(), rules::network);
    count(&deps.db.conn().await?, [format!("code:{network}")], deps.limits.logins_per_minute).await
}

/// Counts an attempt to name the password of the account that one is signed in to.
pub async fn admit_own_password(deps: &Deps, user: UserId) -> Result<Attempt, SessionError> {
    count(&deps.db.conn().await?, [format!("password:{user}")], deps.limits.logins_per_minute).await
}

/// Counts under the network of an address, then under what it is a part of.
async fn count_network(
    query: &impl Query,
    origin: &Origin,
    per_network: i32,
) -> Result<Attempt, SessionError> {
    let mut keys = Vec::new();
    if let Some(address) = origin.address {
        let Attempt(own) =
            count(query, [format!("network:{}", rules::network(address))], per_network).await?;
        keys.extend(own);
        if let Some(site) = rules::site(address) {
            let per_site = per_network.saturating_mul(NETWORKS_PER_SITE);
            let Attempt(all) = count(query, [format!("network:{site}")], per_site).await?;
            keys.extend(all);
        }
    }
    Ok(Attempt(keys))
}

async fn count<const N: usize>(
    query: &impl Query,
    keys: [String; N],
    per_minute: i32,
) -> Result<Attempt, SessionError> {
    let counts = store::count_attempt(query, &keys).await?;
    let wait = counts
        .into_iter()
        .filter(|(attempts, _)| *attempts > per_minute)
        .map(|(_, seconds)| u64::try_from(seconds).unwrap_or(0).max(1))
        .max();
    match wait {
        Some(retry_after_seconds) => Err(SessionError::Throttled { retry_after_seconds }),
        None => Ok(Attempt(keys.into())),
    }
}
