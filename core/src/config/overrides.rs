//! Values that the environment gives: they hold before what superadmins have set.

use std::collections::BTreeMap;

use serde_json::json;

use super::model::{Given, Setting, Value};
use super::{registry, rules};
use crate::secrets::SecretText;
use crate::workspaces::LocalRepos;

/// Why a variable of the environment has no value that can be used. Never holds the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// No setting that may come from there has this name.
    #[error("no setting has this name")]
    Unknown,
    /// What it must be.
    #[error("{0}")]
    Invalid(String),
}

/// Values by key. The names of the variables are those of the keys in capitals: `AUTH_PROVIDER`, `AUTH_OIDC_ISSUER`.
#[derive(Clone, Debug, Default)]
pub struct Overrides(BTreeMap<&'static str, Given>);

/// The keys that may come from the environment: how people sign in must be right before anybody can sign in to set it.
fn may_come_from_there(setting: &Setting) -> bool {
    setting.name == registry::AUTH_PROVIDER.name || setting.name.starts_with("auth.oidc.")
}

impl Overrides {
    /// Takes one variable.
    pub fn take(&mut self, variable: &str, text: &str) -> Result<(), OverrideError> {
        let named = |setting: &&&'static Setting| {
            may_come_from_there(setting) && setting.name.to_uppercase().replace('.', "_") == variable
        };
        let setting = registry::SETTINGS.iter().find(named).ok_or(OverrideError::Unknown)?;
        let given =
            rules::read(setting, &json!(text), LocalRepos::Refused).map_err(OverrideError::Invalid)?;
        self.0.insert(setting.name, given);
        Ok(())
    }

    /// Whether the environment says anything about the setting.
    pub fn has(&self, setting: &Setting) -> bool {
        self.0.contains_key(setting.name)
    }

    /// A value that is no secret.
    pub fn text(&self, setting: &Setting) -> Option<String> {
        match self.0.get(setting.name) {
            Some(Given::Plain(Value::Text(text))) => Some(text.clone()),
            _ => None,
        }
    }

    /// A secret.
    pub fn secret(&self, setting: &Setting) -> Option<&SecretText> {
        match self.0.get(setting.name) {
            Some(Given::Secret(secret)) => Some(secret),
            _ => None,
        }
    }
}
