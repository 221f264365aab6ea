//! The database's address and its TLS.

use std::sync::Arc;

use plumbline_core::db::{Connect, Db, PgMode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::environment::{Environment, SettingError};

const URL: &str = "DATABASE_URL";
const URL_EXPECTED: &str = "must be a libpq URL: postgres://user:password@host:port/database?sslmode=require";

/// Whether the connection is encrypted. The server's certificate is always checked then, its name too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tls {
    Off,
    Required,
}

pub(crate) fn pool(environment: &Environment) -> Result<Db, SettingError> {
    let (url, tls) = address(environment)?;
    let connect = Connect { url, pool_size: pool_size(environment)?, mode: mode(environment)? };
    let pool = match tls {
        Tls::Off => Db::new(&connect),
        Tls::Required => Db::with_tls(&connect, MakeRustlsConnect::new(client_config(environment)?)),
    };
    // The cause would quote the URL, password included.
    pool.map_err(|_| SettingError::wrong(URL, URL_EXPECTED))
}

fn pool_size(environment: &Environment) -> Result<usize, SettingError> {
    let name = "PLUMBLINE_POOL_SIZE";
    match environment.find(name).map(str::parse::<usize>) {
        None => Ok(1),
        Some(Ok(size)) if size > 0 => Ok(size),
        Some(_) => Err(SettingError::wrong(name, "must be a whole number above zero")),
    }
}

fn mode(environment: &Environment) -> Result<PgMode, SettingError> {
    match environment.find("PG_MODE") {
        None | Some("direct") => Ok(PgMode::Direct),
        Some("pooled") => Ok(PgMode::Pooled),
        Some(_) => Err(SettingError::wrong("PG_MODE", "must be `direct` or `pooled`")),
    }
}

/// The URL as the driver understands it, and what it says about TLS.
fn address(environment: &Environment) -> Result<(String, Tls), SettingError> {
    let url = match environment.find(URL) {
        Some(url) => url.to_owned(),
        None => from_parts(environment)?,
    };
    // The driver knows fewer modes than libpq; ours are never weaker than what was asked for.
    for strict in ["sslmode=verify-full", "sslmode=verify-ca", "sslmode=require"] {
        if url.contains(strict) {
            return Ok((url.replace(strict, "sslmode=require"), Tls::Required));
        }
    }
    Ok((url, Tls::Off))
}

/// libpq's variables as a URL.
fn from_parts(environment: &Environment) -> Result<String, SettingError> {
    let meaning = "the database's address: set DATABASE_URL, or PGHOST, PGUSER, PGDATABASE and PGPASSWORD";
    let host = environment.find("PGHOST").ok_or(SettingError::Missing { name: URL.into(), meaning })?;
    let user = environment.get("PGUSER", meaning)?;
    let database = environment.get("PGDATABASE", meaning)?;
    let mut url = format!("postgres://{}", encode(user));
    if let Some(password) = environment.find("PGPASSWORD") {
        url.push(':');
        url.push_str(&encode(password));
    }
    let port = environment.find("PGPORT").unwrap_or("5432");
    let mode = environment.find("PGSSLMODE").unwrap_or("require");
    Ok(format!("{url}@{}:{port}/{}?sslmode={mode}", encode(host), encode(database)))
}

fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
        }
        out
    })
}

fn client_config(environment: &Environment) -> Result<ClientConfig, SettingError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots(environment)?)
        .with_no_client_auth();
    Ok(config)
}

fn roots(environment: &Environment) -> Result<RootCertStore, SettingError> {
    let name = "PGSSLROOTCERT";
    let mut roots = RootCertStore::empty();
    let Some(file) = environment.find(name) else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let unreadable =
        || SettingError::wrong(name, "must be a readable PEM file with at least one certificate");
    for certificate in CertificateDer::pem_file_iter(file).map_err(|_| unreadable())? {
        roots.add(certificate.map_err(|_| unreadable())?).map_err(|_| unreadable())?;
    }
    if roots.is_empty() { Err(unreadable()) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_a_url_with_tls_unless_it_is_switched_off() {
        let parts = [("PGHOST", "db"), ("PGUSER", "plumb"), ("PGPASSWORD", "p@ss/1"), ("PGDATABASE", "main")];
        let url = "postgres://plumb:p%40ss%2F1@db:5432/main?sslmode=require".to_owned();
        assert_eq!(address(&parts.into_iter().collect()), Ok((url, Tls::Required)));
        let off = parts.into_iter().chain([("PGSSLMODE", "disable")]).collect();
        assert_eq!(address(&off).expect("complete").1, Tls::Off);
    }

    #[test]
    fn a_stricter_mode_is_never_weakened() {
        let strict = [("DATABASE_URL", "postgres://u@h/d?sslmode=verify-full")].into_iter().collect();
        assert_eq!(address(&strict), Ok(("postgres://u@h/d?sslmode=require".into(), Tls::Required)));
    }

    #[test]
    fn a_function_has_one_connection_unless_told_otherwise() {
        let size = |value: Option<&'static str>| {
            pool_size(&value.map(|value| ("PLUMBLINE_POOL_SIZE", value)).into_iter().collect())
        };
        assert_eq!(size(None), Ok(1));
        assert_eq!(size(Some("4")), Ok(4));
        for wrong in ["0", "-1", "many"] {
            assert!(size(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_broken_url_is_not_echoed() {
        let broken = [("DATABASE_URL", "postgres://u:hunter2@:::/d")].into_iter().collect();
        let error = pool(&broken).expect_err("no URL").to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
