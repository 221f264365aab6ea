//! The keys that this function was given.

use plumbline_core::secrets::{Keyring, KeyringError};

use crate::environment::{Environment, SettingError};
use crate::functions::Function;

const ROOT: &str = "CREDENTIAL_ENCRYPTION_KEY";
const PREVIOUS: &str = "CREDENTIAL_ENCRYPTION_KEY_PREVIOUS";
const ID: &str = "PLUMBLINE_KEY_ID";

pub(crate) fn keyring(environment: &Environment) -> Result<Keyring, SettingError> {
    let derived = derived(environment)?;
    match (derived, environment.find(ROOT)) {
        (Some(_), Some(_)) => Err(SettingError::wrong(
            ROOT,
            "must not be set beside derived keys (PLUMBLINE_KEY_<DOMAIN>): a function that has those needs no root key",
        )),
        (Some(ring), None) => Ok(ring),
        (None, Some(root)) => from_roots(root, environment.find(PREVIOUS).unwrap_or_default()),
        (None, None) => Err(SettingError::Missing {
            name: ROOT.into(),
            meaning: "the root key of all secrets, at least 32 characters, with no default; or derived keys as \
                      PLUMBLINE_KEY_<DOMAIN>",
        }),
    }
}

/// Refuses a function that lacks a key: better at its start than in the middle of its first request.
pub(crate) fn check(function: Function, ring: &Keyring) -> Result<(), SettingError> {
    let missing = function.key_domains().iter().find(|domain| ring.key(**domain).is_err());
    missing.map_or(Ok(()), |domain| {
        Err(SettingError::Missing {
            name: domain.variable(),
            meaning: "a key that this function needs, derived from the root key",
        })
    })
}

fn derived(environment: &Environment) -> Result<Option<Keyring>, SettingError> {
    let wrong = |error: KeyringError| SettingError::wrong("PLUMBLINE_KEY_<DOMAIN>", error.to_string());
    let find = |name: &str| environment.find(name);
    match Keyring::from_derived(environment.find(ID).unwrap_or_default(), find).map_err(wrong)? {
        Some(_) if environment.find(ID).is_none() => Err(SettingError::Missing {
            name: ID.into(),
            meaning: "names the root key that the keys PLUMBLINE_KEY_<DOMAIN> come from",
        }),
        derived => Ok(derived),
    }
}

/// Other root keys stand one a line: a root key may be a phrase.
fn from_roots(root: &str, previous: &str) -> Result<Keyring, SettingError> {
    Keyring::from_root(root).map_err(|error| SettingError::wrong(ROOT, error.to_string()))?;
    let previous: Vec<&str> = previous.lines().filter(|line| !line.is_empty()).collect();
    Keyring::from_roots(root, &previous).map_err(|error| SettingError::wrong(PREVIOUS, error.to_string()))
}

#[cfg(test)]
mod tests {
    use plumbline_core::secrets::Domain;

    use super::*;

    const OLD: &str = "the root key of last year, 32 characters or more";
    const NEW: &str = "the root key of this year, 32 characters or more";

    fn ring(variables: &[(&str, &str)]) -> Result<Keyring, String> {
        keyring(&variables.iter().copied().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn previous_roots_stand_beside_the_root_one_a_line() {
        let both = ring(&[(ROOT, NEW), (PREVIOUS, &format!("{OLD}\n\n"))]).expect("two roots");
        let old = Keyring::from_root(OLD).expect("a root");
        assert_eq!(both.key_of(old.key_id(), Domain::Git), old.key(Domain::Git));
        assert!(!ring(&[(ROOT, NEW)]).expect("one root").is_rotating());
        let error = ring(&[(ROOT, NEW), (PREVIOUS, NEW)]).expect_err("the same twice");
        assert!(error.contains(PREVIOUS) && error.contains("another one"), "{error}");
        let error = ring(&[(ROOT, NEW), (PREVIOUS, "changeme")]).expect_err("no root key");
        assert!(error.contains(PREVIOUS) && !error.contains("changeme"), "{error}");
    }

    #[test]
    fn a_missing_short_blank_or_placeholder_root_key_is_named_and_not_repeated() {
        for root in [
            "",
            "short",
            "                                        ",
            "change-me change-me change-me change-me",
        ] {
            let error = ring(&[(ROOT, root)]).expect_err("no root key");
            assert!(error.contains(ROOT), "{error}");
            assert!(root.is_empty() || !error.contains(root), "{error}");
        }
    }

    #[test]
    fn derived_keys_need_the_name_of_their_root_and_no_root_beside_them() {
        let exported = Keyring::from_roots(NEW, &[OLD])
            .expect("two roots")
            .only(Function::Outbound.key_domains())
            .export();
        let all: Vec<(&str, &str)> =
            exported.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let given = ring(&all).expect("derived");
        assert!(given.is_rotating());
        assert!(check(Function::Outbound, &given).is_ok());
        let error = check(Function::Api, &given).expect_err("more is needed").to_string();
        assert!(error.starts_with("PLUMBLINE_KEY_SESSIONS is not set"), "{error}");
        let unnamed: Vec<_> = all.iter().copied().filter(|(name, _)| *name != ID).collect();
        assert!(ring(&unnamed).expect_err("no name").contains(ID));
        assert!(
            ring(&[&all[..], &[(ROOT, NEW)][..]].concat()).expect_err("both").contains("beside derived keys")
        );
    }
}
