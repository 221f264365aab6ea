//! Keys of AWS KMS that sign in place of our own.

use std::sync::Arc;

use plumbline_core::ports::{CheckpointSigner, NamedSigner};
use plumbline_kms::{KmsSigner, KmsTokenSigner, SetupError};

use crate::environment::{Environment, SettingError};

const AUDIT_KMS_KEY: &str = "PLUMBLINE_AUDIT_KMS_KEY";
const ISSUER_KMS_KEYS: &str = "PLUMBLINE_ISSUER_KMS_KEYS";
const KMS_ENDPOINT: &str = "AWS_ENDPOINT_URL_KMS";

/// `None`: the key of the audit domain signs.
pub(crate) async fn audit_signer(
    environment: &Environment,
) -> Result<Option<Arc<dyn CheckpointSigner>>, SettingError> {
    let Some(key) = environment.find(AUDIT_KMS_KEY) else { return Ok(None) };
    let signer = KmsSigner::from_environment(key, environment.find(KMS_ENDPOINT)).await;
    let signer = signer.map_err(|error| unusable(AUDIT_KMS_KEY, &error))?;
    Ok(Some(Arc::new(signer)))
}

/// None: keys in the database sign.
pub(crate) async fn issuer_signers(environment: &Environment) -> Result<Arc<[NamedSigner]>, SettingError> {
    let mut signers: Vec<NamedSigner> = Vec::new();
    let names = environment.find(ISSUER_KMS_KEYS).unwrap_or_default();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if signers.iter().any(|known| known.name == name) {
            return Err(SettingError::wrong(ISSUER_KMS_KEYS, "names a key twice"));
        }
        let signer = KmsTokenSigner::from_environment(name, environment.find(KMS_ENDPOINT)).await;
        let signer = Arc::new(signer.map_err(|error| unusable(ISSUER_KMS_KEYS, &error))?);
        signers.push(NamedSigner { name: name.to_owned(), signer });
    }
    Ok(signers.into())
}

fn unusable(name: &'static str, error: &SetupError) -> SettingError {
    SettingError::wrong(name, error.to_string())
}
