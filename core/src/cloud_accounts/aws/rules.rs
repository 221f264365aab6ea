//! What an AWS account may be. Every way to register or edit one passes here.

use serde_json::Value;

use super::model::{AwsFields, WishedKeys};
use crate::cloud_accounts::rules::{
    check_bucket, check_description, check_name, check_region, check_secret_word, refuse,
};
use crate::issuer_keys::check_audience;
use crate::protocol::AwsKeys;
use crate::workspaces::InvalidField;

/// Longest name of a profile.
const PROFILE_CHARS_MAX: usize = 120;
/// What STS takes.
const SESSION_SECONDS: std::ops::RangeInclusive<i32> = 900..=43_200;
/// What STS takes from a role.
const CHAINED_SECONDS_MAX: i32 = 3600;
/// What STS takes of a policy that comes with the call.
const POLICY_BYTES_MAX: usize = 2048;
const ROLE_CHARS_MAX: usize = 576;

/// Fields that passed every rule. Cannot be made otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsSettings(AwsFields);

impl AwsSettings {
    /// Checks every field against the account's number, and that runs can get credentials at all.
    pub(super) fn validate(
        account_id: &str,
        fields: AwsFields,
        has_keys: bool,
    ) -> Result<Self, InvalidField> {
        check_name(&fields.name)?;
        check_description(fields.description.as_deref())?;
        check_aws_region("default_region", &fields.default_region)?;
        check_aws_region("state_bucket_region", &fields.state_bucket_region)?;
        check_bucket("state_bucket", fields.state_bucket.as_deref())?;
        check_profile(fields.aws_profile_name.as_deref())?;
        for (field, role) in
            [("plan_role_arn", &fields.plan_role_arn), ("apply_role_arn", &fields.apply_role_arn)]
        {
            if role.as_deref().is_some_and(|role| !is_role_of(role, account_id)) {
                return refuse(field, format!("must be the ARN of a role of account {account_id}"));
            }
        }
        match (&fields.plan_role_arn, &fields.apply_role_arn) {
            (Some(_), None) => {
                return refuse("apply_role_arn", "is needed beside plan_role_arn; it may be the same");
            }
            (None, Some(_)) => {
                return refuse("plan_role_arn", "is needed beside apply_role_arn; it may be the same");
            }
            (None, None) if fields.oidc_audience.is_some() => {
                return refuse(
                    "plan_role_arn",
                    "is needed beside oidc_audience: a token opens nothing but roles",
                );
            }
            (None, None) if !has_keys => {
                return refuse("access_key_id", "is needed where no roles are named");
            }
            (None, None) if fields.session_policy.is_some() => {
                return refuse("session_policy", "is for sessions of roles: name the roles");
            }
            _ => {}
        }
        check_trust(fields.oidc_audience.as_deref(), has_keys)?;
        if !SESSION_SECONDS.contains(&fields.session_duration_seconds) {
            return refuse("session_duration_seconds", "must be 900 to 43,200");
        }
        // Without keys the executor's own role asks, and AWS gives a role that asks for a role an hour at most.
        if !has_keys && fields.session_duration_seconds > CHAINED_SECONDS_MAX {
            return refuse("session_duration_seconds", "must be at most 3,600 where the account has no keys");
        }
        check_policy(fields.session_policy.as_ref())?;
        Ok(Self(fields))
    }

    /// The fields.
    pub fn fields(&self) -> &AwsFields {
        &self.0
    }
}

fn check_trust(audience: Option<&str>, has_keys: bool) -> Result<(), InvalidField> {
    let Some(audience) = audience else { return Ok(()) };
    if has_keys {
        return refuse(
            "oidc_audience",
            "is for accounts without keys: take access_key_id and secret_access_key away",
        );
    }
    check_audience(audience).or_else(|reason| refuse("oidc_audience", reason))
}

