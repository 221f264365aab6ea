//! What the `main` of every function shares: settings from the environment, logs, the wiring of
//! [`plumbline_core::Deps`].
//!
//! | variable | meaning |
//! |---|---|
//! | `DATABASE_URL` | libpq URL; or its parts `PGHOST` `PGPORT` `PGUSER` `PGPASSWORD` `PGDATABASE` `PGSSLMODE` |
//! | `PGSSLROOTCERT` | PEM file with the authorities of the database's certificate; default: the public ones |
//! | `PLUMBLINE_POOL_SIZE` | connections at most; default 1 |
//! | `PG_MODE` | `direct` (default) or `pooled`, behind a transaction pooler |
//! | `PLUMBLINE_PUBLIC_URL` | where people reach us |
//! | `PLUMBLINE_CALLBACK_URL` | where executors reach us; default: the public URL |
//! | `PLUMBLINE_BLOBS` | `s3://bucket` or `file:///directory` |
//! | `PLUMBLINE_BLOBS_KMS_KEY` | the KMS key that encrypts objects in S3; default: the bucket's setting |
//! | `PLUMBLINE_BLOBS_URL` | where signed URLs of a directory point; default: the public URL with `/blobs` |
//! | `PLUMBLINE_WAKER` | `sqs:<queue URL>` or `none` (default) |
//! | `PLUMBLINE_KEY_ID`, `PLUMBLINE_KEY_<DOMAIN>` | the derived keys of this function |
//! | `PLUMBLINE_PREVIOUS_KEY_<DOMAIN>` | keys of other roots, which only open, while a root key is replaced |
//! | `CREDENTIAL_ENCRYPTION_KEY_PREVIOUS` | other root keys, one a line, beside the root key |
//! | `CREDENTIAL_ENCRYPTION_KEY` | the root key, where one process is every function; never beside derived keys |
//! | `AUTH_PROVIDER`, `AUTH_OIDC_<NAME>` | how people sign in, before what superadmins have set |
//! | `PLUMBLINE_AUDIT_KMS_KEY` | the key of AWS KMS that signs audit checkpoints; default: the key of the domain `AUDIT` |
//! | `PLUMBLINE_ISSUER_KMS_KEYS` | keys of AWS KMS, with commas between, that sign tokens for clouds one after the other; default: keys in the database |
//! | `PLUMBLINE_LAUNCHER` | `ecs` (default) or `local`: where executors run |
//! | `PLUMBLINE_EXECUTOR_ROLE`, `PLUMBLINE_STS_ENDPOINT` | how `callback` knows executors on ECS |
//! | `PLUMBLINE_STATE_S3_ENDPOINT`, `PLUMBLINE_STATE_AZURE_ENDPOINT`, `PLUMBLINE_STATE_GCS_ENDPOINT` | where stores of accounts answer, instead of their clouds: for emulators |
//! | `PLUMBLINE_LIMIT_<NAME>` | overrides a limit: `30` or `30s`, `5m`, `4h`; bytes as `1048576`, `256KiB`, `5MiB` |
//! | `PLUMBLINE_LOG` | filter of the logs, as `info` (default) or `plumbline_core=debug` |
//!
//! A wrong setting is named in a sentence with its meaning, never with its value: values may be secrets.

mod account_stores;
mod database;
mod environment;
mod functions;
mod identity;
mod keys;
mod limits;
mod logs;
mod overrides;
mod signers;
mod stores;

pub use account_stores::{AccountStores, StoreEndpoints};
pub use environment::{
    Environment, SettingError, database_from_environment, deps_from, deps_from_environment, launcher_url,
};
pub use functions::Function;
pub use identity::task_identity;
pub use logs::init_logs;
pub use overrides::{overrides, overriding};
