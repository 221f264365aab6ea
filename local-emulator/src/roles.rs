//! A Postgres role and keys for each function, as on AWS: a grant or a key that is missing shows here first.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use plumbline_core::Deps;
use plumbline_core::db::{Connect, Db, PgMode};
use plumbline_runtime::Function;

use crate::home::random_word;

/// Connections of one function in this process.
const POOL_SIZE: usize = 8;

/// Where the functions find the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    /// On loopback.
    pub port: u16,
    /// The database's name.
    pub database: &'static str,
    /// How statements are sent.
    pub mode: PgMode,
}

/// The roles of this start.
pub(crate) struct Roles {
    address: Address,
    passwords: BTreeMap<Function, String>,
}

impl Roles {
    /// Migrates, brings the grants up to date and gives each role a password that is good until the next start.
    pub(crate) async fn prepare(owner: &Db, address: Address) -> anyhow::Result<Self> {
        let report = plumbline_migrate::handle(owner).await.context("the migrations failed")?;
        ensure!(report.grants_applied, "the database's owner may not make the functions' roles");
        let passwords: BTreeMap<Function, String> =
            Function::ALL.into_iter().map(|function| (function, random_word())).collect();
        let conn = owner.conn().await?;
        for (function, password) in &passwords {
            // Both are words: nothing in them needs quoting.
            conn.batch(&["ALTER ROLE ", function.role(), " PASSWORD '", password, "'"].concat()).await?;
        }
        Ok(Self { address, passwords })
    }

    /// How statements are sent.
    pub(crate) fn mode(&self) -> PgMode {
        self.address.mode
    }

    /// The database's URL for a function.
    pub(crate) fn url(&self, function: Function) -> String {
        let Address { port, database, .. } = self.address;
        format!("postgres://{}:{}@127.0.0.1:{port}/{database}", function.role(), self.passwords[&function])
    }

    /// The wiring of a function in this process.
    pub(crate) fn deps(&self, all: &Deps, function: Function) -> anyhow::Result<Deps> {
        let connect = Connect { url: self.url(function), pool_size: POOL_SIZE, mode: self.address.mode };
        Ok(Deps { db: Db::new(&connect)?, keys: Arc::new(function.keys(&all.keys)), ..all.clone() })
    }
}
