//! Use cases that change people: make, edit, disable, enable, delete.
//!
//! Who may do what to whom: a superadmin does everything. A unit's admin makes people in their own units, and gives and
//! takes memberships there; what belongs to the whole person (name, disabling, deletion, password, sessions) only while
//! every unit of the person is one of theirs: otherwise they would get at what the person may do elsewhere. They see
//! superadmins among their members and change nothing of them. Nobody gives more than they have: a unit's admin has
//! every role of the unit, and only superadmins make superadmins.
//!
//! The last superadmin who can sign in stays one. Everything here that takes power away locks every superadmin first, in
//! one order, so that of two at once the second sees what the first did.

use std::collections::BTreeSet;

use serde_json::json;

use super::model::{NewMembership, NewUser, UserChange, UserView};
use super::rules::{self, Administrator, Reach};
use super::service::{
    MembershipChange, Reached, administrator, check_password, entry, hash, membership_entry, reach, view,
};
use super::store::{self, InsertUser};
use super::{Password, UserError, invites_store};
use crate::Deps;
use crate::access::{AccessError, Ctx, Permission};
use crate::api_keys;
use crate::audit::{self, Action};
use crate::business_units;
use crate::db::{DbError, Tx};
use crate::ids::{BusinessUnitId, UserId};
use crate::sessions;

/// The name of the unique constraint on e-mails.
const EMAIL_CONSTRAINT: &str = "users_email";
/// Memberships in one request.
const MEMBERSHIPS_MAX: usize = 100;

/// Somebody new whose fields were checked and whose password is hashed.
#[derive(Debug)]
pub struct CheckedUser {
    email: String,
    display_name: Option<String>,
    password_hash: Option<String>,
    is_superadmin: bool,
    memberships: Vec<NewMembership>,
}

/// Checks a new person before a transaction is open: hashing takes long, and a function has one connection.
pub async fn check_new(deps: &Deps, ctx: &Ctx, new: NewUser) -> Result<CheckedUser, UserError> {
    ctx.require(Permission::AdministerUsers)?;
    let NewUser { email, display_name, password, is_superadmin, memberships } = new;
    let email = rules::normal_email(&email).ok_or(UserError::Email)?;
    check_name(display_name.as_deref())?;
    check_memberships(&memberships, &[])?;
    let password_hash = match password {
        Some(Password(password)) => {
            check_password("password", &password, &email)?;
            Some(hash(deps, &password).await?)
        }
        None => None,
    };
    Ok(CheckedUser { email, display_name, password_hash, is_superadmin, memberships })
}

/// Makes somebody, in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(tx: &Tx<'_>, deps: &Deps, ctx: &Ctx, new: CheckedUser) -> Result<UserView, UserError> {
    let admin = administrator(tx, ctx).await?;
    if new.is_superadmin {
        require_superadmin(ctx)?;
    }
    if new.memberships.is_empty() && !admin.is_superadmin {
        let reason = "must name at least one of your business units";
        return Err(UserError::Invalid { field: "memberships", reason });
    }
    check_units(tx, &admin, &new.memberships, &[]).await?;
    let id: UserId = deps.ids.mint();
    let user = InsertUser {
        id,
        email: &new.email,
        display_name: new.display_name.as_deref(),
        password_hash: new.password_hash.as_deref(),
        password_set_by: new.password_hash.as_ref().and(ctx.actor.user_id()),
        is_superadmin: new.is_superadmin,
    };
    store::insert(tx, &user).await.map_err(duplicate)?;
    for membership in &new.memberships {
        store::add_membership(tx, id, membership.business_unit_id, membership.role).await?;
    }
    let made = view(tx, &admin, id).await?;
    let details = json!({
        "email": new.email, "is_superadmin": new.is_superadmin, "with_password": new.password_hash.is_some(),
    });
    let whole = entry(ctx.actor.clone(), Action::UserCreate, id, details);
    let mut entries = vec![whole];
    let given = new.memberships.iter().map(|given| (given.business_unit_id, None, Some(given.role)));
    entries.extend(given.map(|change| membership_entry(ctx.actor.clone(), id, change)));
    audit::service::record_all(tx, entries).await?;
    Ok(made)
}

