//! The registry of sealed columns, compared with the schema and with the sources.

use std::collections::BTreeSet;

use plumbline_core::db::Query as _;
use plumbline_core::rekeys::SEALED_COLUMNS;

use crate::plane::TestPlane;

/// Columns whose names say that they are sealed, in order.
const NAMED_SEALED: &str = r"
    SELECT table_name || '.' || column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND data_type <> 'boolean'
      AND (column_name ~ '(^|_)sealed$' OR column_name LIKE '%\_encrypted') ORDER BY 1";

#[tokio::test]
async fn every_sealed_column_of_the_schema_is_in_the_registry() {
    let plane = TestPlane::start().await;
    let conn = plane.db().conn().await.unwrap();
    let named = async || -> BTreeSet<String> {
        conn.query(NAMED_SEALED, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    // Fields of JSON columns are looked for in the sources, below.
    let registered = SEALED_COLUMNS.iter().filter(|column| !column.column.contains('.'));
    let registered: BTreeSet<String> =
        registered.map(|column| format!("{}.{}", column.table, column.column)).collect();
    assert_eq!(named().await, registered, "the schema, and core/src/rekeys/columns.rs");

    // The check sees what it is for.
    conn.batch("CREATE TABLE planted (id uuid PRIMARY KEY, key_encrypted text)").await.unwrap();
    assert!(named().await.contains("planted.key_encrypted"));
}

/// Questions and deeds, no values.
const NO_VALUES: [&str; 3] = ["is_sealed", "open_sealed", "is_encrypted"];

#[test]
fn every_sealed_field_in_the_sources_is_in_the_registry() {
    let columns = SEALED_COLUMNS.iter().map(|column| column.column.rsplit('.').next().unwrap_or_default());
    // One that is called `sealed` and nothing else is a word of its own everywhere: the schema is looked at for those.
    let known: BTreeSet<&str> = columns.filter(|column| *column != "sealed").collect();
    let mut found = BTreeSet::new();
    for (_, text) in crate::architecture::shipped_sources("core/src") {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        let sealed = words.filter(|word| word.ends_with("_sealed") || word.ends_with("_encrypted"));
        found.extend(sealed.filter(|word| !NO_VALUES.contains(word)).map(str::to_owned));
    }
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, known, "names of sealed values in core, and core/src/rekeys/columns.rs");
}