/// Twelve digits.
pub(super) fn check_account_id(account_id: &str) -> Result<(), InvalidField> {
    if account_id.len() == 12 && account_id.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(());
    }
    refuse("account_id", "must be 12 digits")
}

/// The keys of a request: both, or none.
pub(super) fn check_keys(wished: WishedKeys) -> Result<Option<AwsKeys>, InvalidField> {
    let (access_key_id, secret_access_key) = match wished {
        (None, None) => return Ok(None),
        (Some(_), None) => return refuse("secret_access_key", "is needed beside access_key_id"),
        (None, Some(_)) => return refuse("access_key_id", "is needed beside secret_access_key"),
        (Some(id), Some(secret)) => (id.expose().to_owned(), secret.expose().to_owned()),
    };
    check_secret_word("secret_access_key", &secret_access_key, 16..=128)?;
    let is_word = access_key_id.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_word || !(16..=128).contains(&access_key_id.len()) {
        return refuse("access_key_id", "must have 16 to 128 letters and digits");
    }
    if access_key_id.starts_with("ASIA") {
        return refuse(
            "access_key_id",
            "belongs to a session that ends by itself: use the key of a user, or roles",
        );
    }
    Ok(Some(AwsKeys { access_key_id, secret_access_key, session_token: None }))
}

/// Whether this is how AWS names its regions. Such a name becomes a part of host names.
pub fn is_region(region: &str) -> bool {
    let (_, last) = region.rsplit_once('-').unwrap_or_default();
    check_region("region", region).is_ok()
        && !last.is_empty()
        && last.bytes().all(|b| b.is_ascii_digit())
        && region.matches('-').count() >= 2
}

fn check_aws_region(field: &'static str, region: &str) -> Result<(), InvalidField> {
    if is_region(region) { Ok(()) } else { refuse(field, "must be a region of AWS, such as eu-central-1") }
}

fn check_profile(profile: Option<&str>) -> Result<(), InvalidField> {
    let is_fine = |name: &str| {
        (1..=PROFILE_CHARS_MAX).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.@-".contains(&b))
    };
    // It becomes a line of a file: nothing that could begin another one.
    if profile.is_none_or(is_fine) {
        return Ok(());
    }
    refuse("aws_profile_name", "must have 1 to 120 letters, digits and _ . @ -")
}

/// `arn:<partition>:iam::<account>:role/<path and name>`
fn is_role_of(arn: &str, account_id: &str) -> bool {
    let [prefix, partition, service, region, account, role] = arn.splitn(6, ':').collect::<Vec<_>>()[..]
    else {
        return false;
    };
    let name = role.strip_prefix("role/").unwrap_or_default();
    arn.len() <= ROLE_CHARS_MAX
        && prefix == "arn"
        && ["aws", "aws-cn", "aws-us-gov"].contains(&partition)
        && (service, region, account) == ("iam", "", account_id)
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+=,.@_/-".contains(&b))
        && name.split('/').all(|part| !part.is_empty())
}

