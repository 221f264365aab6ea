//! People whom the identity provider vouches for: found, linked or made, with what their groups give them.
//!
//! The provider is the truth about their name, their e-mail and what groups give; what a person gave here (a membership,
//! being superadmin) stays as it is, whatever the groups say. Nobody is found by an e-mail that the provider does not say
//! is theirs, and nobody who is disabled is found at all.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::provided_store::{self as rows, Known, Mapped};
use super::rules::{self, Power};
use super::service::{MembershipChange, entry, membership_entry};
use super::store;
use crate::access::Actor;
use crate::api_keys;
use crate::audit::{Action, Entry};
use crate::db::{DbError, Tx};
use crate::ids::{BusinessUnitId, IdSource, UserId};
use crate::oidc_logins::{Granted, Identity, Refusal};

const EMAIL_CONSTRAINT: &str = "users_email";
const IDENTITY_CONSTRAINT: &str = "users_oidc";

/// Why somebody is not let in.
#[derive(Debug, thiserror::Error)]
pub enum ProvidedError {
    /// They are not to be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Somebody else did the same at the same moment: the whole transaction is to be tried again.
    #[error("somebody was made at the same moment")]
    Raced,
    /// The database.
    #[error(transparent)]
    Db(DbError),
}

impl From<DbError> for ProvidedError {
    fn from(error: DbError) -> Self {
        if error.is_duplicate_of(EMAIL_CONSTRAINT) || error.is_duplicate_of(IDENTITY_CONSTRAINT) {
            Self::Raced
        } else {
            Self::Db(error)
        }
    }
}

/// Who came in, and what is to be recorded about it: last, in this order.
#[derive(Debug)]
pub struct Admitted {
    /// Who.
    pub id: UserId,
    /// Their e-mail now.
    pub email: String,
    /// The generation that their tokens carry.
    pub generation: i32,
    /// What became of them.
    pub entries: Vec<Entry>,
}

/// Lets somebody in, in the caller's transaction, and brings what we have of them up to date.
pub async fn admit(
    tx: &Tx<'_>,
    ids: IdSource,
    who: &Identity,
    granted: &Granted,
) -> Result<Admitted, ProvidedError> {
    let found = match rows::find_by_identity(tx, &who.issuer, &who.subject).await? {
        Some(known) => Some(known),
        None => match &who.email {
            Some(email) => rows::find_by_email(tx, email).await?,
            None => None,
        },
    };
    let (known, superadmins, mut whole) = match found {
        Some(found) => lock(tx, who, &found).await?,
        None => (make(tx, ids, who).await?, Vec::new(), vec![Whole::new(Action::UserCreate)]),
    };
    let email = refresh(tx, who, &known, &superadmins, granted, &mut whole).await?;
    let memberships = map(tx, known.id, granted).await?;
    let generation = known.generation;
    let mut entries: Vec<Entry> = whole
        .into_iter()
        .filter(Whole::is_something)
        .map(|Whole { action, mut details }| {
            details["email"] = json!(email);
            entry(Actor::System, action, known.id, details)
        })
        .collect();
    entries.extend(memberships.into_iter().map(|change| {
        let mut entry = membership_entry(Actor::System, known.id, change);
        entry.details["source"] = json!("oidc");
        entry
    }));
    if store::find_standing(tx, known.id).await? == Some(false) {
        let remaining: Vec<_> = store::roles(tx, known.id).await?.into_iter().map(|(unit, _)| unit).collect();
        entries.extend(api_keys::service::end_elsewhere(tx, &Actor::System, known.id, &remaining).await?);
    }
    entries.sort_by_key(|entry| entry.business_unit_id);
    Ok(Admitted { id: known.id, email, generation, entries })
}

/// Something to be recorded about the person as a whole.
struct Whole {
    action: Action,
    details: Value,
}

impl Whole {
    fn new(action: Action) -> Self {
        Self { action, details: json!({ "source": "oidc" }) }
    }

    fn is_something(&self) -> bool {
        self.action != Action::UserUpdate || self.details.as_object().is_some_and(|facts| facts.len() > 1)
    }
}

/// Somebody known, locked with every superadmin if being one may be taken from them.
async fn lock(
    tx: &Tx<'_>,
    who: &Identity,
    found: &Known,
) -> Result<(Known, Vec<Power>, Vec<Whole>), ProvidedError> {
    let locked = store::lock(tx, found.id, found.superadmin_by_group).await?;
    let power = |user: &store::StoredUser| Power {
        id: user.id,
        is_superadmin: user.is_superadmin,
        can_sign_in: user.can_sign_in,
    };
    // Read again: they may have been deleted, disabled or linked before the lock was ours.
    let known = rows::find_by_id(tx, found.id).await?.ok_or(ProvidedError::Raced)?;
    let powers = if found.superadmin_by_group { locked.iter().map(power).collect() } else { Vec::new() };
    if known.is(who) {
        if known.disabled {
            return Err(Refusal::AccountDisabled.into());
        }
        return Ok((known, powers, vec![Whole::new(Action::UserUpdate)]));
    }
    check_link(who, &known)?;
    rows::link(tx, known.id, &who.issuer, &who.subject).await?;
    let mut linked = Whole::new(Action::UserLink);
    linked.details["issuer"] = json!(who.issuer);
    linked.details["subject"] = json!(who.subject);
    linked.details["issuer_before"] = json!(known.issuer);
    Ok((known, powers, vec![linked, Whole::new(Action::UserUpdate)]))
}

