//! What a cluster may be, its kubeconfig aside. Every way to register or edit one passes here.

use super::model::ClusterFields;
use crate::cloud_accounts::rules::{check_description, check_name, refuse};
use crate::workspaces::InvalidField;

const NAMESPACE_CHARS_MAX: usize = 63;

/// Fields that passed every rule. Cannot be made otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings(ClusterFields);

impl ClusterSettings {
    /// Checks every field. Whether the account is registered is for the database to say.
    pub(super) fn validate(fields: ClusterFields) -> Result<Self, InvalidField> {
        check_name(&fields.name)?;
        check_description(fields.description.as_deref())?;
        if !is_namespace(&fields.default_namespace) {
            return refuse(
                "default_namespace",
                "must have 1 to 63 lower-case letters, digits and dashes, no dash at its ends",
            );
        }
        let is_account = |id: &str| id.len() == 12 && id.bytes().all(|b| b.is_ascii_digit());
        if fields.aws_account_id.as_deref().is_some_and(|id| !is_account(id)) {
            return refuse("aws_account_id", "must be 12 digits");
        }
        Ok(Self(fields))
    }

    /// The fields.
    pub fn fields(&self) -> &ClusterFields {
        &self.0
    }
}

fn is_namespace(name: &str) -> bool {
    (1..=NAMESPACE_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_field() {
        let fields = |namespace: &str, account: Option<&str>| ClusterFields {
            name: "prod".into(),
            description: None,
            default_namespace: namespace.into(),
            aws_account_id: account.map(str::to_owned),
            allow_insecure_tls: false,
        };
        let refused = |fields| ClusterSettings::validate(fields).err().map(|error| error.field);
        assert_eq!(refused(fields("web-1", Some("123456789012"))), None);
        for bad in ["", "-a", "a-", "A", "a.b", &"a".repeat(64)] {
            assert_eq!(refused(fields(bad, None)), Some("default_namespace"), "{bad}");
        }
        assert_eq!(refused(fields("web", Some("12345678901"))), Some("aws_account_id"));
    }
}
