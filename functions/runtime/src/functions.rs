//! What each function is given, and no other.

use plumbline_core::secrets::{Domain, Keyring};

/// A function that serves: `migrate` runs before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// Users' routes.
    Api,
    /// Terraform's HTTP backend.
    Tfstate,
    /// Sign-in through the identity provider.
    Signin,
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
    pub const ALL: [Self; 7] = [
        Self::Api,
        Self::Tfstate,
        Self::Signin,
        Self::Callback,
        Self::Worker,
        Self::Outbound,
        Self::Reconciler,
    ];

    /// Its name, as in the name of its program `plumbline-<name>`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Tfstate => "tfstate",
            Self::Signin => "signin",
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
            Self::Signin => "plumbline_signin",
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
            // States lie in accounts of units: whoever reads, writes or removes bodies gets into those.
            Self::Tfstate => &[Domain::Sessions, Domain::Aws, Domain::Azure, Domain::Gcp],
            // The client's secret is a setting of the platform; no other sealed value can be read with its role.
            Self::Signin => &[Domain::Signin, Domain::Config],
            // Bundles carry what lets git and clouds in; nobody else's secrets are opened there.
            Self::Callback => &[
                Domain::Executors,
                // It alone signs tokens for clouds.
                Domain::Issuer,
                Domain::Variables,
                Domain::Git,
                Domain::Aws,
                Domain::Azure,
                Domain::Gcp,
                Domain::Kubernetes,
            ],
            // It indexes states.
            Self::Worker => &[Domain::Executors, Domain::Aws, Domain::Azure, Domain::Gcp],
            // What it tries belongs to units; nothing of the platform's.
            Self::Outbound => {
                &[Domain::Git, Domain::Aws, Domain::Azure, Domain::Gcp, Domain::Kubernetes, Domain::Config]
            }
            // It settles uploads and removes old versions, wherever they lie.
            Self::Reconciler => &[Domain::Executors, Domain::Audit, Domain::Aws, Domain::Azure, Domain::Gcp],
        }
    }

    /// Its keys out of all. While a root key is being replaced the reconciler also gets the keys of what it seals again,
    /// and loses them with the last previous root.
    pub fn keys(self, all: &Keyring) -> Keyring {
        let mut domains = self.key_domains().to_vec();
        if self == Self::Reconciler && all.is_rotating() {
            domains.extend(Domain::ALL.into_iter().filter(|domain| domain.seals()));
        }
        all.only(&domains)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reconciler_can_open_other_secrets_than_of_accounts_only_while_a_root_key_is_replaced() {
        let (old, new) = ("an old root key, 32 characters or more", "a new root key, 32 characters or more");
        let (one, two) = (Keyring::from_root(new), Keyring::from_roots(new, &[old]));
        let (one, two) = (one.expect("a root"), two.expect("two roots"));
        for domain in Domain::ALL.into_iter().filter(|domain| domain.seals()) {
            // Accounts of units, where states lie.
            let is_account = [Domain::Aws, Domain::Azure, Domain::Gcp].contains(&domain);
            assert_eq!(Function::Reconciler.keys(&one).key(domain).is_ok(), is_account, "{domain:?}");
            assert!(Function::Reconciler.keys(&two).key(domain).is_ok(), "{domain:?}");
            let has = |function: Function| function.keys(&two).key(domain).is_ok();
            let checks_tokens = domain == Domain::Sessions;
            assert_eq!(has(Function::Worker), is_account, "{domain:?}");
            assert_eq!(has(Function::Tfstate), checks_tokens || is_account, "{domain:?}");
        }
        assert!(Function::Reconciler.keys(&two).key(Domain::Blobs).is_err(), "it seals nothing");
    }
}