/// Refuses to take an account for somebody's because of its e-mail. The first refusal says nothing of the account.
fn check_link(who: &Identity, known: &Known) -> Result<(), Refusal> {
    if !who.email_verified {
        return Err(Refusal::EmailUnverified);
    }
    if known.disabled {
        return Err(Refusal::AccountDisabled);
    }
    // The address went to somebody else at the same provider. Of another provider, which is connected no longer, nobody
    // can come any more.
    if known.issuer.as_deref() == Some(&who.issuer) {
        return Err(Refusal::AccountLinked);
    }
    Ok(())
}

async fn make(tx: &Tx<'_>, ids: IdSource, who: &Identity) -> Result<Known, ProvidedError> {
    let email = who.email.as_deref().ok_or(Refusal::EmailMissing)?;
    if !who.email_verified {
        return Err(Refusal::EmailUnverified.into());
    }
    let id: UserId = ids.mint();
    rows::insert(tx, id, email, who.display_name.as_deref(), &who.issuer, &who.subject).await?;
    rows::find_by_id(tx, id).await?.ok_or(ProvidedError::Raced)
}

/// Writes what the provider says now over what it said last time. Gives the e-mail that holds.
async fn refresh(
    tx: &Tx<'_>,
    who: &Identity,
    known: &Known,
    superadmins: &[Power],
    granted: &Granted,
    whole: &mut [Whole],
) -> Result<String, ProvidedError> {
    let mut told = json!({});
    let mut email = known.email.clone();
    if let Some(new) = who.email.as_ref().filter(|new| **new != known.email) {
        // Somebody else's address is not taken from them, and an unverified one is nobody's.
        if who.email_verified && rows::find_by_email(tx, new).await?.is_none() {
            email.clone_from(new);
            told["email_before"] = json!(known.email);
        } else {
            told["email_kept"] = json!(if who.email_verified { "taken" } else { "unverified" });
        }
    }
    let display_name = who.display_name.clone().or_else(|| known.display_name.clone());
    let (mut is_superadmin, mut by_group) = (known.is_superadmin, known.superadmin_by_group);
    if granted.superadmin && !is_superadmin {
        (is_superadmin, by_group) = (true, true);
        told["is_superadmin"] = json!(true);
    } else if !granted.superadmin && by_group {
        // Only with every superadmin locked; a group that gave it a moment ago takes it at the next sign-in.
        if superadmins.is_empty() || rules::is_last_superadmin(known.id, superadmins) {
            told["superadmin_kept"] = json!("the last one with a password");
        } else {
            (is_superadmin, by_group) = (false, false);
            told["is_superadmin"] = json!(false);
        }
    }
    let differs = email != known.email
        || display_name != known.display_name
        || is_superadmin != known.is_superadmin
        || by_group != known.superadmin_by_group;
    if differs {
        if display_name != known.display_name {
            told["display_name"] = json!(display_name);
        }
        rows::update(tx, known.id, &email, display_name.as_deref(), is_superadmin, by_group).await?;
    }
    if let (Some(last), Some(facts)) = (whole.last_mut(), told.as_object()) {
        for (name, value) in facts {
            last.details[name] = value.clone();
        }
    }
    Ok(email)
}

/// Gives and takes what groups give, and nothing that a person gave. Archived units stay as they are while a group still
/// names them. Ordered by unit, as their audit chains are locked.
async fn map(tx: &Tx<'_>, user: UserId, granted: &Granted) -> Result<Vec<MembershipChange>, DbError> {
    let slugs: Vec<String> = granted.roles.keys().cloned().collect();
    let units = rows::find_units(tx, &slugs).await?;
    if units.len() < slugs.len() {
        let known: Vec<&str> = units.iter().map(|unit| unit.slug.as_str()).collect();
        let unknown: Vec<&String> = slugs.iter().filter(|slug| !known.contains(&slug.as_str())).collect();
        tracing::warn!(units = ?unknown, "groups are mapped to business units that do not exist");
    }
    let mut before: BTreeMap<BusinessUnitId, Mapped> = rows::memberships(tx, user).await?;
    let mut changes = Vec::new();
    for unit in units {
        let wanted = granted.roles[&unit.slug];
        let known = before.remove(&unit.id);
        if unit.archived || known.is_some_and(|known| known.is_manual || known.role == wanted) {
            continue;
        }
        rows::give(tx, user, unit.id, wanted).await?;
        changes.push((unit.id, known.map(|known| known.role), Some(wanted)));
    }
    for (unit, gone) in before.into_iter().filter(|(_, known)| !known.is_manual) {
        rows::take(tx, user, unit).await?;
        changes.push((unit, Some(gone.role), None));
    }
    changes.sort_by_key(|(unit, ..)| *unit);
    Ok(changes)
}
