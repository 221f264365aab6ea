//! What the database of a plane holds.

use std::collections::BTreeMap;

use plumbline_core::db::Query as _;

use super::TestPlane;

impl TestPlane {
    /// Every row of every table, as text: equal before and after if nothing has changed.
    pub async fn every_row(&self) -> BTreeMap<String, String> {
        const TABLES: &str = "
            SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
        let conn = self.db().conn().await.expect("a connection");
        let mut all = BTreeMap::new();
        for table in conn.query(TABLES, &[]).await.expect("the tables") {
            let table: String = table.get(0);
            let rows =
                format!("SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM {table} t");
            all.insert(table, conn.query_one(&rows, &[]).await.expect("its rows").get(0));
        }
        assert!(all.len() > 20, "the tables are found");
        all
    }
}
