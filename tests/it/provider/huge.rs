//! One attribute of many megabytes, on a whole emulator: more than a request of the API or a row may hold, and no more
//! than a debug build reads in a few seconds.

use plumbline_core::db::Query as _;

use super::Mirror;
use super::half_way::Plane;

const MEGABYTES: usize = 6;
const MAIN: &str = r#"
data "plumbtest_noise" "much" {
  seed      = 7
  megabytes = 6
}
resource "terraform_data" "big" {
  input = data.plumbtest_noise.much.text
}
"#;
/// Live log chunks are the largest thing that a row may hold; as text they are twice as long.
const ROW_BYTES_MAX: i64 = (1 << 20) + (4 << 10);
const TABLES: &str = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attribute_larger_than_a_request_is_planned_applied_and_kept_outside_of_the_database() {
    let Some(mirror) = Mirror::find() else { return };
    let plane = Plane::start(mirror, MAIN).await;
    let session = &plane.session;
    let run = plane.begin("apply").await;
    let planned = plane.approve(&run).await;
    assert_eq!(planned["plan_summary"]["add"], 1, "{planned}");
    session.run(&run, "applied").await;

    let plan = session.get(&format!("runs/{run}/artifacts/plan_json_redacted")).await;
    let text = plan["resource_changes"][0]["change"]["after"]["input"].as_str().expect("the attribute");
    assert_eq!(text.len(), MEGABYTES << 20);
    let versions = session.get(&format!("workspaces/{}/state-versions", plane.workspace)).await;
    assert!(versions["items"][0]["size_bytes"].as_u64().is_some_and(|size| size > (MEGABYTES as u64) << 20));

    let conn = plane.emulator.deps.db.conn().await.unwrap();
    let tables = conn.query(TABLES, &[]).await.unwrap();
    assert!(tables.len() > 10, "the tables are found");
    for table in tables {
        let name: String = table.get(0);
        let largest = format!("SELECT coalesce(max(octet_length(t::text)), 0)::int8 FROM {name} t");
        let bytes: i64 = conn.query_opt(&largest, &[]).await.unwrap().expect("one row").get(0);
        assert!(bytes <= ROW_BYTES_MAX, "a row of {name} has {bytes} bytes");
    }
    plane.stop().await;
}
