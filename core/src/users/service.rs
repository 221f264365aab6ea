//! Use cases of people: who one is, the first user, looking at people, and what every change of a person shares.

use serde_json::{Value, json};

use super::model::{Me, UserFilter, UserView};
use super::rules::{Administrator, Power, Reach};
use super::store::{InsertUser, Selection, StoredUser};
use super::{UserError, passwords, rules, store};
use crate::Deps;
use crate::access::{AccessError, Actor, Ctx, Permission, Role};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::config;
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, UserId};
use crate::page::{Page, PageRequest};

/// The caller, as they see themselves.
pub async fn me(deps: &Deps, ctx: &Ctx) -> Result<Me, UserError> {
    let Actor::User { id, email } = &ctx.actor else { return Err(AccessError::PersonRequired.into()) };
    let conn = deps.db.conn().await?;
    let memberships = store::list_memberships(&conn, *id).await?;
    let business_unit = match ctx.scope.unit() {
        None => None,
        Some(unit) => match memberships.iter().find(|membership| membership.business_unit_id == unit) {
            Some(membership) => Some(membership.slug.clone()),
            // A superadmin may act where they are no member.
            None => business_units::service::find_slug(&conn, unit).await?,
        },
    };
    let (display_name, must_change_password) =
        store::find_about_me(&conn, *id).await?.ok_or(UserError::NotFound)?;
    Ok(Me {
        id: *id,
        email: email.clone(),
        display_name,
        is_superadmin: ctx.is_superadmin,
        must_change_password,
        memberships,
        role: ctx.role,
        business_unit,
    })
}

/// Makes the first user: a superadmin, and admin of the business unit `default`, which is made too if it is missing.
/// [`UserError::NotFirst`] if there is any user.
pub async fn bootstrap_admin(deps: &Deps, email: &str, password: &str) -> Result<UserId, UserError> {
    let email = rules::normal_email(email).ok_or(UserError::Email)?;
    check_password("password", password, &email)?;
    let hash = hash(deps, password).await?;
    deps.db
        .transaction(async |tx| {
            if store::lock_and_look(tx).await? {
                return Err(UserError::NotFirst);
            }
            let id: UserId = deps.ids.mint();
            let unit = business_units::service::ensure_default(tx, deps.ids).await?;
            let user = InsertUser {
                id,
                email: &email,
                display_name: None,
                password_hash: Some(&hash),
                password_set_by: None,
                is_superadmin: true,
            };
            store::insert(tx, &user).await?;
            store::add_membership(tx, id, unit, Role::Admin).await?;
            let details = json!({ "email": email, "business_unit_id": unit });
            audit::service::record(tx, &entry(Actor::System, Action::UserBootstrap, id, details)).await?;
            Ok(id)
        })
        .await
}

/// People, newest first: all of them for a superadmin, otherwise the members of the units where the caller is admin.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    filter: &UserFilter,
    page: PageRequest,
) -> Result<Page<UserView>, UserError> {
    let conn = deps.db.conn().await?;
    let admin = administrator(&conn, ctx).await?;
    let seen = seen_by(&admin);
    let units = match (filter.business_unit_id, &seen) {
        // A unit that is not theirs has nobody in it, as far as they are told.
        (Some(unit), Some(own)) => Some(own.iter().copied().filter(|own| *own == unit).collect()),
        (Some(unit), None) => Some(vec![unit]),
        (None, own) => own.clone(),
    };
    let selection = Selection {
        units,
        email: filter.email.as_deref().map(|email| email.trim().to_lowercase()),
        before: page.cursor,
        limit: page.limit + 1,
        ..Selection::default()
    };
    let rows = store::list(&conn, &selection, seen.as_deref()).await?;
    Ok(Page::from_rows(rows, page.limit, |user| user.id.into()))
}

/// One person whom the caller sees.
pub async fn get(deps: &Deps, ctx: &Ctx, id: UserId) -> Result<UserView, UserError> {
    let conn = deps.db.conn().await?;
    let admin = administrator(&conn, ctx).await?;
    let selection = Selection { units: seen_by(&admin), id: Some(id), limit: 1, ..Selection::default() };
    let mut found = store::list(&conn, &selection, seen_by(&admin).as_deref()).await?;
    found.pop().ok_or(UserError::NotFound)
}

/// The person as the administrator sees them after a change, which may have taken the person out of their sight.
pub(super) async fn view(
    query: &impl Query,
    admin: &Administrator,
    id: UserId,
) -> Result<UserView, UserError> {
    let selection = Selection { id: Some(id), limit: 1, ..Selection::default() };
    let mut found = store::list(query, &selection, seen_by(admin).as_deref()).await?;
    found.pop().ok_or(UserError::NotFound)
}

fn seen_by(admin: &Administrator) -> Option<Vec<BusinessUnitId>> {
    (!admin.is_superadmin).then(|| admin.admin_of.clone())
}

/// The caller as somebody who administers people.
pub(super) async fn administrator(query: &impl Query, ctx: &Ctx) -> Result<Administrator, UserError> {
    ctx.require(Permission::AdministerUsers)?;
    let Actor::User { id, .. } = &ctx.actor else { return Err(AccessError::PersonRequired.into()) };
    Ok(administrator_of(query, *id, ctx.is_superadmin).await?)
}

