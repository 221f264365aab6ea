//! Providers as they are installed, pinned by the lock file, and run again where no network is.

use std::process::Command;

use plumbline_core::digest::Sha256Digest;

use super::{Mirror, world};
use crate::executor::confinement::{can_confine, own_network};
use crate::executor::fake_tool;
use crate::executor::world::open_directory;

const FILE: &str = r#"
resource "plumbtest_file" "motd" {
  path    = "PATH"
  content = "as it was drawn"
}
"#;

#[tokio::test]
async fn the_lock_file_of_a_plan_is_kept_with_it_and_the_apply_installs_by_it_and_by_no_other() {
    let Some(mirror) = Mirror::find() else { return };
    let outside = open_directory();
    let file = outside.path().join("motd");
    let world = world(&mirror, &FILE.replace("PATH", &file.display().to_string()));
    let planned = world.run().await;
    let (kept, digest) = {
        let told = planned.fake.told();
        let done = told.plan_done.clone().expect("the plan is complete");
        (told.artifacts["lock_file"].clone(), done.lock_file_sha256)
    };
    let text = String::from_utf8_lossy(&kept);
    assert!(text.contains("provider \"plumbline.test/plumbline/plumbtest\""), "{text}");
    assert!(text.contains("version = \"0.1.0\"") && text.contains("\"h1:"), "{text}");
    assert_eq!(digest, Some(Sha256Digest::of(&kept)), "the approval binds what was kept");
    let init = planned.fake.log_of("Terraform Init");
    assert!(init.contains("Finding latest version of plumbline.test/plumbline/plumbtest"), "{init}");

    let fake = world.approve(&planned);
    if let Some(plan) = &mut fake.bundle.lock().unwrap().plan {
        plan.lock_file_sha256 = Some(Sha256Digest::of(b"another lock file"));
    }
    let refused = world.start_against(fake).finish().await;
    {
        let told = refused.fake.told();
        assert!(told.failed.as_ref().expect("a report").error.contains("not the one that was approved"));
        assert!(!told.apply_begun && !file.exists());
    }

    // The repository has none: whatever is newest would be installed without the one of the plan.
    let applied = world.apply(&planned).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    let prepared = applied.fake.log_of("Prepare Apply");
    let reused =
        "Reusing previous version of plumbline.test/plumbline/plumbtest from the dependency lock file";
    assert!(prepared.contains(reused), "{prepared}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was drawn");
}

/// The real terraform, behind a script that first says on standard error in which network it is.
fn watched(directory: &std::path::Path) -> String {
    let path = std::env::var_os("PATH").unwrap();
    let real =
        std::env::split_paths(&path).map(|part| part.join("terraform")).find(|it| it.is_file()).unwrap();
    let answer = Command::new(&real).args(["version", "-json"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    let version = answer["terraform_version"].as_str().unwrap().to_owned();
    let script = format!(
        "#!/bin/bash\ninterfaces=$(tail -n +3 /proc/self/net/dev | cut -d: -f1 | xargs)\n\
         echo \"$1 in $(readlink /proc/self/ns/net) with $interfaces.\" >&2\nexec {} \"$@\"\n",
        real.display()
    );
    // Before the one on PATH, which has the same version.
    fake_tool::install(directory, ".", "terraform", &script);
    version
}

#[tokio::test]
async fn a_provider_that_talks_over_tcp_works_where_the_network_was_taken_away() {
    let Some(mirror) = Mirror::find() else { return };
    if !can_confine() {
        return;
    }
    let (outside, tools) = (open_directory(), open_directory());
    let mut world = world(&mirror, &FILE.replace("PATH", &outside.path().join("motd").display().to_string()));
    world.bundle.tool.version = Some(watched(tools.path()));
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    let planned = world.run().await;
    let done = planned.fake.told().plan_done.clone();
    assert!(done.is_some(), "{}", planned.fake.all_logs());

    let plan = planned.fake.log_of("Terraform Plan");
    assert!(plan.contains(&format!("plan in {} with ", own_network())), "{plan}");
    let derived = planned.fake.log_of("Derive Plan");
    assert!(derived.contains("show in net:[") && !derived.contains(&own_network()), "{derived}");
    assert_eq!(
        derived.matches(" with lo.").count(),
        2,
        "JSON and text, with nothing but loopback: {derived}"
    );
    // The provider's schema is in what `show` made: without it, it would have failed.
    let json = String::from_utf8_lossy(&planned.fake.told().artifacts["plan_json"]).into_owned();
    assert!(json.contains("as it was drawn"), "{json}");
}
