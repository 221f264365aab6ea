//! How an emulator is run.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use plumbline_core::limits::Limits;

/// Which requests the gateway lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GatewayMode {
    /// AWS's limits: seven methods, 6 MB per event and answer, 10 MB, 30 s, 10,240 bytes of headers.
    Aws,
    /// None of them: also for clients that send LOCK and UNLOCK.
    Open,
}

/// What a wake-up does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wakes {
    /// Each wakes the worker once.
    Once,
    /// Each is lost: only the sweep finds work.
    Never,
    /// Each arrives three times, at the same time.
    Thrice,
}

/// Where the functions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hosting {
    /// In this process.
    Process,
    /// The functions' own programs, behind Lambda's runtime API.
    Lambda,
}

/// Settings of [`crate::Emulator::start`]. Ports of `0` are chosen freely.
#[derive(Clone, Debug)]
pub struct Options {
    /// Everything that is kept lies below it.
    pub directory: PathBuf,
    /// Where downloaded programs are kept.
    pub cache: PathBuf,
    /// Port of the gateway: users and executors.
    pub port: u16,
    /// Port of the object store.
    pub store_port: u16,
    /// Port of Postgres.
    pub postgres_port: u16,
    /// Port of a transaction pooler before it, through which the functions go; somebody else runs it.
    pub pooler_port: Option<u16>,
    /// Off only for scratch directories.
    pub fsync: bool,
    /// What the gateway refuses.
    pub gateway: GatewayMode,
    /// Time between two sweeps; on AWS it is a minute.
    pub sweep_interval: Duration,
    /// What wake-ups do.
    pub wakes: Wakes,
    /// Where the functions run.
    pub hosting: Hosting,
    /// Directory of the functions' programs and of `executor-task`.
    pub programs: PathBuf,
    /// Local repositories below this directory may be cloned by path; none without it.
    pub repositories: Option<PathBuf>,
    /// Executors take the providers that lie in this directory from there.
    pub provider_mirror: Option<PathBuf>,
    /// Where AWS's token service answers, for executors and tests of accounts; its public addresses without it.
    pub sts_endpoint: Option<String>,
    /// The product's limits.
    pub limits: Limits,
}

impl Options {
    /// Random ports, everything below `directory`, nothing durable against a crash of the machine.
    pub fn scratch(directory: impl Into<PathBuf>, programs: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            cache: directory.join("cache"),
            directory,
            port: 0,
            store_port: 0,
            postgres_port: 0,
            pooler_port: None,
            fsync: false,
            gateway: GatewayMode::Aws,
            sweep_interval: Duration::from_secs(2),
            wakes: Wakes::Once,
            hosting: Hosting::Process,
            programs: programs.into(),
            repositories: None,
            provider_mirror: None,
            sts_endpoint: None,
            limits: Limits { bcrypt_cost: 4, ..Limits::default() },
        }
    }
}
