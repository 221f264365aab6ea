//! Use cases of sessions.

use chrono::{DateTime, Utc};
use futures::try_join;
use serde_json::json;

use super::jwt_secrets::{self, JwtSecret};
use super::model::{Bearer, Claims, Origin, Standing, TokenPair};
use super::rules::{self, RefreshVerdict, Requested};
use super::store::{self, By, Person};
use super::throttle::{self, Attempt};
use super::tokens::{self, RefreshToken};
use super::tunables::Tunables;
use super::{SessionError, jwt_secrets_store, resolve_scope};
use crate::Deps;
use crate::access::{Actor, Credential, Ctx, Role};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Tx};
use crate::ids::{JwtSecretId, SessionId, UserId};
use crate::oidc_logins::settings::Mode;
use crate::users;

const ENDED: SessionError = SessionError::Unauthenticated("the session has ended; sign in again");

/// The caller behind a bearer token and an `X-Business-Unit` header, in one round trip to the database. Refuses somebody
/// who must change their password first.
pub async fn authenticate(deps: &Deps, bearer: &str, unit_header: Option<&str>) -> Result<Ctx, SessionError> {
    let requested = Requested::parse(unit_header);
    let (claims, standing) = look_up(deps, bearer, requested).await?;
    if standing.must_change_password {
        return Err(SessionError::PasswordChangeRequired);
    }
    ctx(&claims, standing, requested)
}

/// The same, also for somebody who must change their password first: for the few routes that are open to them.
pub async fn authenticate_newcomer(
    deps: &Deps,
    bearer: &str,
    unit_header: Option<&str>,
) -> Result<Ctx, SessionError> {
    let requested = Requested::parse(unit_header);
    let (claims, standing) = look_up(deps, bearer, requested).await?;
    ctx(&claims, standing, requested)
}

/// The person behind a bearer token, in no unit: what is a person's own does not depend on where they may act. They may
/// have to change their password first, and say so.
pub async fn identify(deps: &Deps, bearer: &str) -> Result<Bearer, SessionError> {
    let (claims, standing) = look_up(deps, bearer, Requested::Nothing).await?;
    let Standing { email, must_change_password, .. } = standing;
    Ok(Bearer { id: claims.sub, email, session: claims.jti, must_change_password })
}

/// What a genuine token says, and what the database says about its bearer and about the unit that is asked for.
async fn look_up(
    deps: &Deps,
    bearer: &str,
    requested: Requested<'_>,
) -> Result<(Claims, Standing), SessionError> {
    let presented = tokens::presented(bearer)?;
    let conn = deps.db.conn().await?;
    // Asked before the signature is checked, because the secret is part of the answer: a second round trip otherwise.
    let known = store::known(&conn, &presented, requested.slug()).await?.ok_or(tokens::INVALID)?;
    let secret = JwtSecret::open_named(&deps.keys, presented.secret, &known.sealed)?;
    let claims = tokens::read_access(&secret, bearer)?;
    if !known.secret_accepted {
        let why = "the secret that signed the token was replaced; refresh it or sign in again";
        return Err(SessionError::Unauthenticated(why));
    }
    let standing = known.standing.ok_or(ENDED)?;
    rules::check_standing(&claims, &standing)?;
    Ok((claims, standing))
}

fn ctx(claims: &Claims, standing: Standing, requested: Requested<'_>) -> Result<Ctx, SessionError> {
    let place = resolve_scope(&standing, requested)?;
    Ok(Ctx {
        actor: Actor::User { id: claims.sub, email: standing.email },
        credential: Credential::Session(claims.jti),
        scope: place.scope,
        unit_archived: place.archived,
        role: place.role,
        is_superadmin: standing.is_superadmin,
        traceparent: None,
        now: standing.at,
    })
}

