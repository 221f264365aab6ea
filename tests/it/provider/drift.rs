//! Somebody changes the real thing: the next plan sees it.

use serde_json::{Value, json};

use super::{Mirror, world};
use crate::executor::world::open_directory;

#[tokio::test]
async fn a_plan_after_an_outside_change_shows_drift_change_and_read_apart() {
    let Some(mirror) = Mirror::find() else { return };
    let outside = open_directory();
    let file = outside.path().join("motd");
    let mut world = world(
        &mirror,
        &format!(
            r#"
resource "plumbtest_file" "motd" {{
  path    = "{0}"
  content = "as it was drawn"
}}
data "plumbtest_program" "read_later" {{
  command    = ["cat", "{0}"]
  depends_on = [plumbtest_file.motd]
}}
output "motd" {{ value = data.plumbtest_program.read_later.output }}
"#,
            file.display()
        ),
    );
    let applied = world.apply(&world.run().await).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was drawn");

    let quiet = world.run_on_state_of(&applied).await;
    let summary = quiet.fake.told().plan_done.clone().and_then(|done| done.summary).expect("a summary");
    assert_eq!((summary.change, summary.read, summary.drift, summary.no_op), (0, 0, 0, 1));

    std::fs::write(&file, "as somebody left it").unwrap();
    let drifted = world.run_on_state_of(&applied).await;
    let told = drifted.fake.told();
    let summary = told.plan_done.clone().and_then(|done| done.summary).expect("a summary");
    assert_eq!((summary.change, summary.read, summary.drift, summary.add), (1, 1, 1, 0), "{summary:?}");
    let plan: Value = serde_json::from_slice(&told.artifacts["plan_json_redacted"]).unwrap();
    let drift = &plan["resource_drift"][0]["change"];
    assert_eq!(drift["before"]["content"], json!("as it was drawn"));
    assert_eq!(drift["after"]["content"], json!("as somebody left it"));
    assert!(told.states.len() == 1, "looking writes no state");
}

#[tokio::test]
async fn a_plan_after_the_real_thing_was_removed_makes_it_again() {
    let Some(mirror) = Mirror::find() else { return };
    let outside = open_directory();
    let file = outside.path().join("motd");
    let main = format!(
        "resource \"plumbtest_file\" \"motd\" {{\n  path = \"{}\"\n  content = \"x\"\n}}\n",
        file.display()
    );
    let mut world = world(&mirror, &main);
    let applied = world.apply(&world.run().await).await;
    std::fs::remove_file(&file).unwrap();
    let gone = world.run_on_state_of(&applied).await;
    let summary = gone.fake.told().plan_done.clone().and_then(|done| done.summary).expect("a summary");
    assert_eq!((summary.add, summary.change, summary.drift), (1, 0, 1), "{summary:?}");
}
