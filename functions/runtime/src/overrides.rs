//! Settings of sign-in that the environment gives.

use plumbline_core::config::{OverrideError, Overrides};

use crate::environment::{Environment, SettingError};

const PROVIDER: &str = "AUTH_PROVIDER";
const PREFIX: &str = "AUTH_OIDC_";
/// What others call the first one: set by mistake, it would be ignored, and everybody would sign in with passwords.
const NOT_OURS: &str = "AUTH_MODE";

/// Every `AUTH_PROVIDER` and `AUTH_OIDC_<NAME>`. A name that is no setting is refused: a typing mistake would otherwise
/// leave another value in force.
pub fn overrides(environment: &Environment) -> Result<Overrides, SettingError> {
    if environment.find(NOT_OURS).is_some() {
        return Err(SettingError::wrong(
            NOT_OURS,
            "is not a setting; say with AUTH_PROVIDER how people sign in",
        ));
    }
    let mut overrides = Overrides::default();
    for (name, text) in overriding(environment) {
        overrides.take(&name, &text).map_err(|error| match error {
            OverrideError::Unknown => SettingError::wrong(&name, "no setting has this name"),
            OverrideError::Invalid(reason) => SettingError::wrong(&name, reason),
        })?;
    }
    Ok(overrides)
}

/// The variables themselves, for whoever hands them on.
pub fn overriding(environment: &Environment) -> Vec<(String, String)> {
    let provider = environment.find(PROVIDER).map(|text| (PROVIDER.to_owned(), text.to_owned()));
    let others = environment.with_prefix(PREFIX).filter(|(_, text)| !text.is_empty());
    let others = others.map(|(name, text)| ([PREFIX, name].concat(), text.to_owned()));
    provider.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use plumbline_core::config::registry;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Overrides, SettingError> {
        overrides(&variables.iter().copied().collect())
    }

    #[test]
    fn variables_are_checked_as_the_settings_are_whose_names_they_have() {
        let given = read(&[
            ("AUTH_PROVIDER", "both"),
            ("AUTH_OIDC_ISSUER", "https://id.example.com"),
            ("AUTH_OIDC_CLIENT_SECRET", "hunter2-hunter2"),
            ("AUTH_OIDC_DEFAULT_ROLE", ""),
        ])
        .expect("fine");
        assert_eq!(given.text(&registry::AUTH_PROVIDER).as_deref(), Some("both"));
        assert!(given.has(&registry::OIDC_CLIENT_SECRET) && !given.has(&registry::OIDC_DEFAULT_ROLE));
        assert!(!format!("{given:?}").contains("hunter2"), "{given:?}");
    }

    #[test]
    fn a_wrong_value_or_name_ends_the_start_and_is_not_echoed() {
        for (name, text) in [
            ("AUTH_PROVIDER", "saml-of-hunter2"),
            ("AUTH_OIDC_ISSUER", "hunter2"),
            ("AUTH_OIDC_ROLE_MAPPING", "{\"hunter2\": \"king\"}"),
            ("AUTH_OIDC_ISUER", "https://hunter2.example.com"),
            ("AUTH_MODE", "hunter2"),
        ] {
            let error = read(&[(name, text)]).expect_err(name).to_string();
            assert!(error.contains(name) && !error.contains("hunter2"), "{error}");
        }
    }
}
