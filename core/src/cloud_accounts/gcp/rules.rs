//! What a GCP project may be. Every way to register or edit one passes here.

use super::model::GcpFields;
use crate::cloud_accounts::rules::{check_bucket, check_description, check_name, check_region, refuse};
use crate::workspaces::InvalidField;

const PREFIX_BYTES_MAX: usize = 255;

/// Fields that passed every rule. Cannot be made otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcpSettings(GcpFields);

impl GcpSettings {
    /// Checks every field.
    pub(super) fn validate(fields: GcpFields) -> Result<Self, InvalidField> {
        check_name(&fields.name)?;
        check_description(fields.description.as_deref())?;
        check_region("default_region", &fields.default_region)?;
        check_bucket("state_bucket", fields.state_bucket.as_deref())?;
        if fields.state_prefix.as_deref().is_some_and(|prefix| !is_prefix(prefix)) {
            return refuse(
                "state_prefix",
                "must be words of letters, digits and _ . - with / between, 255 bytes at most",
            );
        }
        if fields.state_prefix.is_some() && fields.state_bucket.is_none() {
            return refuse("state_bucket", "is needed beside state_prefix");
        }
        Ok(Self(fields))
    }

    /// The fields.
    pub fn fields(&self) -> &GcpFields {
        &self.0
    }
}

/// The id of a project.
pub(super) fn check_project_id(id: &str) -> Result<(), InvalidField> {
    let is_fine = (6..=30).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && !id.ends_with('-')
        && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if is_fine {
        return Ok(());
    }
    refuse(
        "project_id",
        "must have 6 to 30 lower-case letters, digits and dashes, a letter first and no dash last",
    )
}

fn is_prefix(prefix: &str) -> bool {
    let word = |word: &str| {
        !matches!(word, "" | "." | "..")
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    prefix.len() <= PREFIX_BYTES_MAX && prefix.split('/').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_prefixes_are_those_that_gcp_takes() {
        for good in ["payments-prod", "abcdef", "a12345678901234567890123456789"] {
            assert!(check_project_id(good).is_ok(), "{good}");
        }
        for bad in ["abcde", "1abcdef", "abcdef-", "Payments", "example.com:payments", &"a".repeat(31)] {
            assert!(check_project_id(bad).is_err(), "{bad}");
        }
        assert!(is_prefix("plumbline/states.v1"));
        for bad in ["", "/a", "a/", "a//b", "../a", "a/./b", "a b"] {
            assert!(!is_prefix(bad), "{bad:?}");
        }
    }
}
