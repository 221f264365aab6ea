//! The checked-in schema is what the migrations make.

use plumbline_emulator::schema::describe;

use crate::plane::TestPlane;

#[tokio::test]
async fn schema_sql_is_what_a_fresh_database_looks_like() {
    let plane = TestPlane::start().await;
    let actual = describe(plane.db()).await.expect("described");
    let kept = include_str!("../../../migrations/schema.sql");
    let differs = actual.lines().zip(kept.lines()).find(|(actual, kept)| actual != kept);
    assert!(
        actual == kept,
        "migrations/schema.sql is not up to date (run `make schema`); first difference: {differs:?}"
    );
}
