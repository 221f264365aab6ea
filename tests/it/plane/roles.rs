//! The functions' own Postgres roles and keys, as a deploy gives them: each function of a plane signs in as itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_core::Deps;
use plumbline_core::db::{Connect, Db, PgMode};
use plumbline_runtime::Function;

use super::{POOLER_PORT_VARIABLE, TestPlane};

/// Brings the grants of the database up to date and gives the roles a password: they have none of their own.
pub async fn grant(db: &Db) {
    // Roles belong to the cluster: tests race for them, and the first gives the password.
    const ALTER: &str = "
        DO $$ DECLARE role text; BEGIN
            PERFORM pg_advisory_xact_lock(7210412);
            FOR role IN SELECT rolname FROM pg_authid WHERE rolname LIKE 'plumbline\\_%' AND rolpassword IS NULL LOOP
                EXECUTE format('ALTER ROLE %I PASSWORD %L', role, 'for tests only');
            END LOOP;
        END $$";
    let report = plumbline_migrate::handle(db).await.expect("migrated");
    assert!(report.grants_applied && report.migrations_applied == 0);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match db.conn().await.expect("a connection").batch(ALTER).await {
            Ok(()) => return,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
    }
}

/// A pool of the database for a role that [`grant`] has prepared.
pub fn pool_as(database_url: &str, role: &str, pool_size: usize) -> Db {
    pool_in_mode(database_url, role, pool_size, PgMode::Direct)
}

fn pool_in_mode(database_url: &str, role: &str, pool_size: usize, mode: PgMode) -> Db {
    let (_, rest) = database_url.split_once('@').expect("a URL with a user");
    let url = format!("postgres://{role}:for%20tests%20only@{rest}?connect_timeout=30");
    Db::new(&Connect { url, pool_size, mode }).expect("a pool")
}

/// A pool for each function. Behind the pooler there are none: it knows the owner alone.
pub(super) fn pools(database_url: &str, pool_size: usize, mode: PgMode) -> BTreeMap<Function, Db> {
    if std::env::var_os(POOLER_PORT_VARIABLE).is_some() {
        return BTreeMap::new();
    }
    let pool = |function: Function| (function, pool_in_mode(database_url, function.role(), pool_size, mode));
    Function::ALL.map(pool).into()
}

impl TestPlane {
    /// From now on every function has these connections, which are watched: the owner's.
    pub fn share(&mut self, db: Db) {
        self.roles.clear();
        self.deps.db = db;
    }

    /// The wiring of one function: with a role and keys of its own.
    pub fn as_function(&self, function: Function) -> Deps {
        match self.roles.get(&function) {
            None => self.deps.clone(),
            Some(db) => {
                Deps { db: db.clone(), keys: Arc::new(function.keys(&self.deps.keys)), ..self.deps.clone() }
            }
        }
    }
}
