//! Who is believed, and in which units they act.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::SessionError;
use super::model::{Bearer, Claims, NamedUnit, Place, Standing};
use crate::access::{Role, Scope};

/// How long the loser of two simultaneous refreshes is taken for a racing program, not for a thief.
pub(super) const REFRESH_RACE: Duration = Duration::from_secs(10);

/// What the header `X-Business-Unit` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested<'a> {
    /// No header.
    Nothing,
    /// `all`.
    All,
    /// One unit.
    Slug(&'a str),
}

impl<'a> Requested<'a> {
    /// Reads the header.
    pub fn parse(header: Option<&'a str>) -> Self {
        match header.map(str::trim) {
            None | Some("") => Self::Nothing,
            Some("all") => Self::All,
            Some(slug) if slug.bytes().all(|b| b.is_ascii_graphic()) => Self::Slug(slug),
            // No unit's; and nothing that the database could not read gets there.
            Some(_) => Self::Slug("?"),
        }
    }

    /// The slug to look up; `all` is never one.
    pub(super) fn slug(self) -> Option<&'a str> {
        match self {
            Self::Nothing => None,
            Self::All => Some("all"),
            Self::Slug(slug) => Some(slug),
        }
    }
}

/// Refuses a token that its session, user or installation has outlived.
pub(super) fn check_standing(claims: &Claims, standing: &Standing) -> Result<(), SessionError> {
    let refuse = |why| Err(SessionError::Unauthenticated(why));
    if claims.exp <= standing.at.timestamp() {
        return refuse("the access token has expired; refresh it or sign in again");
    }
    if claims.epoch != standing.epoch || claims.generation != standing.generation || !standing.session_live {
        return refuse("the session has ended; sign in again");
    }
    if standing.disabled {
        return refuse("this account is disabled");
    }
    Ok(())
}

/// Where the bearer acts, and as what.
pub fn resolve_scope(standing: &Standing, requested: Requested<'_>) -> Result<Place, SessionError> {
    let everywhere = Place { scope: Scope::All, role: Role::Admin, archived: false };
    let within = |unit: NamedUnit, role| Place { scope: Scope::One(unit.id), role, archived: unit.archived };
    if standing.is_superadmin {
        return match (requested, standing.unit) {
            (Requested::Nothing | Requested::All, _) => Ok(everywhere),
            (Requested::Slug(_), Some(unit)) => Ok(within(unit, Role::Admin)),
            (Requested::Slug(_), None) => Err(SessionError::UnitNotFound),
        };
    }
    match (requested, standing.unit) {
        (Requested::All, _) => Err(SessionError::AllForbidden),
        // Said only to members: nobody else learns that there is such a unit.
        (_, Some(NamedUnit { role: Some(_), archived: true, .. })) => Err(SessionError::UnitArchived),
        (_, Some(unit @ NamedUnit { role: Some(role), .. })) => Ok(within(unit, role)),
        (Requested::Slug(_), _) => Err(SessionError::NotAMember),
        (Requested::Nothing, _) => Err(SessionError::NoMemberships),
    }
}

impl Bearer {
    /// Refuses somebody who must change their password first.
    pub(super) fn require_settled(&self) -> Result<(), SessionError> {
        if self.must_change_password { Err(SessionError::PasswordChangeRequired) } else { Ok(()) }
    }
}

/// The network that an address stands for when attempts are counted: one machine of the old Internet, one line of the new
/// one, which has a whole /64 to send from.
pub(super) fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("{address}/32"),
        IpAddr::V6(address) => prefix(address, 64),
    }
}

/// The network that a customer of the new Internet may have as a whole, with 65,536 lines in it.
pub(super) fn site(address: IpAddr) -> Option<String> {
    match address.to_canonical() {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(prefix(address, 48)),
    }
}

fn prefix(address: Ipv6Addr, bits: u32) -> String {
    let prefix = u128::from(address) & (u128::MAX << (128 - bits));
    format!("{}/{bits}", Ipv6Addr::from(prefix))
}

/// What a presented refresh token leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefreshVerdict {
    /// Give the next pair.
    Rotate,
    /// Somebody else has just done that with the same token.
    Raced,
    /// An old token: end the session.
    Reused,
    /// The session is over anyway.
    Over,
}

/// The session as its locked row says.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionFacts {
    pub live: bool,
    pub current: bool,
    pub sequence: i32,
    pub refreshed_at: DateTime<Utc>,
    pub at: DateTime<Utc>,
}

/// Judges a genuine refresh token with the given sequence.
pub(super) fn judge_refresh(sequence: i32, session: SessionFacts) -> RefreshVerdict {
    let just_now =
        session.at - session.refreshed_at < chrono::TimeDelta::from_std(REFRESH_RACE).unwrap_or_default();
    if !session.live {
        RefreshVerdict::Over
    } else if session.current && sequence == session.sequence {
        RefreshVerdict::Rotate
    } else if sequence == session.sequence - 1 && just_now {
        RefreshVerdict::Raced
    } else {
        RefreshVerdict::Reused
    }
}
