//! People, for those who administer them.

use std::str::FromStr;

use anyhow::Context as _;
use chrono::Utc;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{business_units, passwords};
use crate::api::views::{Invite, User};
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::{Table, ago, confirm, facts};

/// `plumb user …`
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// List people: everybody for superadmins, otherwise the members of your business units.
    List {
        /// Only the one with this e-mail.
        #[arg(long, value_name = "ADDRESS")]
        email: Option<String>,
        /// Only members of this business unit (slug or id).
        #[arg(long, value_name = "UNIT")]
        unit: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one person.
    Show {
        /// Their e-mail or id.
        user: String,
    },
    /// Make somebody, with a password that they must change when they sign in.
    #[command(
        after_help = "The password is asked for, or read with --password-stdin, or from PLUMB_NEW_PASSWORD.

Example:
  plumb user create ada@example.com --member payments=operator"
    )]
    Create {
        /// Their e-mail.
        email: String,
        #[command(flatten)]
        new: NewUserArgs,
        /// Read the password from the first line of stdin.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Make somebody who sets a password of their own, or give somebody who is there a new way in.
    #[command(
        after_help = "Prints a one-time token. Whoever has it sets the password: hand it to that person alone.

Example:
  plumb user invite ada@example.com --member payments=operator"
    )]
    Invite {
        /// Their e-mail, or the id of somebody who is there.
        user: String,
        #[command(flatten)]
        new: NewUserArgs,
        /// Void their invitation instead.
        #[arg(long, conflicts_with_all = ["name", "members", "superadmin"])]
        revoke: bool,
    },
    /// Keep somebody out; their sessions end at once.
    Disable {
        /// Their e-mail or id.
        user: String,
    },
    /// Let a disabled person in again.
    Enable {
        /// Their e-mail or id.
        user: String,
    },
    /// Remove somebody. What they did stays in the record under their id.
    Delete {
        /// Their e-mail or id.
        user: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Give somebody a password that they must change; their sessions end at once.
    SetPassword {
        /// Their e-mail or id.
        user: String,
        /// Read the password from the first line of stdin.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Give somebody a role in a business unit, or power over everything.
    Grant {
        /// Their e-mail or id.
        user: String,
        /// The business unit (slug or id).
        #[arg(required_unless_present = "superadmin", requires = "role")]
        unit: Option<String>,
        /// The role there.
        role: Option<Role>,
        /// Make them superadmin (superadmins).
        #[arg(long)]
        superadmin: bool,
    },
    /// Take somebody's role in a business unit, or their power over everything.
    Revoke {
        /// Their e-mail or id.
        user: String,
        /// The business unit (slug or id).
        #[arg(required_unless_present = "superadmin")]
        unit: Option<String>,
        /// They are no superadmin any more (superadmins).
        #[arg(long)]
        superadmin: bool,
    },
    /// End every session of somebody.
    EndSessions {
        /// Their e-mail or id.
        user: String,
    },
}

/// What somebody new gets.
#[derive(Debug, Args)]
pub struct NewUserArgs {
    /// Their name for people.
    #[arg(long)]
    name: Option<String>,
    /// A business unit (slug or id) and their role there; may be given several times.
    #[arg(long = "member", value_name = "UNIT=ROLE")]
    members: Vec<Member>,
    /// Make them superadmin (superadmins).
    #[arg(long)]
    superadmin: bool,
}

/// What somebody may do in a business unit.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Runs and approves.
    Operator,
    /// Changes settings and people.
    Admin,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// A unit and a role in it.
#[derive(Clone, Debug)]
struct Member {
    unit: String,
    role: Role,
}

impl FromStr for Member {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (unit, role) = text.split_once('=').ok_or("write UNIT=ROLE, such as payments=operator")?;
        Ok(Self { unit: unit.into(), role: Role::from_str(role, false)? })
    }
}

