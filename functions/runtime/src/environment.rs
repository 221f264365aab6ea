//! Settings of a function, read once from its environment.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumbline_core::db::Db;
use plumbline_core::ids::IdSource;
use plumbline_core::secrets::SecretText;
use plumbline_core::state_stores::OpenStores;
use plumbline_core::{Deps, Endpoints};

use crate::account_stores::AccountStores;
use crate::functions::Function;
use crate::overrides::overrides;
use crate::{database, keys, limits, signers, stores};

/// Where STS answers, instead of its public addresses.
pub(crate) const STS_ENDPOINT: &str = "PLUMBLINE_STS_ENDPOINT";

/// Where Azure's directories answer.
pub(crate) const AZURE_LOGIN_ENDPOINT: &str = "PLUMBLINE_AZURE_LOGIN_ENDPOINT";

/// What is wrong with a setting. Never holds its value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It is needed and not there.
    #[error("{name} is not set: {meaning}")]
    Missing {
        /// The variable.
        name: String,
        /// What it is for.
        meaning: &'static str,
    },
    /// It cannot be understood.
    #[error("{name} has a wrong value: {expected}")]
    Wrong {
        /// The variable.
        name: String,
        /// What it must be.
        expected: String,
    },
}

impl SettingError {
    pub(crate) fn wrong(name: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Wrong { name: name.into(), expected: expected.into() }
    }
}

/// The variables of a process, as a value: tests make their own. Any of them may be a secret.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, SecretText>);

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), SecretText::new(value))).collect())
    }
}

impl Environment {
    /// This process's variables. Those that are not text are left out.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// `None` if it is not set, or empty.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(SecretText::expose).filter(|value| !value.is_empty())
    }

    pub(crate) fn get(&self, name: &str, meaning: &'static str) -> Result<&str, SettingError> {
        self.find(name).ok_or_else(|| SettingError::Missing { name: name.into(), meaning })
    }

    /// Names and values of the variables that begin with the prefix, without it.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.expose())))
    }
}

/// Wires a function from its process's environment: database, object store, waker, keys, limits. Refuses to start one
/// that lacks a key.
pub async fn deps_from_environment(function: Function) -> anyhow::Result<Deps> {
    let environment = Environment::of_process();
    keys::check(function, &keys::keyring(&environment)?)?;
    deps_from(&environment).await
}

/// Wires a function from the given settings. Nothing is connected yet.
pub async fn deps_from(environment: &Environment) -> anyhow::Result<Deps> {
    // Several crates bring rustls; without a choice it refuses to guess which cryptography to use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let keys = keys::keyring(environment)?;
    let public_url = public_url(environment)?;
    Ok(Deps {
        db: database::pool(environment)?,
        blobs: stores::blob_store(environment, &keys, &public_url).await?,
        state_stores: Arc::new(OpenStores::new(Arc::new(AccountStores::from_environment(environment)))),
        waker: stores::waker(environment).await?,
        ids: IdSource,
        keys: Arc::new(keys),
        limits: Arc::new(limits::limits(environment)?),
        public_url: public_url.into(),
        local_repos_root: environment.find("PLUMBLINE_LOCAL_REPOS_ROOT").map(Into::into),
        allow_private_addresses: allow_private_addresses(environment)?,
        // Only `callback` hands out bundles.
        task_identity: None,
        overrides: Arc::new(overrides(environment)?),
        audit_signer: signers::audit_signer(environment).await?,
        issuer_signers: signers::issuer_signers(environment).await?,
        sts_endpoint: environment.find(STS_ENDPOINT).map(Into::into),
        endpoints: Arc::new(endpoints(environment)),
    })
}

/// Where the services answer whose credentials are tried.
fn endpoints(environment: &Environment) -> Endpoints {
    let usual = Endpoints::default();
    let of = |name: &str, usual: String| match environment.find(name) {
        Some(address) => address.trim_end_matches('/').to_owned(),
        None => usual,
    };
    Endpoints {
        azure_directories: of(AZURE_LOGIN_ENDPOINT, usual.azure_directories),
        azure: of("PLUMBLINE_AZURE_ENDPOINT", usual.azure),
        google_oauth: of("PLUMBLINE_GOOGLE_OAUTH_ENDPOINT", usual.google_oauth),
        slack: of("PLUMBLINE_SLACK_ENDPOINT", usual.slack),
        infracost: of("PLUMBLINE_INFRACOST_ENDPOINT", usual.infracost),
    }
}

/// Only the database: `migrate` needs nothing else, and no keys.
pub fn database_from_environment() -> anyhow::Result<Db> {
    Ok(database::pool(&Environment::of_process())?)
}

/// The address that executors call back.
pub fn launcher_url() -> anyhow::Result<String> {
    let environment = Environment::of_process();
    Ok(match environment.find("PLUMBLINE_CALLBACK_URL") {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => public_url(&environment)?,
    })
}

/// Only an emulator sets this: on AWS a private address is ours, or a neighbour's.
fn allow_private_addresses(environment: &Environment) -> Result<bool, SettingError> {
    let name = "PLUMBLINE_ALLOW_PRIVATE_ADDRESSES";
    match environment.find(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(SettingError::wrong(name, "must be true or false")),
    }
}

fn public_url(environment: &Environment) -> Result<String, SettingError> {
    let name = "PLUMBLINE_PUBLIC_URL";
    let url = environment.get(name, "the address where people reach this installation, with https://")?;
    // Executors fetch credentials from there.
    let is_of_this_machine = || {
        let host = url.strip_prefix("http://").unwrap_or_default();
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let name = host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(name, _)| name);
        ["127.0.0.1", "localhost", "[::1]"].contains(&name)
    };
    let is_plain_allowed =
        url.starts_with("http://") && (is_of_this_machine() || allow_private_addresses(environment)?);
    if url.starts_with("https://") || is_plain_allowed {
        Ok(url.trim_end_matches('/').to_owned())
    } else {
        Err(SettingError::wrong(name, "must begin with https://, because credentials are fetched from there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_fetched_in_the_clear_from_another_machine() {
        let name = "PLUMBLINE_PUBLIC_URL";
        let read = |url: &str, more: &[(&str, &str)]| {
            public_url(&[(name, url)].into_iter().chain(more.iter().copied()).collect())
        };
        for fine in [
            "https://plumbline.example",
            "http://127.0.0.1:8080/",
            "http://localhost",
            "http://[::1]",
            "http://[::1]:80",
        ] {
            assert_eq!(read(fine, &[]), Ok(fine.trim_end_matches('/').to_owned()));
        }
        for plain in [
            "http://plumbline.example",
            "http://10.0.0.1:80",
            "http://127.0.0.1.example",
            "http://localhost@x",
        ] {
            assert!(matches!(read(plain, &[]), Err(SettingError::Wrong { .. })), "{plain}");
            assert!(read(plain, &[("PLUMBLINE_ALLOW_PRIVATE_ADDRESSES", "true")]).is_ok(), "an emulator may");
        }
        assert!(read("plumbline.example", &[("PLUMBLINE_ALLOW_PRIVATE_ADDRESSES", "true")]).is_err());
    }
}
