//! Which settings of a unit people see and edit together, and under what names.

use super::model::Setting;
use super::registry as keys;

/// A group of a unit's settings.
#[derive(Debug)]
pub struct Integration {
    /// Its name in paths.
    pub name: &'static str,
    /// The name of each setting on the wire, and the setting.
    pub fields: &'static [(&'static str, &'static Setting)],
}

impl Integration {
    /// The setting behind a field.
    pub fn setting(&self, field: &str) -> Option<&'static Setting> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, setting)| *setting)
    }

    /// All of its settings.
    pub fn settings(&self) -> Vec<&'static Setting> {
        self.fields.iter().map(|(_, setting)| *setting).collect()
    }
}

macro_rules! integrations {
    ($($(#[$doc:meta])* $id:ident = $name:literal { $($field:literal: $key:ident,)* })*) => {
        impl Integration {
            $(
                $(#[$doc])*
                pub const $id: &Self = &Self { name: $name, fields: &[$(($field, &keys::$key)),*] };
            )*
        }

        /// Every integration.
        pub const INTEGRATIONS: &[&Integration] = &[$(Integration::$id),*];
    };
}

integrations! {
    /// Scans of the code.
    CHECKOV = "checkov" { "mode": CHECKOV_MODE, }
    /// The policy gate.
    OPA = "opa" {
        "mode": OPA_MODE,
        "use_bundled": OPA_USE_BUNDLED,
        "bundled_severity": OPA_BUNDLED_SEVERITY,
        "git_severity": OPA_GIT_SEVERITY,
        "repo_url": OPA_REPO_URL,
        "repo_ref": OPA_REPO_REF,
        "repo_dir": OPA_REPO_DIR,
    }
    /// Estimates of cost.
    INFRACOST = "infracost" { "api_key": INFRACOST_API_KEY, "currency": INFRACOST_CURRENCY, }
    /// Messages in Slack.
    SLACK = "slack" {
        "bot_token": SLACK_BOT_TOKEN,
        "channel_id": SLACK_CHANNEL_ID,
        "channel_name": SLACK_CHANNEL_NAME,
        "team_name": SLACK_TEAM_NAME,
        "webhook_url": SLACK_WEBHOOK_URL,
    }
    /// Messages by mail.
    SMTP = "smtp" {
        "host": SMTP_HOST,
        "port": SMTP_PORT,
        "from": SMTP_FROM,
        "to": SMTP_TO,
        "username": SMTP_USERNAME,
        "password": SMTP_PASSWORD,
    }
    /// What forges send.
    WEBHOOK = "webhook" { "secret": WEBHOOK_SECRET, "github_org": GITHUB_ORG, }
    /// The repository of the unit's infrastructure.
    INFRA_REPO = "infra-repo" { "repo_url": INFRA_REPO_URL, }
    /// Events for a program of the unit's own.
    NOTIFICATION = "notification" { "webhook_url": NOTIFICATION_WEBHOOK_URL, }
}
