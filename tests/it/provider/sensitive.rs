//! A secret that only the provider knows: the executor cannot know its value, only terraform's marks.

use serde_json::Value;

use super::{Mirror, stack, world};
use crate::executor::world::open_directory;

const MAIN: &str = r#"
resource "plumbtest_secret" "one" {
  seed = "SEED"
}
resource "plumbtest_file" "user" {
  path    = "DIRECTORY/to-be-seen"
  content = "password = ${plumbtest_secret.one.value}"
}
output "password" {
  value     = plumbtest_secret.one.value
  sensitive = true
}
"#;
/// What the provider makes of the seed `abcdef`.
const SECRET: &str = "whispered-fedcba";

#[tokio::test]
async fn a_sensitive_attribute_is_in_the_state_and_nowhere_else() {
    let Some(mirror) = Mirror::find() else { return };
    let outside = open_directory();
    let with_seed =
        |seed| MAIN.replace("SEED", seed).replace("DIRECTORY", &outside.path().display().to_string());
    let mut world = world(&mirror, &with_seed("abcdef"));
    let applied = world.apply(&world.run().await).await;
    {
        let told = applied.fake.told();
        assert!(told.apply_done, "{:?}", told.failed);
        let state = String::from_utf8_lossy(told.states.last().expect("a state")).into_owned();
        assert!(state.contains(SECRET), "the state is where it belongs");
    }
    assert!(!applied.fake.all_logs().contains(SECRET));

    // The value that the state has is in the plan that does away with it.
    world.commit(&[("main.tf", &stack(&with_seed("ghijkl")))]);
    let planned = world.run_on_state_of(&applied).await;
    let told = planned.fake.told();
    let text = |kind: &str| String::from_utf8_lossy(&told.artifacts[kind]).into_owned();
    assert!(text("plan_json").contains(SECRET), "the full plan is what policies see");
    let redacted = text("plan_json_redacted");
    assert!(!redacted.contains(SECRET) && redacted.contains("to-be-seen"));
    let plan: Value = serde_json::from_str(&redacted).unwrap();
    assert_eq!(plan["resource_changes"].as_array().unwrap().len(), 2);
    assert!(!text("plan_text").contains(SECRET) && text("plan_text").contains("must be replaced"));
    let done = told.plan_done.clone().expect("the plan is complete");
    let reports = serde_json::to_string(&(&done, &told.steps)).unwrap();
    assert!(!reports.contains(SECRET) && done.summary.is_some_and(|summary| summary.replace == 1));
    drop(told);
    assert!(!planned.fake.all_logs().contains(SECRET));
    assert!(!world.executor_log().contains(SECRET));
}
