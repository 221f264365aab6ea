//! The chain survives a dump and a restore with Postgres's own programs, and a server with another clock on its wall.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use plumbline_core::Deps;
use plumbline_core::access::Scope;
use plumbline_core::audit;
use plumbline_core::db::testing::TestDatabase;
use plumbline_core::db::{Connect, Db, PgMode, Query as _};

use super::audit::{auditor, checkpoint, entry, record, verify};
use crate::plane::{TestPlane, cluster_url};

/// Programs of Postgres that are at least as new as the server; `None`, with the reason printed, where there are none.
async fn programs(plane: &TestPlane) -> Option<[PathBuf; 2]> {
    let conn = plane.db().conn().await.unwrap();
    let row = conn.query_one("SELECT current_setting('server_version_num')::int / 10000", &[]).await.unwrap();
    let server: i32 = row.get(0);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual =
        (server..server + 5).map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin")));
    let place = usual.chain(std::env::split_paths(&path)).find(|place| {
        let Ok(said) = Command::new(place.join("pg_dump")).arg("--version").output() else { return false };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = said.split_whitespace().find_map(|word| word.split('.').next()?.parse::<i32>().ok());
        version.is_some_and(|version| version >= server) && place.join("psql").is_file()
    });
    let Some(place) = place else {
        eprintln!("SKIP: no pg_dump and psql of version {server} or later were found");
        return None;
    };
    Some(["pg_dump", "psql"].map(|name| place.join(name)))
}

#[tokio::test]
async fn a_restored_log_verifies_and_goes_on() {
    let plane = TestPlane::start().await;
    let Some([pg_dump, psql]) = programs(&plane).await else { return };
    let unit = plane.unit("blue").await;
    for n in 0..5 {
        record(&plane, None, n).await;
        record(&plane, Some(unit), n).await;
    }
    assert!(checkpoint(&plane).await);
    let before = verify(&plane).await;

    let restored = TestDatabase::create_empty(&cluster_url()).await.unwrap();
    let dump =
        Command::new(pg_dump).arg("--no-owner").arg("--no-acl").arg(&plane.database_url).output().unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let mut load = Command::new(psql)
        .args(["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1"])
        .arg(&restored.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = load.stdin.take().unwrap();
    let loaded = tokio::task::spawn_blocking(move || {
        use std::io::Write as _;
        stdin.write_all(&dump.stdout).unwrap();
        drop(stdin);
        load.wait().unwrap()
    });
    assert!(loaded.await.unwrap().success());

    let deps = Deps { db: restored.pool(4, PgMode::Direct).unwrap(), ..plane.deps.clone() };
    let after = audit::service::verify(&deps, &auditor(Scope::All)).await.unwrap();
    assert!(after.ok, "{after:?}");
    assert_eq!((after.chains, after.entries), (before.chains, before.entries));
    let write = deps.db.transaction(async |tx| audit::service::record(tx, &entry(None, 99)).await);
    write.await.unwrap();
    assert!(audit::service::checkpoint(&deps).await.unwrap());
    let later = audit::service::verify(&deps, &auditor(Scope::All)).await.unwrap();
    assert!(later.ok && later.entries == before.entries + 1, "{later:?}");
}

#[tokio::test]
async fn a_server_in_another_time_zone_and_with_other_formats_continues_the_same_chain() {
    let plane = TestPlane::start().await;
    record(&plane, None, 1).await;
    for settings in [
        "-c%20TimeZone%3DPacific/Kiritimati",
        "-c%20TimeZone%3DAmerica/St_Johns%20-c%20DateStyle%3DSQL,DMY",
        "-c%20IntervalStyle%3Diso_8601%20-c%20extra_float_digits%3D-2",
    ] {
        let connect = Connect {
            url: format!("{}?options={settings}", plane.database_url),
            pool_size: 2,
            mode: PgMode::Direct,
        };
        let deps = Deps { db: Db::new(&connect).unwrap(), ..plane.deps.clone() };
        let write = deps.db.transaction(async |tx| audit::service::record(tx, &entry(None, 2)).await);
        write.await.unwrap();
        let there = audit::service::verify(&deps, &auditor(Scope::All)).await.unwrap();
        assert!(there.ok, "{settings}: {there:?}");
        let here = verify(&plane).await;
        assert!(here.ok, "{settings}: {here:?}");
    }
    assert_eq!(verify(&plane).await.entries, 4);
}
