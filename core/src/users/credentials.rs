//! Use cases of passwords and invitations.
//!
//! Whoever sets somebody's password, or has an invitation for them, is that person from then on: both ask for the whole
//! person to be in the administrator's hands, when it is made and when it is used: meanwhile the person may have been
//! given more, or the administrator less. What an administrator sets is good for one thing only, to be changed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::model::Invite;
use super::rules::PasswordFault;
use super::service::{check_password, entry, get, hash, is_in_hands_of, reach};
use super::{Password, UserError, invites_store, passwords, store};
use crate::Deps;
use crate::access::{Actor, Ctx};
use crate::audit::{self, Action};
use crate::config;
use crate::digest::Sha256Digest;
use crate::ids::UserId;
use crate::sessions::{self, Bearer, Origin, throttle};

const INVITE_PREFIX: &str = "pli_";
/// The field of a new password beside the old one.
const NEW: &str = "new_password";

/// Gives a person a password that they must change. Every session of theirs ends.
pub async fn set_password(deps: &Deps, ctx: &Ctx, id: UserId, password: &Password) -> Result<(), UserError> {
    let email = get(deps, ctx, id).await?.email;
    check_password("password", &password.0, &email)?;
    // No connection is held meanwhile.
    let hash = hash(deps, &password.0).await?;
    deps.db
        .transaction(async |tx| {
            let reached = reach(tx, ctx, id).await?;
            reached.require_whole()?;
            reached.require_somebody_else()?;
            store::set_password(tx, id, &hash, Some(reached.admin.id)).await?;
            invites_store::revoke(tx, id).await?;
            let ended = sessions::own::end_all_of(tx, id, "an administrator set the password").await?;
            let details = json!({ "email": email, "sessions": ended });
            let entry = entry(ctx.actor.clone(), Action::UserSetPassword, id, details);
            Ok(audit::service::record(tx, &entry).await?)
        })
        .await
}

/// Changes one's own password. Every other session of theirs ends; this one goes on, and may do everything again.
pub async fn change_own_password(
    deps: &Deps,
    bearer: &Bearer,
    current: &Password,
    new: &Password,
) -> Result<(), UserError> {
    let attempt = throttle::admit_own_password(deps, bearer.id).await?;
    let old_hash = store::find_password_hash(&deps.db.conn().await?, bearer.id).await?;
    let cost = config::service::bcrypt_cost(deps).await?;
    let right = passwords::verify(current.0.clone(), old_hash.clone(), cost).await;
    let actor = Actor::User { id: bearer.id, email: bearer.email.clone() };
    let (true, Some(old_hash)) = (right, old_hash) else {
        deps.db
            .transaction(async |tx| {
                let details = json!({ "session_id": bearer.session });
                let entry = entry(actor, Action::UserChangePasswordFailed, bearer.id, details);
                audit::service::record(tx, &entry).await
            })
            .await?;
        return Err(UserError::WrongPassword);
    };
    check_password(NEW, &new.0, &bearer.email)?;
    if new == current {
        return Err(UserError::Password { field: NEW, fault: PasswordFault::Unchanged });
    }
    let hash = hash(deps, &new.0).await?;
    deps.db
        .transaction(async |tx| {
            let locked = store::lock(tx, bearer.id, false).await?;
            let person = locked.first().ok_or(UserError::WrongPassword)?;
            if person.must_change_password && !is_in_hands_of(tx, person, person.password_set_by).await? {
                return Err(UserError::OutOfReach(
                    "whoever set this password may not set it any more; ask an administrator for an invitation",
                ));
            }
            if !store::replace_password(tx, bearer.id, &old_hash, &hash).await? {
                return Err(UserError::WrongPassword);
            }
            invites_store::revoke(tx, bearer.id).await?;
            let reason = "the password was changed";
            let ended = sessions::own::end_others_of(tx, bearer.id, bearer.session, reason).await?;
            attempt.forgive(tx).await?;
            let entry = entry(actor, Action::UserChangePassword, bearer.id, json!({ "sessions": ended }));
            Ok(audit::service::record(tx, &entry).await?)
        })
        .await
}

