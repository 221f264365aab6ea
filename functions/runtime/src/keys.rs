//! The keys that this function was given.

use plumbline_core::secrets::{Domain, Keyring};

use crate::environment::{Environment, SettingError};

const ROOT: &str = "CREDENTIAL_ENCRYPTION_KEY";
const ID: &str = "PLUMBLINE_KEY_ID";
const PREFIX: &str = "PLUMBLINE_KEY_";

pub(crate) fn keyring(environment: &Environment) -> Result<Keyring, SettingError> {
    let derived: Vec<(Domain, String)> = Domain::ALL
        .into_iter()
        .filter_map(|domain| {
            let name = [PREFIX, &domain.as_str().to_uppercase()].concat();
            Some((domain, environment.find(&name)?.to_owned()))
        })
        .collect();
    match (derived.is_empty(), environment.find(ROOT)) {
        (false, Some(_)) => Err(SettingError::wrong(
            ROOT,
            "must not be set beside derived keys (PLUMBLINE_KEY_<DOMAIN>): a function that has those needs no root key",
        )),
        (false, None) => {
            let id =
                environment.get(ID, "names the root key that the keys PLUMBLINE_KEY_<DOMAIN> come from")?;
            Keyring::from_derived(id, &derived)
                .map_err(|error| SettingError::wrong("PLUMBLINE_KEY_<DOMAIN>", error.to_string()))
        }
        (true, Some(root)) => {
            Keyring::from_root(root).map_err(|error| SettingError::wrong(ROOT, error.to_string()))
        }
        (true, None) => Err(SettingError::Missing {
            name: ROOT.into(),
            meaning: "the root key of all secrets, at least 32 characters, with no default; or derived keys as \
                      PLUMBLINE_KEY_<DOMAIN>",
        }),
    }
}
