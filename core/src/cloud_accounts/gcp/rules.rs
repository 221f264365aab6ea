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
    pub(super) fn validate(fields: GcpFields, has_key: bool) -> Result<Self, InvalidField> {
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
        match fields.workload_identity_provider.as_deref() {
            None if has_key => {}
            None => {
                return refuse(
                    "service_account_json",
                    "is needed where no workload_identity_provider is named",
                );
            }
            Some(_) if has_key => {
                return refuse(
                    "workload_identity_provider",
                    "is for projects without a key: take service_account_json away",
                );
            }
            Some(provider) if !is_provider(provider) => {
                return refuse(
                    "workload_identity_provider",
                    "must be projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>",
                );
            }
            Some(_) => {}
        }
        Ok(Self(fields))
    }

    /// The fields.
    pub fn fields(&self) -> &GcpFields {
        &self.0
    }
}

/// The service account that runs act as: the key's own, or the one that is named where there is none.
pub(super) fn check_client_email(
    of_key: Option<&str>,
    named: Option<String>,
    before: Option<String>,
) -> Result<String, InvalidField> {
    match (of_key, named) {
        (Some(email), None) => Ok(email.to_owned()),
        (Some(email), Some(named)) if email == named => Ok(named),
        (Some(_), Some(_)) => refuse("client_email", "is read from the key"),
        (None, Some(named)) if is_client_email(&named) => Ok(named),
        (None, Some(_)) => refuse("client_email", "must be the address of a service account"),
        (None, None) => before.map_or_else(
            || refuse("client_email", "is needed beside workload_identity_provider: runs act as it"),
            Ok,
        ),
    }
}

/// Whether this is the address of a service account.
pub(super) fn is_client_email(email: &str) -> bool {
    let (name, domain) = email.split_once('@').unwrap_or_default();
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    word(name) && word(domain) && domain.ends_with(".gserviceaccount.com")
}

/// The full name of a provider of a pool.
fn is_provider(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let ["projects", number, "locations", "global", "workloadIdentityPools", pool, "providers", provider] =
        parts[..]
    else {
        return false;
    };
    let id = |id: &str| {
        (4..=32).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    (1..=20).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit()) && id(pool) && id(provider)
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
        let provider = "projects/123/locations/global/workloadIdentityPools/plumbline/providers/runs";
        assert!(is_provider(provider));
        for bad in [
            "",
            "runs",
            &provider.replace("123", "payments"),
            &provider.replace("global", "eu"),
            &provider.replace("/runs", "/run"),
            &provider.replace("/runs", "/RUNS"),
            &format!("{provider}/"),
            &format!("//iam.googleapis.com/{provider}"),
        ] {
            assert!(!is_provider(bad), "{bad}");
        }
        assert!(is_prefix("plumbline/states.v1"));
        for bad in ["", "/a", "a/", "a//b", "../a", "a/./b", "a b"] {
            assert!(!is_prefix(bad), "{bad:?}");
        }
    }
}
