//! Use cases of people.

use serde_json::json;

use super::model::Me;
use super::{UserError, passwords, rules, store};
use crate::Deps;
use crate::access::{AccessError, Actor, Ctx};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::config;
use crate::ids::UserId;

/// The caller, as they see themselves.
pub async fn me(deps: &Deps, ctx: &Ctx) -> Result<Me, UserError> {
    let id = ctx.person()?;
    let email = match &ctx.actor {
        Actor::User { email, .. } => email.clone(),
        Actor::Key { .. } | Actor::System => return Err(AccessError::PersonRequired.into()),
    };
    let conn = deps.db.conn().await?;
    let memberships = store::list_memberships(&conn, id).await?;
    let business_unit = match ctx.scope.unit() {
        None => None,
        Some(unit) => match memberships.iter().find(|membership| membership.business_unit_id == unit) {
            Some(membership) => Some(membership.slug.clone()),
            // A superadmin may act where they are no member.
            None => business_units::service::find_slug(&conn, unit).await?,
        },
    };
    Ok(Me {
        id,
        email,
        display_name: store::find_display_name(&conn, id).await?,
        is_superadmin: ctx.is_superadmin,
        memberships,
        role: ctx.role,
        business_unit,
    })
}

/// Makes the first user: a superadmin, and admin of the business unit `default`, which is made too if it is missing.
/// [`UserError::NotFirst`] if there is any user.
pub async fn bootstrap_admin(deps: &Deps, email: &str, password: &str) -> Result<UserId, UserError> {
    let email = rules::normal_email(email).ok_or(UserError::Email)?;
    if !rules::check_password(password) {
        return Err(UserError::Password);
    }
    let cost = config::service::bcrypt_cost(deps).await?;
    let hash = passwords::hash(password.to_owned(), cost).await.map_err(UserError::Hash)?;
    deps.db
        .transaction(async |tx| {
            if store::lock_and_look(tx).await? {
                return Err(UserError::NotFirst);
            }
            let id: UserId = deps.ids.mint();
            let unit = business_units::service::ensure_default(tx, deps.ids).await?;
            store::insert(tx, id, &email, None, &hash, true).await?;
            store::add_membership(tx, id, unit, crate::access::Role::Admin).await?;
            let entry = Entry {
                business_unit_id: None,
                actor: Actor::System,
                action: Action::UserBootstrap,
                resource_type: "user",
                resource_id: id.to_string(),
                workspace_id: None,
                run_id: None,
                details: json!({ "email": email, "business_unit_id": unit }),
            };
            audit::service::record(tx, &entry).await?;
            Ok(id)
        })
        .await
}
