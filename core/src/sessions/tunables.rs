//! What superadmins have set about sign-in. Read at each sign-in and refresh, beside what is read there anyway.

use std::time::Duration;

use crate::Deps;
use crate::config::{registry, service as config};
use crate::db::{DbError, Query};
use crate::oidc_logins::settings::Mode;

/// The tunables of sessions, as they are now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tunables {
    /// Life of an access token.
    pub access_token_age: Duration,
    /// Life of a refresh token.
    pub refresh_token_age: Duration,
    /// Cost of bcrypt.
    pub bcrypt_cost: u32,
    /// How people sign in.
    pub mode: Mode,
}

impl Tunables {
    /// One round trip.
    pub(super) async fn find(query: &impl Query, deps: &Deps) -> Result<Self, DbError> {
        let (access, refresh, cost) = (
            &registry::ACCESS_TOKEN_EXPIRE_MINUTES,
            &registry::REFRESH_TOKEN_EXPIRE_HOURS,
            &registry::BCRYPT_COST,
        );
        let values = config::platform(query, &[access, refresh, cost, &registry::AUTH_PROVIDER]).await?;
        Ok(Self {
            access_token_age: values.duration(access, &deps.limits),
            refresh_token_age: values.duration(refresh, &deps.limits),
            bcrypt_cost: u32::try_from(values.integer(cost, &deps.limits)).unwrap_or(deps.limits.bcrypt_cost),
            mode: Mode::of(&values, deps),
        })
    }
}
