//! An apply: exactly the approved plan, state through the proxy, whatever the control plane does meanwhile.

use std::sync::atomic::Ordering;

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::{FailureKind, PlanReference};

use super::world::{World, git, open_directory, waiting_stack};

const STACK: &str = r#"
resource "terraform_data" "one" { input = "first" }
output "one" { value = terraform_data.one.output }
output "hidden" {
  value     = "tell-nobody"
  sensitive = true
}
"#;

#[tokio::test]
async fn an_apply_writes_state_gives_the_lock_back_and_uploads_outputs() {
    let world = World::with(&[("main.tf", STACK)]);
    let planned = world.run().await;
    let applied = world.apply(&planned).await;
    let told = applied.fake.told();
    assert!(told.apply_begun && told.apply_done, "{:?}", told.failed);
    assert_eq!((told.lock.clone(), told.unlocks), (None, 1));
    assert_eq!(told.inline_states.len(), told.states.len(), "a small state needs no detour");
    let outputs: serde_json::Value = serde_json::from_slice(&told.artifacts["outputs"]).unwrap();
    assert_eq!(outputs["one"]["value"], "first");
    drop(told);
    let log = applied.fake.log_of("Terraform Apply");
    assert!(
        log.contains("terraform_data.one: Creation complete") && log.contains("one = \"first\""),
        "{log}"
    );
    assert!(!log.contains("tell-nobody") && !log.contains("@level"));
}

#[tokio::test]
async fn an_apply_uses_the_pinned_commit_and_tool_although_the_branch_moved_on() {
    let world = World::with(&[("main.tf", STACK)]);
    let planned = world.run().await;
    world.commit(&[
        ("main.tf", &STACK.replace("first", "second")),
        ("plumbline.yaml", "tool_version: \"0.1.0\"\n"),
    ]);
    let applied = world.apply(&planned).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    assert!(applied.fake.log_of("Terraform Apply").contains("first"));
}

#[tokio::test]
async fn a_swapped_plan_file_is_refused_before_anything_is_applied() {
    let world = World::with(&[("main.tf", STACK)]);
    let planned = world.run().await;
    let fake = world.approve(&planned);
    fake.bundle.lock().unwrap().plan =
        Some(PlanReference { sha256: Sha256Digest::of(b"another plan"), lock_file_sha256: None });
    let refused = world.start_against(fake).finish().await;
    let told = refused.fake.told();
    assert!(told.failed.as_ref().expect("a report").error.contains("not the one that was approved"));
    assert!(!told.apply_begun && told.states.is_empty());
}

#[tokio::test]
async fn an_apply_that_fails_half_way_reports_what_it_touched_and_keeps_its_state() {
    let world = World::with(&[(
        "main.tf",
        r#"
resource "terraform_data" "good" {}
resource "terraform_data" "bad" {
  depends_on = [terraform_data.good]
  provisioner "local-exec" { command = "echo no; exit 3" }
}
"#,
    )]);
    let planned = world.run().await;
    let applied = world.apply(&planned).await;
    let told = applied.fake.told();
    let failed = told.failed.as_ref().expect("a report");
    assert_eq!(failed.kind, FailureKind::Permanent);
    let touched: Vec<(&str, bool)> =
        told.touched.iter().map(|touched| (touched.address.as_str(), touched.id.is_some())).collect();
    let (good, bad) = ("terraform_data.good", "terraform_data.bad");
    assert_eq!(
        touched,
        [(good, false), (good, true), (bad, false), (bad, false)],
        "begun, done, begun, failed"
    );
    assert!(!told.states.is_empty() && told.lock.is_none());
}

#[tokio::test]
async fn an_outage_in_mid_apply_stops_nothing_and_the_state_arrives_afterwards() {
    let signs = open_directory();
    let world = World::with(&[("main.tf", &waiting_stack(signs.path()))]);
    let planned = world.run().await;
    let running = world.start_apply(&planned);
    running.until("the apply is under way", |_| signs.path().join("begun").exists()).await;
    running.fake.is_away.store(true, Ordering::SeqCst);
    std::fs::write(signs.path().join("go"), "").unwrap();
    // Longer than terraform's own patience with a backend that does not answer.
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    running.fake.is_away.store(false, Ordering::SeqCst);
    let applied = running.finish().await;
    let told = applied.fake.told();
    assert!(told.apply_done, "{:?}", told.failed);
    assert_eq!(told.states.len(), 1);
    assert!(told.lock.is_none());
}

#[tokio::test]
async fn a_fenced_apply_delivers_its_state_and_reports_nothing() {
    let signs = open_directory();
    let world = World::with(&[("main.tf", &waiting_stack(signs.path()))]);
    let planned = world.run().await;
    let running = world.start_apply(&planned);
    running.until("the apply is under way", |_| signs.path().join("begun").exists()).await;
    running.fake.is_lease_lost.store(true, Ordering::SeqCst);
    let applied = running.finish().await;
    assert_eq!(applied.code, Some(3));
    let told = applied.fake.told();
    assert!(told.failed.is_none() && !told.apply_done);
    assert!(!told.states.is_empty(), "the live lock holder's write is accepted");
    assert!(told.lock.is_none());
}

#[tokio::test]
async fn a_refused_state_write_fails_the_apply_and_keeps_the_state_with_the_run() {
    let world = World::with(&[("main.tf", STACK)]);
    let planned = world.run().await;
    planned.fake.refuses_states.store(true, Ordering::SeqCst);
    let applied = world.apply(&planned).await;
    let told = applied.fake.told();
    assert!(told.failed.is_some() && !told.apply_done);
    assert!(told.artifacts.contains_key("errored_state"));
}

#[tokio::test]
async fn a_large_state_goes_through_the_object_store() {
    let world = World::with(&[(
        "main.tf",
        r#"
resource "terraform_data" "big" {
  count = 80
  input = join("", [for i in range(1000) : "0123456789abcdef0123456789abcdef"])
}
"#,
    )]);
    let planned = world.run().await;
    let applied = world.apply(&planned).await;
    let told = applied.fake.told();
    assert!(told.apply_done, "{:?}", told.failed);
    assert!(told.states.last().is_some_and(|state| state.len() > 2 << 20));
    let inline = &told.inline_states;
    assert!(inline.iter().all(|bytes| *bytes <= 1 << 20), "sent through the control plane: {inline:?}");
}

#[tokio::test]
async fn a_commit_that_the_server_gives_by_branch_only_is_still_found() {
    let world = World::with(&[("main.tf", STACK)]);
    git(&world.repo(), &["config", "uploadpack.allowAnySHA1InWant", "false"]);
    let planned = world.run().await;
    for _ in 0..3 {
        world.commit(&[]);
    }
    let applied = world.apply(&planned).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
}