/// Edits a person and their memberships, all or nothing.
pub async fn update(deps: &Deps, ctx: &Ctx, id: UserId, change: UserChange) -> Result<UserView, UserError> {
    if let Some(name) = &change.display_name {
        check_name(name.as_deref())?;
    }
    check_memberships(&change.add_memberships, &change.remove_memberships)?;
    deps.db.transaction(async |tx| update_in(tx, ctx, id, &change).await).await
}

async fn update_in(tx: &Tx<'_>, ctx: &Ctx, id: UserId, change: &UserChange) -> Result<UserView, UserError> {
    let reached = reach(tx, ctx, id).await?;
    if change.is_superadmin.is_some() {
        require_superadmin(ctx)?;
    }
    if change.display_name.is_some() || reached.reach < Reach::Memberships {
        reached.require_whole()?;
    }
    check_units(tx, &reached.admin, &change.add_memberships, &change.remove_memberships).await?;
    let user = &reached.user;
    let display_name = change.display_name.clone().unwrap_or_else(|| user.display_name.clone());
    let is_superadmin = change.is_superadmin.unwrap_or(user.is_superadmin);
    if !is_superadmin {
        reached.require_another_superadmin()?;
    }
    let mut entries = Vec::new();
    if display_name != user.display_name || is_superadmin != user.is_superadmin {
        store::update(tx, id, display_name.as_deref(), is_superadmin).await?;
        let details = json!({
            "display_name": display_name, "is_superadmin": is_superadmin, "was_superadmin": user.is_superadmin,
        });
        entries.push(entry(ctx.actor.clone(), Action::UserUpdate, id, details));
    }
    let memberships = change_memberships(tx, &reached, change).await?;
    entries.extend(memberships.into_iter().map(|change| membership_entry(ctx.actor.clone(), id, change)));
    if !is_superadmin {
        let remaining: Vec<_> = store::roles(tx, id).await?.into_iter().map(|(unit, _)| unit).collect();
        entries.extend(api_keys::service::end_elsewhere(tx, &ctx.actor, id, &remaining).await?);
    }
    let after = view(tx, &reached.admin, id).await?;
    audit::service::record_all(tx, entries).await?;
    Ok(after)
}

async fn change_memberships(
    tx: &Tx<'_>,
    reached: &Reached,
    change: &UserChange,
) -> Result<Vec<MembershipChange>, UserError> {
    let id = reached.user.id;
    // Given again by a person, it is theirs to take: no group does it any more.
    let by_groups = store::given_by_groups(tx, id).await?;
    let before = |unit| reached.roles.iter().find(|(known, _)| *known == unit).map(|(_, role)| *role);
    let mut changes = Vec::new();
    for unit in &change.remove_memberships {
        if let Some(role) = before(*unit) {
            store::remove_membership(tx, id, *unit).await?;
            changes.push((*unit, Some(role), None));
        }
    }
    for given in &change.add_memberships {
        let known = before(given.business_unit_id);
        if known != Some(given.role) || by_groups.contains(&given.business_unit_id) {
            store::add_membership(tx, id, given.business_unit_id, given.role).await?;
            changes.push((given.business_unit_id, known, Some(given.role)));
        }
    }
    Ok(changes)
}

/// Keeps a person out: sessions, tokens and API keys end at once, and an invitation is void. They keep their memberships.
pub async fn disable(deps: &Deps, ctx: &Ctx, id: UserId) -> Result<UserView, UserError> {
    deps.db
        .transaction(async |tx| {
            let reached = reach(tx, ctx, id).await?;
            reached.require_whole()?;
            reached.require_another_superadmin()?;
            if reached.user.disabled_at.is_none() {
                store::set_disabled(tx, id, true).await?;
                invites_store::revoke(tx, id).await?;
                let ended = sessions::own::end_all_of(tx, id, "the account was disabled").await?;
                let details = json!({ "email": reached.user.email, "sessions": ended });
                let mut entries = vec![entry(ctx.actor.clone(), Action::UserDisable, id, details)];
                entries.extend(api_keys::service::end_elsewhere(tx, &ctx.actor, id, &[]).await?);
                audit::service::record_all(tx, entries).await?;
            }
            view(tx, &reached.admin, id).await
        })
        .await
}