/// Makes the hash of a password that was found right anew, unless it has the cost already or is another one by now.
pub(crate) async fn renew_hash(
    deps: &Deps,
    id: UserId,
    password: &str,
    old_hash: &str,
    cost: u32,
) -> Result<(), UserError> {
    if passwords::is_outdated(old_hash, cost) {
        let new_hash = passwords::hash(password.to_owned(), cost).await.map_err(UserError::Hash)?;
        store::renew_hash(&deps.db.conn().await?, id, old_hash, &new_hash).await?;
    }
    Ok(())
}

/// A one-time way in for a person, in place of an older one. The token is in the answer and nowhere else.
pub async fn invite(deps: &Deps, ctx: &Ctx, id: UserId) -> Result<Invite, UserError> {
    let (token, kept) = mint();
    deps.db
        .transaction(async |tx| {
            let reached = reach(tx, ctx, id).await?;
            reached.require_whole()?;
            reached.require_somebody_else()?;
            if reached.user.disabled_at.is_some() {
                return Err(UserError::Disabled);
            }
            let by = ctx.actor.user_id();
            let expires_at = invites_store::put(tx, id, kept, by, deps.limits.invite_age).await?;
            let details = json!({ "email": reached.user.email, "expires_at": expires_at });
            let entry = entry(ctx.actor.clone(), Action::UserInvite, id, details);
            audit::service::record(tx, &entry).await?;
            Ok(Invite { user_id: id, token, expires_at })
        })
        .await
}

/// Voids a person's invitation. That there is none is no error.
pub async fn revoke_invite(deps: &Deps, ctx: &Ctx, id: UserId) -> Result<(), UserError> {
    deps.db
        .transaction(async |tx| {
            let reached = reach(tx, ctx, id).await?;
            reached.require_whole()?;
            if invites_store::revoke(tx, id).await? {
                let details = json!({ "email": reached.user.email });
                let entry = entry(ctx.actor.clone(), Action::UserInviteRevoke, id, details);
                audit::service::record(tx, &entry).await?;
            }
            Ok(())
        })
        .await
}

/// Sets the password of whoever was invited, which uses the invitation up. Older sessions of theirs end.
pub async fn accept_invite(
    deps: &Deps,
    token: &str,
    password: &Password,
    origin: &Origin,
) -> Result<(), UserError> {
    let attempt = throttle::admit_invite(deps, origin).await?;
    let conn = deps.db.conn().await?;
    let kept = kept_of(token).ok_or(UserError::InviteInvalid)?;
    let (id, email) = invites_store::find(&conn, kept).await?.ok_or(UserError::InviteInvalid)?;
    // The token was no guess, whatever becomes of the password.
    attempt.forgive(&conn).await?;
    drop(conn);
    check_password("password", &password.0, &email)?;
    let hash = hash(deps, &password.0).await?;
    deps.db
        .transaction(async |tx| {
            let locked = store::lock(tx, id, false).await?;
            let person = locked.first().filter(|user| user.disabled_at.is_none());
            let person = person.ok_or(UserError::InviteInvalid)?;
            let maker = invites_store::use_up(tx, id, kept).await?.ok_or(UserError::InviteInvalid)?;
            if !is_in_hands_of(tx, person, maker).await? {
                return Err(UserError::InviteInvalid);
            }
            store::set_password(tx, id, &hash, None).await?;
            let ended = sessions::own::end_all_of(tx, id, "an invitation was accepted").await?;
            let details = json!({ "address": origin.address, "sessions": ended });
            let actor = Actor::User { id, email };
            let entry = entry(actor, Action::UserInviteAccept, id, details);
            Ok(audit::service::record(tx, &entry).await?)
        })
        .await
}

/// A new token, 32 random bytes, and the digest that is kept of it.
fn mint() -> (String, Sha256Digest) {
    let secret: [u8; 32] = rand::random();
    let token = [INVITE_PREFIX, &URL_SAFE_NO_PAD.encode(secret)].concat();
    let kept = Sha256Digest::of(token.as_bytes());
    (token, kept)
}

/// What is kept of a token; `None` for what was never one.
fn kept_of(token: &str) -> Option<Sha256Digest> {
    token.starts_with(INVITE_PREFIX).then(|| Sha256Digest::of(token.as_bytes()))
}