/// Runs one of them.
pub async fn run(app: &App, command: UserCommand) -> anyhow::Result<Outcome> {
    match command {
        UserCommand::List { email, unit, page } => list(app, email, unit, page).await,
        UserCommand::Show { user } => {
            let id = find_id(app, &user).await?;
            let user = app.client.call(routes::GET_USER, [&id]).send().await?;
            app.show(&user, |screen, user: User| screen.print(&card(&user)))
        }
        UserCommand::Create { email, new, password_stdin } => {
            let password = passwords::new(password_stdin)?;
            let made = create(app, &email, &new, Some(password)).await?;
            tell(app, &made, "Made")
        }
        UserCommand::Invite { user, revoke: true, .. } => {
            let id = find_id(app, &user).await?;
            app.client.call(routes::REVOKE_INVITE, [&id]).send().await?;
            app.say("The invitation is void.")
        }
        UserCommand::Invite { user, new, revoke: false } => invite(app, &user, &new).await,
        UserCommand::Disable { user } => {
            let id = find_id(app, &user).await?;
            tell(app, &app.client.call(routes::DISABLE_USER, [&id]).send().await?, "Disabled")
        }
        UserCommand::Enable { user } => {
            let id = find_id(app, &user).await?;
            tell(app, &app.client.call(routes::ENABLE_USER, [&id]).send().await?, "Enabled")
        }
        UserCommand::Delete { user, yes } => {
            let id = find_id(app, &user).await?;
            if !yes
                && !confirm(&format!("Remove {user}, with all memberships and sessions?"), "--yes").await?
            {
                return Ok(Outcome::Failed);
            }
            app.client.call(routes::DELETE_USER, [&id]).send().await?;
            app.say(&format!("Removed {user}."))
        }
        UserCommand::SetPassword { user, password_stdin } => {
            let id = find_id(app, &user).await?;
            let body = json!({ "password": passwords::new(password_stdin)? });
            app.client.call(routes::SET_PASSWORD, [&id]).body(body).send().await?;
            app.say(&format!("{user} must change this password when they sign in."))
        }
        UserCommand::Grant { user, unit, role, superadmin } => {
            grant(app, &user, unit, role, superadmin).await
        }
        UserCommand::Revoke { user, unit, superadmin } => revoke(app, &user, unit, superadmin).await,
        UserCommand::EndSessions { user } => {
            let id = find_id(app, &user).await?;
            app.client.call(routes::END_USER_SESSIONS, [&id]).send().await?;
            app.say(&format!("Every session of {user} is ended."))
        }
    }
}

async fn list(
    app: &App,
    email: Option<String>,
    unit: Option<String>,
    page: PageArgs,
) -> anyhow::Result<Outcome> {
    let unit = match unit {
        Some(unit) => Some(business_units::find(app, &unit).await?.id),
        None => None,
    };
    let call = app.client.call(routes::LIST_USERS, []).query("email", email).query("business_unit_id", unit);
    let users = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
    app.show(&users, |screen, page: Page<User>| {
        let mut table = Table::new(&["ID", "EMAIL", "NAME", "STATUS", "ROLES"]).shrinking("ROLES");
        for user in page.items {
            let (status, roles) = (status(&user), roles(&user));
            table.row([user.id, user.email, user.display_name.unwrap_or_default(), status.into(), roles]);
        }
        table.print(screen, "Nobody.", page.next_cursor.as_deref())
    })
}

async fn create(
    app: &App,
    email: &str,
    new: &NewUserArgs,
    password: Option<String>,
) -> anyhow::Result<Document> {
    let mut memberships = Vec::new();
    for member in &new.members {
        memberships.push(membership(app, &member.unit, member.role).await?);
    }
    let mut body = json!({ "email": email, "memberships": memberships, "is_superadmin": new.superadmin });
    if let Some(name) = &new.name {
        body["display_name"] = json!(name);
    }
    if let Some(password) = password {
        body["password"] = json!(password);
    }
    app.client.call(routes::CREATE_USER, []).body(body).creates(None).send().await
}