/// Signs in with e-mail and password.
pub async fn login(
    deps: &Deps,
    email: &str,
    password: &str,
    origin: &Origin,
) -> Result<TokenPair, SessionError> {
    let email = users::normal_email(email);
    let attempt = throttle::admit_login(deps, email.as_deref(), origin).await?;
    let (mut person, mut tunables) = find_person(deps, email.as_deref()).await?;
    let mut refused = SessionError::WrongCredentials;
    // Twice, because the hash may be made anew by another sign-in while it is checked.
    for _ in 0..2 {
        // No connection is held meanwhile: a function has only one.
        let hash = person.as_ref().and_then(|person| person.password_hash.clone());
        let right = users::passwords::verify(password.to_owned(), hash, tunables.bcrypt_cost).await;
        // The rest is looked at only where the password is right: an answer before that would tell strangers who is
        // superadmin.
        let Some(found) = person.clone().filter(|person| right && !person.disabled) else { break };
        if tunables.mode == Mode::Oidc && !found.is_superadmin {
            refused = SessionError::PasswordsOff;
            break;
        }
        if let Some(pair) = open(deps, found.clone(), tunables, origin, &attempt).await? {
            renew_hash(deps, &found, password, tunables.bcrypt_cost).await;
            return Ok(pair);
        }
        (person, tunables) = find_person(deps, email.as_deref()).await?;
    }
    let who = person.as_ref().map(|person| person.id);
    deps.db
        .transaction(async |tx| {
            let reason = match &refused {
                SessionError::PasswordsOff => "passwords_off",
                _ => "wrong_credentials",
            };
            // What was typed is kept only if it is somebody's address: it may be a password.
            let email = person.as_ref().map(|person| &person.email);
            let details = json!({
                "method": "password", "reason": reason, "email": email, "address": origin.address,
            });
            record_failure(tx, who, details).await
        })
        .await?;
    Err(refused)
}

/// Makes the hash of a right password anew if hashes have another cost by now. Nobody is kept out because that failed.
async fn renew_hash(deps: &Deps, person: &Person, password: &str, cost: u32) {
    let Some(old) = person.password_hash.as_deref() else { return };
    if let Err(error) = users::credentials::renew_hash(deps, person.id, password, old, cost).await {
        tracing::warn!(%error, user.id = %person.id, "a password keeps the hash of another cost for now");
    }
}

/// The next pair for a refresh token. The token is used up; using an old one ends the session.
pub async fn refresh(deps: &Deps, refresh_token: &str) -> Result<TokenPair, SessionError> {
    let presented = RefreshToken::decode(&deps.keys, refresh_token)?;
    let next = RefreshToken { sequence: presented.sequence + 1, secret: secret(), ..presented };
    let next_text = next.encode(&deps.keys)?;
    let rotated = deps
        .db
        .transaction(async |tx| {
            let found = store::lock(tx, presented.session, tokens::at_rest(refresh_token)).await?;
            let Some((user, facts)) = found else { return Ok(Err(ENDED)) };
            let (person, tunables) = try_join!(store::find_by_id(tx, user), Tunables::find(tx, deps))?;
            let Some(person) = person else { return Ok(Err(ENDED)) };
            let outdated = person.disabled
                || person.generation != presented.generation
                || person.epoch != presented.epoch;
            Ok::<_, DbError>(match rules::judge_refresh(presented.sequence, facts) {
                _ if outdated => Err(ENDED),
                RefreshVerdict::Over => Err(ENDED),
                RefreshVerdict::Raced => Err(SessionError::RefreshRaced),
                RefreshVerdict::Reused => {
                    // Committed although the request is refused: the session must stay ended.
                    if store::end(tx, presented.session, "refresh token reused").await? {
                        let details = json!({ "sequence": presented.sequence, "current": facts.sequence });
                        record(tx, Some(&person), Action::SessionRefreshReused, presented.session, details)
                            .await?;
                    }
                    Err(SessionError::RefreshReused)
                }
                RefreshVerdict::Rotate => {
                    let rotated = store::rotate(
                        tx,
                        presented.session,
                        tokens::at_rest(&next_text),
                        tunables.refresh_token_age,
                    );
                    let ((), signing) = try_join!(rotated, jwt_secrets_store::find_signing(tx))?;
                    Ok((person, facts.at, tunables, signing))
                }
            })
        })
        .await?;
    let (person, at, tunables, signing) = rotated?;
    let secret = jwt_secrets::signing(deps, signing).await?;
    pair(&secret, &person, presented.session, at, &tunables, next_text)
}

