//! The checked-in schema is what the migrations make.

use plumbline_core::db::testing::TestDatabase;
use plumbline_core::db::{Conn, PgMode, Query as _};
use plumbline_emulator::schema::describe;

use crate::plane::{TestPlane, cluster_url};

#[tokio::test]
async fn schema_sql_is_what_a_fresh_database_looks_like() {
    // As the migrations alone leave it: planes have the grants, too.
    let database = TestDatabase::create(&cluster_url()).await.expect("a database for this test");
    let fresh = database.pool(1, PgMode::Direct).expect("a pool");
    let actual = describe(&fresh).await.expect("described");
    let kept = include_str!("../../../migrations/schema.sql");
    let differs = actual.lines().zip(kept.lines()).find(|(actual, kept)| actual != kept);
    assert!(
        actual == kept,
        "migrations/schema.sql is not up to date (run `make schema`); first difference: {differs:?}"
    );
}

const NULLABLE_UNITS: &str = "
    SELECT table_name::text FROM information_schema.columns
    WHERE table_schema = 'public' AND column_name = 'business_unit_id' AND is_nullable = 'YES' ORDER BY 1";

/// Foreign keys between two tables that both belong to units, and that do not contain the unit.
const CROSSING_KEYS: &str = "
    SELECT c.conrelid::regclass::text || '.' || c.conname
    FROM pg_constraint c
    JOIN pg_attribute child ON child.attrelid = c.conrelid AND child.attname = 'business_unit_id'
    JOIN pg_attribute parent ON parent.attrelid = c.confrelid AND parent.attname = 'business_unit_id'
    WHERE c.contype = 'f' AND NOT child.attnum = ANY(c.conkey)
    ORDER BY 1";

const SCOPED_TABLES: &str = "
    SELECT count(*) FROM information_schema.columns
    WHERE table_schema = 'public' AND column_name = 'business_unit_id'";

async fn names(conn: &Conn, sql: &str) -> Vec<String> {
    conn.query(sql, &[]).await.expect("asked").iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn no_row_can_belong_to_no_unit_or_point_into_another_one() {
    let plane = TestPlane::start().await;
    let conn = plane.db().conn().await.expect("connected");
    let scoped: i64 = conn.query_one(SCOPED_TABLES, &[]).await.expect("counted").get(0);
    assert!(scoped > 10, "{scoped} tables belong to units");
    // The platform has a chain of its own, which belongs to no unit.
    let platform = ["audit_entries"];
    let nullable = names(&conn, NULLABLE_UNITS).await;
    assert_eq!(nullable, platform, "tables whose rows may belong to no unit");
    assert_eq!(names(&conn, CROSSING_KEYS).await, Vec::<String>::new());

    // The check sees what it is for.
    let plant = "CREATE TABLE planted (business_unit_id uuid NOT NULL, run_id uuid REFERENCES runs (id))";
    conn.execute(plant, &[]).await.expect("planted");
    assert_eq!(names(&conn, CROSSING_KEYS).await, ["planted.planted_run_id_fkey"]);
}
