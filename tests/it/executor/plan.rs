//! A plan: what it reads, reports and keeps secret.

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::{FailureKind, RunCommand, StepStatus};

use super::world::World;

const STACK: &str = r#"
variable "password" {
  type      = string
  sensitive = true
}
resource "terraform_data" "one" {
  input = { password = var.password, size = 3 }
}
output "size" { value = terraform_data.one.input.size }
output "password" {
  value     = var.password
  sensitive = true
}
"#;

#[tokio::test]
async fn a_plan_reports_its_steps_and_leaves_digests_of_what_it_uploaded() {
    let mut world = World::with(&[("main.tf", STACK)]);
    world.secret("password", "hunter2-hunter2");
    let head = world.commit(&[]);
    let planned = world.run().await;

    let told = planned.fake.told();
    assert_eq!(planned.code, Some(0), "{:?} {}", told.failed, world.executor_log());
    let done = told.plan_done.as_ref().expect("the plan is complete");
    assert_eq!(done.plan_sha256, Sha256Digest::of(&told.artifacts["plan_file"]));
    assert_eq!(done.plan_json_sha256, Sha256Digest::of(&told.artifacts["plan_json"]));
    assert_eq!(done.summary.as_ref().map(|summary| summary.add), Some(1));
    let succeeded: Vec<i16> = told
        .steps
        .iter()
        .filter(|(_, report)| report.status == StepStatus::Succeeded)
        .map(|step| step.0)
        .collect();
    assert_eq!(succeeded, [1, 2, 3, 4, 5, 6]);
    assert_eq!(told.steps.iter().find_map(|(_, report)| report.commit.clone()), Some(head));
    assert!(told.states.is_empty() && told.lock.is_none(), "a plan takes no lock and writes no state");
    drop(told);
    assert!(planned.fake.log_of("Terraform Plan").contains("terraform_data.one will be created"));
}

#[tokio::test]
async fn secret_values_are_in_no_log_and_not_in_the_redacted_plan() {
    let mut world = World::with(&[("main.tf", STACK)]);
    world.secret("password", "hunter2-hunter2");
    let planned = world.run().await;
    let told = planned.fake.told();
    let text = |kind: &str| String::from_utf8_lossy(&told.artifacts[kind]).into_owned();
    assert!(text("plan_json").contains("hunter2-hunter2"), "the full plan is what policies see");
    assert!(!text("plan_json_redacted").contains("hunter2"));
    assert!(!text("plan_text").contains("hunter2"));
    drop(told);
    assert!(!planned.fake.all_logs().contains("hunter2"));
    assert!(!world.executor_log().contains("hunter2"));
}

#[tokio::test]
async fn a_plan_without_changes_is_still_a_plan_and_destroy_plans_destruction() {
    let mut world = World::with(&[("main.tf", "resource \"terraform_data\" \"one\" {}\n")]);
    let planned = world.run().await;
    let applied = world.apply(&planned).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());

    let again = world.run_on_state_of(&applied).await;
    let summary = again.fake.told().plan_done.clone().and_then(|done| done.summary).expect("a summary");
    assert_eq!((summary.add, summary.no_op), (0, 1));

    world.bundle.command = RunCommand::Destroy;
    let destroy = world.run_on_state_of(&applied).await;
    let done = destroy.fake.told().plan_done.clone().expect("the plan is complete");
    assert_eq!(done.summary.map(|summary| summary.destroy), Some(1));
    assert_eq!(done.base_serial, world.bundle.state.as_ref().map(|state| state.serial));

    let destroyed = world.apply(&destroy).await;
    let told = destroyed.fake.told();
    assert!(told.apply_done);
    let state: serde_json::Value = serde_json::from_slice(told.states.last().expect("a state")).unwrap();
    assert_eq!(state["resources"], serde_json::json!([]));
}

#[tokio::test]
async fn a_configuration_that_does_not_parse_fails_for_good_with_its_log() {
    let world = World::with(&[("main.tf", "resource \"terraform_data\" {")]);
    let planned = world.run().await;
    let failed = planned.fake.told().failed.clone().expect("a report");
    assert_eq!(failed.kind, FailureKind::Permanent);
    assert!(planned.fake.log_of("Terraform Init").contains("Error:"));
    assert!(planned.fake.told().plan_done.is_none());
}

#[tokio::test]
async fn a_state_that_is_not_the_pinned_one_is_refused() {
    let mut world = World::with(&[("main.tf", "resource \"terraform_data\" \"one\" {}\n")]);
    let applied = world.apply(&world.run().await).await;
    world.on_state_of(&applied);
    let fake = super::fake_callback::FakeCallback::start(world.bundle.clone()).await;
    fake.told().states.push(bytes::Bytes::from_static(b"{\"version\":4}"));
    let planned = world.start_against(fake).finish().await;
    assert!(planned.fake.told().failed.as_ref().expect("a report").error.contains("not the version"));
}