async fn administrator_of(
    query: &impl Query,
    id: UserId,
    is_superadmin: bool,
) -> Result<Administrator, DbError> {
    let mut admin = Administrator { id, is_superadmin, admin_of: Vec::new() };
    if !is_superadmin {
        let roles = store::roles(query, id).await?;
        admin.admin_of =
            roles.iter().filter(|(_, role)| *role == Role::Admin).map(|(unit, _)| *unit).collect();
    }
    Ok(admin)
}

/// Whether the whole person is still in the hands of whoever gave them a way in, an invitation or a password: since then
/// the person may have been given more than its maker reaches, or the maker may have lost their place. The person is
/// locked, as for everybody who changes what they may do.
pub(super) async fn is_in_hands_of(
    tx: &Tx<'_>,
    person: &StoredUser,
    maker: Option<UserId>,
) -> Result<bool, DbError> {
    let Some(maker) = maker else { return Ok(false) };
    let Some(is_superadmin) = store::find_standing(tx, maker).await? else { return Ok(false) };
    let admin = administrator_of(tx, maker, is_superadmin).await?;
    let units: Vec<BusinessUnitId> =
        store::roles(tx, person.id).await?.into_iter().map(|(unit, _)| unit).collect();
    Ok(rules::reach(&admin, person.is_superadmin, &units) == Reach::Whole)
}

/// A locked person whom the caller reaches, and what decides about them.
pub(super) struct Reached {
    pub admin: Administrator,
    pub user: StoredUser,
    pub roles: Vec<(BusinessUnitId, Role)>,
    pub reach: Reach,
    superadmins: Vec<Power>,
}

impl Reached {
    /// Refuses unless the whole person is in the caller's hands.
    pub(super) fn require_whole(&self) -> Result<(), UserError> {
        match self.reach {
            Reach::Whole => Ok(()),
            Reach::Memberships => Err(UserError::OutOfReach(
                "this person is in other business units, too: only a superadmin can do this to them",
            )),
            Reach::Seen | Reach::Hidden => {
                Err(UserError::OutOfReach("only a superadmin can change a superadmin"))
            }
        }
    }

    /// Refuses what would leave nobody to administer everything.
    pub(super) fn require_another_superadmin(&self) -> Result<(), UserError> {
        if rules::is_last_superadmin(self.user.id, &self.superadmins) {
            return Err(UserError::LastSuperadmin);
        }
        Ok(())
    }

    /// Refuses what one does to oneself in another way, which asks for the current password.
    pub(super) fn require_somebody_else(&self) -> Result<(), UserError> {
        if self.admin.id == self.user.id {
            return Err(UserError::OutOfReach("change your own password with PUT /api/v1/me/password"));
        }
        Ok(())
    }
}

/// Locks a person whom the caller sees, with every superadmin: whoever takes power away looks at all who have it.
pub(super) async fn reach(tx: &Tx<'_>, ctx: &Ctx, id: UserId) -> Result<Reached, UserError> {
    ctx.require(Permission::AdministerUsers)?;
    // Locked before memberships are read: whoever gives one locks the person first, too.
    let locked = store::lock(tx, id, ctx.is_superadmin).await?;
    let admin = administrator(tx, ctx).await?;
    let roles = store::roles(tx, id).await?;
    let units: Vec<BusinessUnitId> = roles.iter().map(|(unit, _)| *unit).collect();
    let superadmins = locked
        .iter()
        .map(|user| Power { id: user.id, is_superadmin: user.is_superadmin, can_sign_in: user.can_sign_in })
        .collect();
    let user = locked.into_iter().find(|user| user.id == id).ok_or(UserError::NotFound)?;
    let reach = rules::reach(&admin, user.is_superadmin, &units);
    if reach == Reach::Hidden {
        return Err(UserError::NotFound);
    }
    Ok(Reached { admin, user, roles, reach, superadmins })
}

/// Refuses a password that will not do, in the field where it was given.
pub(super) fn check_password(field: &'static str, password: &str, email: &str) -> Result<(), UserError> {
    rules::check_password(password, email).map_err(|fault| UserError::Password { field, fault })
}

pub(super) async fn hash(deps: &Deps, password: &str) -> Result<String, UserError> {
    let cost = config::service::bcrypt_cost(deps).await?;
    passwords::hash(password.to_owned(), cost).await.map_err(UserError::Hash)
}

/// An entry about a person, in the platform's chain: people are in no unit. The object of an action is named in the
/// details, too, so that a search for what was done to somebody finds it whatever the resource is.
pub(super) fn entry(actor: Actor, action: Action, user: UserId, mut details: Value) -> Entry {
    details["user_id"] = json!(user);
    Entry {
        business_unit_id: None,
        actor,
        action,
        resource_type: "user",
        resource_id: user.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    }
}

/// A unit, and a person's role there before and after.
pub(super) type MembershipChange = (BusinessUnitId, Option<Role>, Option<Role>);

/// What becomes of a membership is recorded in its unit's chain.
pub(super) fn membership_entry(actor: Actor, user: UserId, (unit, before, after): MembershipChange) -> Entry {
    Entry {
        business_unit_id: Some(unit),
        actor,
        action: if after.is_some() { Action::MembershipGrant } else { Action::MembershipRevoke },
        resource_type: "membership",
        resource_id: user.to_string(),
        workspace_id: None,
        run_id: None,
        details: json!({ "user_id": user, "role": after, "role_before": before }),
    }
}
