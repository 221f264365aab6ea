//! Values as the rest of the program uses them.

use std::time::Duration;

use super::model::{Kind, Setting, Value};
use super::rules;
use super::store::{Owner, Rows};
use crate::limits::Limits;
use crate::secrets::{Domain, Keyring, Place, SealError, SecretText};

/// Some values of one owner: of the platform, or of one unit. What nobody has set is what the registry says, and never
/// somebody else's.
#[derive(Clone, Debug)]
pub struct Values {
    owner: Owner,
    rows: Rows,
}

impl Values {
    pub(super) fn new(owner: Owner, rows: Rows) -> Self {
        Self { owner, rows }
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// What holds for a setting that is no secret; `None` if nothing does.
    pub fn get(&self, setting: &Setting, limits: &Limits) -> Option<Value> {
        let set = self.rows.get(setting.name).and_then(|row| row.value.as_ref());
        let Some(set) = set else { return setting.default_value(limits) };
        let value = rules::stored(setting, set);
        if value.is_none() {
            // An older version of the program allowed it.
            tracing::warn!(
                config.key = setting.name,
                "a stored value is no longer allowed; its default holds"
            );
        }
        value.or_else(|| setting.default_value(limits))
    }

    /// What holds for a setting with numbers, which always has a default.
    pub fn integer(&self, setting: &Setting, limits: &Limits) -> i64 {
        match self.get(setting, limits) {
            Some(Value::Integer(number)) => number,
            _ => 0,
        }
    }

    /// What holds for a time.
    pub fn duration(&self, setting: &Setting, limits: &Limits) -> Duration {
        let seconds = match setting.kind {
            Kind::Duration { unit, .. } => unit.seconds(),
            _ => 1,
        };
        let count = u64::try_from(self.integer(setting, limits)).unwrap_or(0);
        Duration::from_secs(count.saturating_mul(seconds))
    }

    /// What holds for a word, text or address.
    pub fn text(&self, setting: &Setting, limits: &Limits) -> Option<String> {
        match self.get(setting, limits) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The secret that somebody has set.
    pub fn secret(&self, setting: &Setting, keys: &Keyring) -> Result<Option<SecretText>, SealError> {
        let Some(row) = self.rows.get(setting.name) else { return Ok(None) };
        let Some(sealed) = &row.sealed else { return Ok(None) };
        let place = Place { table: self.owner.table(), column: "sealed", row: row.id };
        Ok(Some(keys.open(Domain::Config, place, sealed)?))
    }
}