/// Lets a disabled person in again. What ended when they were disabled stays ended.
pub async fn enable(deps: &Deps, ctx: &Ctx, id: UserId) -> Result<UserView, UserError> {
    deps.db
        .transaction(async |tx| {
            let reached = reach(tx, ctx, id).await?;
            reached.require_whole()?;
            if reached.user.disabled_at.is_some() {
                store::set_disabled(tx, id, false).await?;
                let details = json!({ "email": reached.user.email });
                let entry = entry(ctx.actor.clone(), Action::UserEnable, id, details);
                audit::service::record(tx, &entry).await?;
            }
            view(tx, &reached.admin, id).await
        })
        .await
}

/// Removes a person. Whatever they did stays and keeps their id; the entry of their end says who that was.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: UserId) -> Result<(), UserError> {
    deps.db
        .transaction(async |tx| {
            let reached = reach(tx, ctx, id).await?;
            reached.require_whole()?;
            reached.require_another_superadmin()?;
            let ended = api_keys::service::end_elsewhere(tx, &ctx.actor, id, &[]).await?;
            store::delete(tx, id).await?;
            let details = json!({
                "email": reached.user.email, "display_name": reached.user.display_name,
                "was_superadmin": reached.user.is_superadmin,
            });
            let mut entries = vec![entry(ctx.actor.clone(), Action::UserDelete, id, details)];
            let lost = reached.roles.iter().map(|(unit, role)| (*unit, Some(*role), None));
            entries.extend(lost.map(|change| membership_entry(ctx.actor.clone(), id, change)));
            entries.extend(ended);
            Ok(audit::service::record_all(tx, entries).await?)
        })
        .await
}

/// Ends every session of a person.
pub async fn end_sessions(deps: &Deps, ctx: &Ctx, id: UserId) -> Result<(), UserError> {
    deps.db
        .transaction(async |tx| {
            reach(tx, ctx, id).await?.require_whole()?;
            let ended = sessions::own::end_all_of(tx, id, "ended by an administrator").await?;
            let entry = sessions::own::ended_all(ctx.actor.clone(), id, ended);
            Ok(audit::service::record(tx, &entry).await?)
        })
        .await
}

fn require_superadmin(ctx: &Ctx) -> Result<(), UserError> {
    if ctx.is_superadmin { Ok(()) } else { Err(AccessError::Forbidden { needs: None, has: ctx.role }.into()) }
}

fn check_name(name: Option<&str>) -> Result<(), UserError> {
    if rules::check_display_name(name) {
        return Ok(());
    }
    let reason = "must be 1 to 255 characters, not blank, without control characters";
    Err(UserError::Invalid { field: "display_name", reason })
}

fn check_memberships(add: &[NewMembership], remove: &[BusinessUnitId]) -> Result<(), UserError> {
    let refuse = |reason| Err(UserError::Invalid { field: "memberships", reason });
    if add.len() + remove.len() > MEMBERSHIPS_MAX {
        return refuse("at most 100 in one request");
    }
    let mut units = BTreeSet::new();
    let all = add.iter().map(|given| given.business_unit_id).chain(remove.iter().copied());
    if !all.into_iter().all(|unit| units.insert(unit)) {
        return refuse("must name each business unit once");
    }
    Ok(())
}

/// Refuses units that the caller does not administer: one that they do not even see is said not to be there.
async fn check_units(
    tx: &Tx<'_>,
    admin: &Administrator,
    add: &[NewMembership],
    remove: &[BusinessUnitId],
) -> Result<(), UserError> {
    let added: Vec<BusinessUnitId> = add.iter().map(|given| given.business_unit_id).collect();
    let named = [&added[..], remove].concat();
    let own = store::roles(tx, admin.id).await?;
    let known = business_units::service::find_archived(tx, &named).await?;
    for unit in named {
        let found = known.iter().find(|(id, _)| *id == unit);
        let is_seen = admin.is_superadmin || own.iter().any(|(id, _)| *id == unit);
        let Some((_, archived)) = found.filter(|_| is_seen) else {
            return Err(UserError::UnitNotFound(unit));
        };
        if !admin.administers(unit) {
            return Err(UserError::OutOfReach("you are not an admin of the business unit that you name"));
        }
        if *archived && added.contains(&unit) {
            return Err(UserError::UnitArchived(unit));
        }
    }
    Ok(())
}

fn duplicate(error: DbError) -> UserError {
    if error.is_duplicate_of(EMAIL_CONSTRAINT) { UserError::Duplicate } else { error.into() }
}
