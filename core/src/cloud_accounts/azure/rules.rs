//! What an Azure subscription may be. Every way to register or edit one passes here.

use super::model::AzureFields;
use crate::cloud_accounts::rules::{
    check_description, check_name, check_region, check_secret_word, check_uuid, refuse,
};
use crate::issuer_keys::check_audience;
use crate::secrets::SecretText;
use crate::workspaces::InvalidField;

/// Fields that passed every rule, in their one spelling. Cannot be made otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AzureSettings(AzureFields);

impl AzureSettings {
    /// Checks and normalises every field.
    pub(super) fn validate(fields: AzureFields, has_secret: bool) -> Result<Self, InvalidField> {
        check_name(&fields.name)?;
        check_description(fields.description.as_deref())?;
        check_region("default_location", &fields.default_location)?;
        if fields.state_storage_account.as_deref().is_some_and(|name| !is_storage_account(name)) {
            return refuse("state_storage_account", "must have 3 to 24 lower-case letters and digits");
        }
        if fields.state_container.as_deref().is_some_and(|name| !is_container(name)) {
            return refuse(
                "state_container",
                "must have 3 to 63 lower-case letters, digits and single dashes, no dash at its ends",
            );
        }
        if fields.state_container.is_some() && fields.state_storage_account.is_none() {
            return refuse("state_storage_account", "is needed beside state_container");
        }
        check_trust(fields.oidc_audience.as_deref(), has_secret)?;
        Ok(Self(AzureFields {
            tenant_id: check_uuid("tenant_id", &fields.tenant_id)?,
            client_id: check_uuid("client_id", &fields.client_id)?,
            ..fields
        }))
    }

    /// The fields.
    pub fn fields(&self) -> &AzureFields {
        &self.0
    }
}

fn check_trust(audience: Option<&str>, has_secret: bool) -> Result<(), InvalidField> {
    match audience {
        None if has_secret => Ok(()),
        None => refuse("client_secret", "is needed where no oidc_audience is named"),
        Some(_) if has_secret => {
            refuse("oidc_audience", "is for subscriptions without a secret: take client_secret away")
        }
        Some(audience) => check_audience(audience).or_else(|reason| refuse("oidc_audience", reason)),
    }
}

/// The secret of a service principal.
pub(super) fn check_secret(secret: SecretText) -> Result<SecretText, InvalidField> {
    check_secret_word("client_secret", &secret, 4..=512)?;
    Ok(secret)
}

fn is_storage_account(name: &str) -> bool {
    (3..=24).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn is_container(name: &str) -> bool {
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (3..=63).contains(&name.len()) && name.split('-').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> AzureFields {
        AzureFields {
            tenant_id: "0F9619FF-8B86-D011-B42D-00CF4FC964FF".into(),
            client_id: "0f9619ff-8b86-d011-b42d-00cf4fc964fe".into(),
            name: "payments".into(),
            description: None,
            default_location: "westeurope".into(),
            state_storage_account: None,
            state_container: None,
            oidc_audience: None,
        }
    }

    #[test]
    fn ids_have_one_spelling_and_the_error_names_the_field() {
        let settings = AzureSettings::validate(fields(), true).unwrap();
        assert_eq!(settings.fields().tenant_id, "0f9619ff-8b86-d011-b42d-00cf4fc964ff");
        type Change = fn(&mut AzureFields);
        let cases: [(&str, Change); 7] = [
            ("tenant_id", |fields| fields.tenant_id = "contoso".into()),
            ("client_id", |fields| fields.client_id = "{}".into()),
            ("default_location", |fields| fields.default_location = "West Europe".into()),
            ("state_storage_account", |fields| fields.state_storage_account = Some("a-b".into())),
            ("state_storage_account", |fields| fields.state_container = Some("states".into())),
            ("state_container", |fields| {
                fields.state_storage_account = Some("states".into());
                fields.state_container = Some("a--b".into());
            }),
            ("name", |fields| fields.name = String::new()),
        ];
        for (field, change) in cases {
            let mut changed = fields();
            change(&mut changed);
            assert_eq!(AzureSettings::validate(changed, true).unwrap_err().field, field);
        }
        assert!(check_secret(SecretText::new("abc")).is_err());
        assert!(check_secret(SecretText::new("a\nb-c")).is_err());
    }
}
