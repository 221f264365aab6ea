//! Resources that take their time: stopping in mid-apply, and a lease that must hold meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plumbline_core::db::{Query as _, testing::set_clock_offset};
use plumbline_core::protocol::FailureKind;
use serde_json::{Value, json};

use super::half_way::Plane;
use super::{Mirror, world};
use crate::executor::world::{eventually, open_directory};

/// Three in a row; the second says `begun` and waits for `go`.
fn three(signs: &std::path::Path) -> String {
    format!(
        r#"
resource "plumbtest_slow" "first" {{
  name         = "first"
  milliseconds = 10
}}
resource "plumbtest_slow" "second" {{
  name       = "second"
  begun_file = "{0}/begun"
  until_file = "{0}/go"
  depends_on = [plumbtest_slow.first]
}}
resource "plumbtest_slow" "third" {{
  name       = "third"
  depends_on = [plumbtest_slow.second]
}}
"#,
        signs.display()
    )
}

fn names(state: &[u8]) -> Vec<String> {
    let state: Value = serde_json::from_slice(state).unwrap();
    let resources = state["resources"].as_array().unwrap();
    let mut names: Vec<String> =
        resources.iter().map(|resource| resource["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_cancelled_apply_finishes_what_it_makes_and_begins_nothing_more() {
    let Some(mirror) = Mirror::find() else { return };
    let signs = open_directory();
    let mut world = world(&mirror, &three(signs.path()));
    // The provider ends when the test says so, not when it is killed.
    world.environment.push(("PLUMBLINE_STOP_GRACE_SECONDS".into(), "60".into()));
    let planned = world.run().await;
    let running = world.start_apply(&planned);
    running.until("the apply is under way", |_| signs.path().join("begun").exists()).await;
    running
        .until("it has told what it makes", |fake| {
            fake.told().touched.iter().any(|one| one.address == "plumbtest_slow.second" && one.id.is_none())
        })
        .await;
    running.fake.cancels.store(true, Ordering::SeqCst);
    // Terraform says this when it has understood; until then it would go on with the third.
    running
        .until("terraform stops", |fake| fake.log_of("Terraform Apply").contains("Stopping operation"))
        .await;
    std::fs::write(signs.path().join("go"), "").unwrap();

    let finished = running.finish().await;
    let told = finished.fake.told();
    let failed = told.failed.as_ref().expect("a report");
    assert_eq!(failed.kind, FailureKind::Cancelled);
    assert_eq!(names(told.states.last().expect("a state")), ["first", "second"]);
    assert!(told.lock.is_none(), "the lock is given back");
    let touched: BTreeSet<&str> = told.touched.iter().map(|one| one.address.as_str()).collect();
    assert_eq!(Vec::from_iter(touched), ["plumbtest_slow.first", "plumbtest_slow.second"]);
}

const LEASE: &str = "SELECT extract(epoch FROM lease_expires_at)::float8 FROM tasks WHERE kind = 'run_apply'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_keep_the_lease_over_a_step_longer_than_it() {
    let Some(mirror) = Mirror::find() else { return };
    let signs = open_directory();
    let plane = Plane::start(mirror, &three(signs.path())).await;
    let run = plane.begin("apply").await;
    plane.approve(&run).await;
    eventually("the apply is under way", || signs.path().join("begun").exists()).await;

    let conn = plane.emulator.deps.db.conn().await.unwrap();
    let lease = async || conn.query_opt(LEASE, &[]).await.unwrap().expect("a live task").get::<_, f64>(0);
    // Three times most of a lease passes at once; each time a heartbeat makes up for it before the next.
    for passed in 1..=3_u32 {
        let before = lease().await;
        set_clock_offset(&conn, Duration::from_secs(40) * passed).await.unwrap();
        while lease().await < before + 30.0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    std::fs::write(signs.path().join("go"), "").unwrap();
    let applied = plane.session.run(&run, "applied").await;
    assert_eq!(applied["status_reason"], Value::Null);
    let steps = plane.session.get(&format!("runs/{run}/steps")).await;
    let attempts: Vec<&Value> =
        steps["items"].as_array().unwrap().iter().map(|step| &step["attempt"]).collect();
    assert!(attempts.iter().all(|attempt| **attempt == json!(1) || **attempt == json!(0)), "{attempts:?}");
    plane.stop().await;
}
