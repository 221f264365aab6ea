//! Every setting: the one list of names, types, bounds and defaults. Keys are those of the specification.
//!
//! What the ancestor had and we do not: `worker.*`, `liveness.*` and `drift.interval_seconds` (sweeps have no loops to
//! tune), `audit.verify_limit_rows` (verification reads everything), `modules.config` (it named directories of the host),
//! `github.token` and `aws.*` (Git credentials and cloud accounts are things of their own, never one for all).

use std::time::Duration;

use super::model::{Fallback, Kind, Level, SecretShape, Setting, TextShape, TimeUnit};
use crate::limits::Limits;

/// How a gate takes what it finds.
const GATE_MODES: &[&str] = &["enforce", "warn", "off"];
/// How much a policy's finding weighs.
const SEVERITIES: &[&str] = &["block", "warn", "info"];

const TOKEN: Kind = Kind::Secret(SecretShape::Token { chars_min: 8 });
const HOOK: Kind = Kind::Secret(SecretShape::HttpsUrl);
const NOTHING: Fallback = Fallback::Nothing;

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $id:ident: $level:ident $name:literal, $kind:expr, $default:expr;)*) => {
        $(
            $(#[doc = $doc])+
            pub static $id: Setting = Setting {
                name: $name,
                level: Level::$level,
                kind: $kind,
                default: $default,
                doc: concat!($($doc),+),
            };
        )*

        /// All of them, ordered as they are declared.
        pub const SETTINGS: &[&Setting] = &[$(&$id),*];
    };
}