/// Ends the session of an access token. Ending an ended one is success. A token that is good for nothing else, because it
/// is old or its secret was replaced, still is for this: its refresh token may be good.
pub async fn logout(deps: &Deps, bearer: &str) -> Result<(), SessionError> {
    let presented = tokens::presented(bearer)?;
    let sealed = jwt_secrets_store::find(&deps.db.conn().await?, presented.secret).await?;
    let secret = JwtSecret::open_named(&deps.keys, presented.secret, &sealed.ok_or(tokens::INVALID)?)?;
    let claims = tokens::read_access(&secret, bearer)?;
    deps.db
        .transaction(async |tx| {
            if store::end(tx, claims.jti, "signed out").await? {
                let person = store::find_by_id(tx, claims.sub).await?;
                record(tx, person.as_ref(), Action::Logout, claims.jti, json!({})).await?;
            }
            Ok(())
        })
        .await
}

/// Removes sessions and attempts that are over for good. Returns how many rows went.
pub async fn forget(deps: &Deps) -> Result<u64, DbError> {
    let conn = deps.db.conn().await?;
    Ok(store::forget(&conn, throttle::KNOWN_AGE).await? + jwt_secrets_store::forget(&conn).await?)
}

async fn find_person(deps: &Deps, email: Option<&str>) -> Result<(Option<Person>, Tunables), DbError> {
    let conn = deps.db.conn().await?;
    match email {
        Some(email) => try_join!(store::find_by_email(&conn, email), Tunables::find(&conn, deps)),
        None => Ok((None, Tunables::find(&conn, deps).await?)),
    }
}

/// Opens a session for somebody who proved by other means than a password who they are, in the caller's transaction.
/// `None` if they were disabled or their sessions were ended since.
pub(crate) async fn open_for(
    tx: &Tx<'_>,
    deps: &Deps,
    user: UserId,
    generation: i32,
    origin: &Origin,
) -> Result<Option<Opened>, SessionError> {
    let (person, tunables) = try_join!(store::find_by_id(tx, user), Tunables::find(tx, deps))?;
    match person {
        Some(person) if !person.disabled && person.generation == generation => {
            begin(tx, deps, person, tunables, By::Provider, origin).await
        }
        _ => Ok(None),
    }
}

/// Ends the session of a code that came twice. `false` if it had been ended.
pub(crate) async fn end_reused(tx: &Tx<'_>, session: SessionId) -> Result<bool, DbError> {
    store::end(tx, session, "sign-in code used twice").await
}

/// `None` if the user changed while the password was checked.
async fn open(
    deps: &Deps,
    person: Person,
    tunables: Tunables,
    origin: &Origin,
    attempt: &Attempt,
) -> Result<Option<TokenPair>, SessionError> {
    let opened = deps
        .db
        .transaction(async |tx| {
            let opened = begin(tx, deps, person, tunables, By::Password, origin).await?;
            if let Some(opened) = &opened {
                attempt.forgive(tx).await?;
                opened.record(tx, "password", origin).await?;
            }
            Ok::<_, SessionError>(opened)
        })
        .await?;
    match opened {
        Some(opened) => opened.tokens(deps).await.map(Some),
        None => Ok(None),
    }
}

/// A session whose tokens are made once it is committed.
pub(crate) struct Opened {
    person: Person,
    session: SessionId,
    at: DateTime<Utc>,
    tunables: Tunables,
    signing: Option<(JwtSecretId, String)>,
    refresh_token: String,
}

