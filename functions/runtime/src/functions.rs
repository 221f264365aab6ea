//! What each function is given, and no other.

use plumbline_core::secrets::Domain;

/// A function that serves: `migrate` runs before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// Users' routes.
    Api,
    /// Terraform's HTTP backend.
    Tfstate,
    /// What executors trade, report and upload.
    Callback,
    /// Claims and launches.
    Worker,
    /// Short tasks that reach addresses which a tenant chose.
    Outbound,
    /// Sweeps, then what the worker does.
    Reconciler,
}

impl Function {
    /// Every function.
    pub const ALL: [Self; 6] =
        [Self::Api, Self::Tfstate, Self::Callback, Self::Worker, Self::Outbound, Self::Reconciler];

    /// Its name, as in the name of its program `plumbline-<name>`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Tfstate => "tfstate",
            Self::Callback => "callback",
            Self::Worker => "worker",
            Self::Outbound => "outbound",
            Self::Reconciler => "reconciler",
        }
    }

    /// Its Postgres role.
    pub fn role(self) -> &'static str {
        match self {
            Self::Api => "plumbline_api",
            Self::Tfstate => "plumbline_tfstate",
            Self::Callback => "plumbline_callback",
            Self::Worker => "plumbline_worker",
            Self::Outbound => "plumbline_outbound",
            Self::Reconciler => "plumbline_reconciler",
        }
    }

    /// The domains whose keys it gets. Where the object store is a directory, each also gets the key of `Blobs`.
    pub fn key_domains(self) -> &'static [Domain] {
        match self {
            // Sealing needs the key that opens, too; what was signed in the audit log is checked with it.
            Self::Api => &[
                Domain::Sessions,
                Domain::Audit,
                Domain::Config,
                Domain::Git,
                Domain::Variables,
                Domain::Aws,
                Domain::Azure,
                Domain::Gcp,
                Domain::Kubernetes,
            ],
            Self::Tfstate => &[Domain::Sessions],
            // Bundles carry what lets git and clouds in; nobody else's secrets are opened there.
            Self::Callback => &[
                Domain::Executors,
                Domain::Variables,
                Domain::Git,
                Domain::Aws,
                Domain::Azure,
                Domain::Gcp,
                Domain::Kubernetes,
            ],
            Self::Worker => &[Domain::Executors],
            Self::Outbound => &[Domain::Git, Domain::Aws],
            Self::Reconciler => &[Domain::Executors, Domain::Audit],
        }
    }
}