settings! {
    /// Life of an access token, in minutes. Tokens that were given out keep theirs.
    ACCESS_TOKEN_EXPIRE_MINUTES: Platform "auth.access_token_expire_minutes",
        Kind::Duration { unit: TimeUnit::Minutes, min: 5, max: 24 * 60 },
        Fallback::Limit(|limits: &Limits| in_units(limits.access_token_age, TimeUnit::Minutes));
    /// Life of a refresh token, in hours, counted anew at each refresh.
    REFRESH_TOKEN_EXPIRE_HOURS: Platform "auth.refresh_token_expire_hours",
        Kind::Duration { unit: TimeUnit::Hours, min: 1, max: 30 * 24 },
        Fallback::Limit(|limits: &Limits| in_units(limits.refresh_token_age, TimeUnit::Hours));
    /// Cost of bcrypt for passwords that are set from now on: the logarithm to base 2 of its rounds.
    BCRYPT_COST: Platform "auth.bcrypt_cost", Kind::Integer { min: 10, max: 15 },
        Fallback::Limit(|limits: &Limits| i64::from(limits.bcrypt_cost));

    /// How long the values of an ended run's variables, and a login that came with a task, are kept, in hours. Keys and
    /// sources of variables stay.
    RUN_SECRETS_HOURS: Platform "retention.run_secrets_hours",
        Kind::Duration { unit: TimeUnit::Hours, min: 24, max: 365 * 24 },
        Fallback::Limit(|limits: &Limits| in_units(limits.run_secret_age, TimeUnit::Hours));

    /// How many of the newest versions of a state are kept, however old they are.
    STATE_VERSIONS: Platform "retention.state_versions", Kind::Integer { min: 10, max: 1_000_000 },
        Fallback::Integer(100);
    /// How long older versions of a state, and quarantined ones that were decided on, are kept, in days; 0 is for ever.
    STATE_VERSION_DAYS: Platform "retention.state_version_days", Kind::Integer { min: 0, max: 36_500 },
        Fallback::Integer(365);

    /// How people sign in: with a password, through an identity provider, or either way.
    AUTH_PROVIDER: Platform "auth.provider", Kind::Word(&["local", "oidc", "both"]), Fallback::Text("local");
    /// The identity provider's issuer.
    OIDC_ISSUER: Platform "auth.oidc.issuer", Kind::Url, NOTHING;
    /// What the identity provider calls us.
    OIDC_CLIENT_ID: Platform "auth.oidc.client_id", Kind::Text(TextShape::Line), NOTHING;
    /// What we prove with to the identity provider that we are its client.
    OIDC_CLIENT_SECRET: Platform "auth.oidc.client_secret", TOKEN, NOTHING;
    /// Where the identity provider sends people back to; unset is our public address with the path of the callback.
    OIDC_REDIRECT_URI: Platform "auth.oidc.redirect_uri", Kind::Url, NOTHING;
    /// What is asked of the identity provider, separated by blanks.
    OIDC_SCOPES: Platform "auth.oidc.scopes", Kind::Text(TextShape::Line),
        Fallback::Text("openid email profile groups");
    /// The claim that holds somebody's groups.
    OIDC_ROLE_CLAIM: Platform "auth.oidc.role_claim", Kind::Text(TextShape::Line), Fallback::Text("groups");
    /// What each group gives, as a JSON object: `superadmin`, or an object from business units to roles.
    OIDC_ROLE_MAPPING: Platform "auth.oidc.role_mapping", Kind::Text(TextShape::RoleMapping), Fallback::Text("{}");
    /// The business unit of those in no mapped group; without it they are in none.
    OIDC_DEFAULT_BUSINESS_UNIT: Platform "auth.oidc.default_business_unit", Kind::Text(TextShape::Slug), NOTHING;
    /// The role there of those in no mapped group.
    OIDC_DEFAULT_ROLE: Platform "auth.oidc.default_role", Kind::Word(&["viewer", "operator", "admin"]),
        Fallback::Text("viewer");

    /// What Checkov's findings in the code do to a run: end it, be shown, or not be looked for.
    CHECKOV_MODE: Unit "checkov.mode", Kind::Word(GATE_MODES), Fallback::Text("enforce");

    /// What violated policies do to a run: end it, be shown, or not be looked for.
    OPA_MODE: Unit "opa.mode", Kind::Word(GATE_MODES), Fallback::Text("off");
    /// Whether the policies that come with Plumbline are evaluated, too.
    OPA_USE_BUNDLED: Unit "opa.use_bundled", Kind::Bool, Fallback::Bool(true);
    /// How much a finding of the policies that come with Plumbline weighs.
    OPA_BUNDLED_SEVERITY: Unit "opa.bundled_severity", Kind::Word(SEVERITIES), Fallback::Text("block");
    /// How much a finding of a policy from the repository weighs.
    OPA_GIT_SEVERITY: Unit "opa.git_severity", Kind::Word(SEVERITIES), Fallback::Text("block");
    /// A repository with more policies.
    OPA_REPO_URL: Unit "opa.repo_url", Kind::Text(TextShape::Repository), NOTHING;
    /// The branch or tag of that repository.
    OPA_REPO_REF: Unit "opa.repo_ref", Kind::Text(TextShape::Branch), Fallback::Text("main");
    /// The directory in it that holds the policies.
    OPA_REPO_DIR: Unit "opa.repo_dir", Kind::Text(TextShape::Directory), Fallback::Text(".");

    /// The key that prices are asked for with.
    INFRACOST_API_KEY: Unit "infracost.api_key", TOKEN, NOTHING;
    /// The currency that costs are shown in.
    INFRACOST_CURRENCY: Unit "infracost.currency", Kind::Text(TextShape::Currency), Fallback::Text("USD");

    /// The bot that posts messages.
    SLACK_BOT_TOKEN: Unit "slack.bot_token", TOKEN, NOTHING;
    /// The channel that it posts to.
    SLACK_CHANNEL_ID: Unit "slack.channel_id", Kind::Text(TextShape::Line), NOTHING;
    /// What people call that channel.
    SLACK_CHANNEL_NAME: Unit "slack.channel_name", Kind::Text(TextShape::Line), NOTHING;
    /// What people call the workspace that the bot belongs to.
    SLACK_TEAM_NAME: Unit "slack.team_name", Kind::Text(TextShape::Line), NOTHING;
    /// An incoming webhook, where there is no bot.
    SLACK_WEBHOOK_URL: Unit "slack.webhook_url", HOOK, NOTHING;

    /// The host that takes mail.
    SMTP_HOST: Unit "smtp.host", Kind::Text(TextShape::Host), NOTHING;
    /// Its port; 25 is the only one that is used without STARTTLS.
    SMTP_PORT: Unit "smtp.port", Kind::Integer { min: 1, max: 65_535 }, Fallback::Integer(587);
    /// Who the mail is from.
    SMTP_FROM: Unit "smtp.from", Kind::Text(TextShape::Email), NOTHING;
    /// Whom it goes to, separated by commas.
    SMTP_TO: Unit "smtp.to", Kind::Text(TextShape::Emails), NOTHING;
    /// Who signs in to the host; nobody if there is none.
    SMTP_USERNAME: Unit "smtp.username", Kind::Text(TextShape::Line), NOTHING;
    /// With what password.
    SMTP_PASSWORD: Unit "smtp.password", Kind::Secret(SecretShape::Token { chars_min: 1 }), NOTHING;

    /// What forges sign their deliveries with.
    WEBHOOK_SECRET: Unit "webhook.secret", Kind::Secret(SecretShape::Token { chars_min: 16 }), NOTHING;
    /// The only organisation whose deliveries are taken.
    GITHUB_ORG: Unit "github.org", Kind::Text(TextShape::Organisation), NOTHING;

    /// The repository that is proposed where somebody looks for workspaces.
    INFRA_REPO_URL: Unit "infra.repo_url", Kind::Text(TextShape::Repository), NOTHING;

    /// Where events are posted as JSON.
    NOTIFICATION_WEBHOOK_URL: Unit "notification.webhook_url", HOOK, NOTHING;
}

/// The platform's setting of a name.
pub fn find_platform(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().copied().find(|setting| setting.level == Level::Platform && setting.name == name)
}

fn in_units(time: Duration, unit: TimeUnit) -> i64 {
    i64::try_from(time.as_secs() / unit.seconds()).unwrap_or(i64::MAX)
}