impl Opened {
    /// Which.
    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Writes down that it was opened, and by what.
    pub(crate) async fn record(&self, tx: &Tx<'_>, method: &str, origin: &Origin) -> Result<(), DbError> {
        let details = json!({ "method": method, "address": origin.address });
        record(tx, Some(&self.person), Action::Login, self.session, details).await
    }

    /// Its first tokens.
    pub(crate) async fn tokens(self, deps: &Deps) -> Result<TokenPair, SessionError> {
        let secret = jwt_secrets::signing(deps, self.signing).await?;
        pair(&secret, &self.person, self.session, self.at, &self.tunables, self.refresh_token)
    }
}

async fn begin(
    tx: &Tx<'_>,
    deps: &Deps,
    person: Person,
    tunables: Tunables,
    by: By,
    origin: &Origin,
) -> Result<Option<Opened>, SessionError> {
    let session: SessionId = deps.ids.mint();
    let (generation, epoch) = (person.generation, person.epoch);
    let token = RefreshToken { session, sequence: 1, generation, epoch, secret: secret() };
    let refresh_token = token.encode(&deps.keys)?;
    let at_rest = tokens::at_rest(&refresh_token);
    let (at, signing) = try_join!(
        store::open(tx, session, &person, by, at_rest, tunables.refresh_token_age, origin),
        jwt_secrets_store::find_signing(tx)
    )?;
    Ok(at.map(|at| Opened { person, session, at, tunables, signing, refresh_token }))
}

fn pair(
    secret: &JwtSecret,
    person: &Person,
    session: SessionId,
    at: DateTime<Utc>,
    tunables: &Tunables,
    refresh_token: String,
) -> Result<TokenPair, SessionError> {
    let expires_in = tunables.access_token_age.as_secs();
    let claims = Claims {
        iss: tokens::ISSUER.into(),
        aud: tokens::AUDIENCE.into(),
        sub: person.id,
        email: person.email.clone(),
        name: person.display_name.clone(),
        role: if person.is_superadmin { Role::Admin } else { person.role },
        is_superadmin: person.is_superadmin,
        jti: session,
        generation: person.generation,
        epoch: person.epoch,
        kind: tokens::ACCESS.into(),
        iat: at.timestamp(),
        exp: at.timestamp().saturating_add_unsigned(expires_in),
    };
    let access_token = tokens::sign_access(secret, &claims)?;
    Ok(TokenPair { access_token, refresh_token, token_type: "bearer", expires_in })
}

fn secret() -> [u8; 32] {
    rand::random()
}

/// Something that a person did with a session of theirs.
async fn record(
    tx: &Tx<'_>,
    person: Option<&Person>,
    action: Action,
    session: SessionId,
    details: serde_json::Value,
) -> Result<(), DbError> {
    let actor = match person {
        Some(person) => Actor::User { id: person.id, email: person.email.clone() },
        None => Actor::System,
    };
    write(tx, actor, action, ("session", session.to_string()), details).await
}

/// A failed attempt, which is something done to a user, not by them.
async fn record_failure(
    tx: &Tx<'_>,
    user: Option<UserId>,
    details: serde_json::Value,
) -> Result<(), DbError> {
    let id = user.map(|user| user.to_string()).unwrap_or_default();
    write(tx, Actor::System, Action::LoginFailed, ("user", id), details).await
}

async fn write(
    tx: &Tx<'_>,
    actor: Actor,
    action: Action,
    (resource_type, resource_id): (&'static str, String),
    details: serde_json::Value,
) -> Result<(), DbError> {
    let entry = Entry {
        business_unit_id: None,
        actor,
        action,
        resource_type,
        resource_id,
        workspace_id: None,
        run_id: None,
        details,
    };
    audit::service::record(tx, &entry).await
}