async fn invite(app: &App, text: &str, new: &NewUserArgs) -> anyhow::Result<Outcome> {
    let id = match find(app, text).await? {
        Some(id) if new.name.is_none() && new.members.is_empty() && !new.superadmin => id,
        Some(_) => {
            return Err(Usage::error(format!(
                "{text} is there already; change them with plumb user grant, and invite them without --name, --member and --superadmin"
            )));
        }
        None => create(app, text, new, None).await?.read::<User>()?.id,
    };
    let invite = app.client.call(routes::INVITE_USER, [&id]).send().await?;
    app.show(&invite, |screen, invite: Invite| {
        screen.print(&format!("Invited {text}. The token, shown only now:\n{}", invite.token))?;
        let until = ago(invite.expires_at, Utc::now());
        screen.note(&format!("It ends {until}. They run: plumb accept-invite --server {}", app.server()));
        Ok(())
    })
}

async fn grant(
    app: &App,
    user: &str,
    unit: Option<String>,
    role: Option<Role>,
    superadmin: bool,
) -> anyhow::Result<Outcome> {
    let mut body = json!({});
    if superadmin {
        body["is_superadmin"] = json!(true);
    }
    if let (Some(unit), Some(role)) = (unit, role) {
        body["add_memberships"] = json!([membership(app, &unit, role).await?]);
    }
    update(app, user, body).await
}

async fn revoke(app: &App, user: &str, unit: Option<String>, superadmin: bool) -> anyhow::Result<Outcome> {
    let mut body = json!({});
    if superadmin {
        body["is_superadmin"] = json!(false);
    }
    if let Some(unit) = unit {
        body["remove_memberships"] = json!([business_units::find(app, &unit).await?.id]);
    }
    update(app, user, body).await
}

async fn update(app: &App, user: &str, body: Value) -> anyhow::Result<Outcome> {
    let id = find_id(app, user).await?;
    let after = app.client.call(routes::UPDATE_USER, [&id]).body(body).send().await?;
    app.show(&after, |screen, user: User| screen.print(&card(&user)))
}

async fn membership(app: &App, unit: &str, role: Role) -> anyhow::Result<Value> {
    let unit = business_units::find(app, unit).await?;
    Ok(json!({ "business_unit_id": unit.id, "role": role.as_str() }))
}

/// The id of somebody who is named by id or e-mail.
async fn find_id(app: &App, text: &str) -> anyhow::Result<String> {
    find(app, text).await?.with_context(|| format!("there is no {text}; see plumb user list"))
}

async fn find(app: &App, text: &str) -> anyhow::Result<Option<String>> {
    if text.parse::<Uuid>().is_ok() {
        return Ok(Some(text.into()));
    }
    let found = app.client.call(routes::LIST_USERS, []).query("email", Some(text)).send().await?;
    Ok(found.read::<Page<User>>()?.items.pop().map(|user| user.id))
}

fn tell(app: &App, user: &Document, done: &str) -> anyhow::Result<Outcome> {
    app.show(user, |screen, user: User| screen.print(&format!("{done} {}, id {}.", user.email, user.id)))
}

fn card(user: &User) -> String {
    facts(&[
        ("user", Some(user.email.clone())),
        ("id", Some(user.id.clone())),
        ("name", user.display_name.clone()),
        ("status", Some(status(user).into())),
        ("roles", Some(roles(user)).filter(|roles| !roles.is_empty())),
    ])
}

fn status(user: &User) -> &'static str {
    if user.disabled_at.is_some() {
        "disabled"
    } else if user.invite_expires_at.is_some() {
        "invited"
    } else if user.must_change_password {
        "must change password"
    } else {
        "active"
    }
}

fn roles(user: &User) -> String {
    let superadmin = user.is_superadmin.then(|| "superadmin".to_owned());
    let memberships = user.memberships.iter().map(|member| format!("{}={}", member.slug, member.role));
    superadmin.into_iter().chain(memberships).collect::<Vec<_>>().join(" ")
}