fn check_policy(policy: Option<&Value>) -> Result<(), InvalidField> {
    let Some(policy) = policy else { return Ok(()) };
    if policy.get("Statement").is_none() {
        return refuse("session_policy", "must be an IAM policy: an object with a Statement");
    }
    if policy.to_string().len() > POLICY_BYTES_MAX {
        return refuse("session_policy", "must have at most 2,048 bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACCOUNT: &str = "123456789012";
    const ROLE: &str = "arn:aws:iam::123456789012:role/plumbline/plan";

    fn fields() -> AwsFields {
        AwsFields {
            name: "payments".into(),
            description: None,
            default_region: "eu-central-1".into(),
            state_bucket: None,
            state_bucket_region: "us-east-1".into(),
            aws_profile_name: None,
            plan_role_arn: None,
            apply_role_arn: None,
            session_duration_seconds: 3600,
            session_policy: None,
            oidc_audience: None,
        }
    }

    fn refused(change: impl FnOnce(&mut AwsFields), has_keys: bool) -> &'static str {
        let mut fields = fields();
        change(&mut fields);
        AwsSettings::validate(ACCOUNT, fields, has_keys).unwrap_err().field
    }

    fn with_roles(fields: &mut AwsFields) {
        fields.plan_role_arn = Some(ROLE.into());
        fields.apply_role_arn = Some(ROLE.into());
    }

    #[test]
    fn the_error_names_the_field() {
        assert_eq!(refused(|fields| fields.name = String::new(), true), "name");
        assert_eq!(refused(|fields| fields.default_region = "global".into(), true), "default_region");
        assert_eq!(refused(|fields| fields.state_bucket_region = "eu-x".into(), true), "state_bucket_region");
        assert_eq!(refused(|fields| fields.state_bucket = Some("A".into()), true), "state_bucket");
        assert_eq!(
            refused(|fields| fields.aws_profile_name = Some("a]\n[b".into()), true),
            "aws_profile_name"
        );
        assert_eq!(refused(|fields| fields.session_duration_seconds = 899, true), "session_duration_seconds");
        assert_eq!(refused(|_| (), false), "access_key_id");
        assert_eq!(refused(|fields| fields.plan_role_arn = Some(ROLE.into()), true), "apply_role_arn");
        assert_eq!(refused(|fields| fields.apply_role_arn = Some(ROLE.into()), true), "plan_role_arn");
        assert_eq!(
            refused(|fields| fields.session_policy = Some(json!({"Statement": []})), true),
            "session_policy"
        );
        for policy in [json!("x"), json!({}), json!({"Statement": "x".repeat(2048)})] {
            let field = refused(
                |fields| {
                    with_roles(fields);
                    fields.session_policy = Some(policy);
                },
                false,
            );
            assert_eq!(field, "session_policy");
        }
    }

    #[test]
    fn roles_are_roles_of_the_account_itself() {
        let mut fields = fields();
        with_roles(&mut fields);
        assert!(AwsSettings::validate(ACCOUNT, fields, false).is_ok(), "roles need no keys");
        for bad in [
            "",
            "plan",
            "arn:aws:iam::210987654321:role/plan",
            "arn:aws:iam::123456789012:user/plan",
            "arn:aws:iam::123456789012:role/",
            "arn:aws:iam::123456789012:role/a//b",
            "arn:aws:iam::123456789012:role/a b",
            "arn:aws:sts::123456789012:role/plan",
            "arn:evil:iam::123456789012:role/plan",
        ] {
            assert!(!is_role_of(bad, ACCOUNT), "{bad}");
        }
        assert!(is_role_of("arn:aws-cn:iam::123456789012:role/plan", ACCOUNT));
    }

    #[test]
    fn keys_come_in_pairs_and_are_of_a_user() {
        let text = |text: &str| Some(crate::secrets::SecretText::new(text));
        let (id, secret) = (text("AKIA0123456789ABCDEF"), text("s/ecret+of+forty+characters+0123456789ab"));
        let keys = check_keys((id.clone(), secret.clone())).unwrap().unwrap();
        assert_eq!(format!("{keys:?}"), "AwsKeys(..)");
        assert_eq!(check_keys((None, None)).unwrap(), None);
        assert_eq!(check_keys((id.clone(), None)).unwrap_err().field, "secret_access_key");
        assert_eq!(check_keys((None, secret.clone())).unwrap_err().field, "access_key_id");
        assert_eq!(check_keys((text("AKIA\n"), secret.clone())).unwrap_err().field, "access_key_id");
        assert_eq!(check_keys((text("ASIA0123456789ABCDEF"), secret)).unwrap_err().field, "access_key_id");
        assert_eq!(check_keys((id, text("with a space in between"))).unwrap_err().field, "secret_access_key");
        assert!(check_account_id("12345678901").is_err() && check_account_id("١٢٣٤٥٦٧٨٩٠١٢").is_err());
    }
}
