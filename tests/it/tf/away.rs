//! A server that goes away, and calls that are killed.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;

use super::stage::{APPLY, Stage, eventually};
use crate::cli::server::{Ran, ran};

/// Waits for the test in the middle of an apply.
const HELD: &str = r#"
resource "terraform_data" "first" {}
resource "terraform_data" "held" {
  provisioner "local-exec" { command = "touch begun; while [ ! -f go ]; do sleep 0.05; done" }
}
"#;

async fn begin(stage: &Stage, more: &[&str]) -> Child {
    stage.ok(&["init", "-input=false"]).await;
    // Before it writes a first state, terraform reads once more; the tests are about the write.
    stage.ok(&[&APPLY[..], &["-target=terraform_data.first"]].concat()).await;
    assert_eq!(stage.backend.versions().await.len(), 1);
    let arguments = [&["tf"], more, &["--"], &APPLY[..]].concat();
    let child = stage.plumb(&arguments).spawn().unwrap();
    eventually("the apply has begun", || stage.directory.path().join("begun").exists()).await;
    child
}

fn let_go(stage: &Stage) {
    std::fs::write(stage.directory.path().join("go"), "").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_read_before_a_first_state_is_written_waits_for_a_server_that_is_away() {
    let Some(stage) = Stage::start(HELD).await else { return };
    stage.ok(&["init", "-input=false"]).await;
    let child = stage.plumb(&[&["tf", "--"], &APPLY[..]].concat()).spawn().unwrap();
    eventually("the apply has begun", || stage.directory.path().join("begun").exists()).await;
    stage.set_away(true);
    let_go(&stage);
    stage.was_asked_in_vain(3).await;
    stage.set_away(false);
    let ended = ended(child).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!stage.directory.path().join("errored.tfstate").exists());
    assert_eq!((stage.backend.versions().await.len(), stage.calls()), (1, 0));
}

async fn ended(child: Child) -> Ran {
    ran(child.wait_with_output().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_kept_on_disk_while_the_server_is_away_and_delivered_when_it_is_back() {
    let Some(stage) = Stage::start(HELD).await else { return };
    let child = begin(&stage, &[]).await;
    stage.set_away(true);
    let_go(&stage);
    eventually("the state is on disk", || !stage.spooled().is_empty()).await;
    stage.set_away(false);
    let ended = ended(child).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(stage.backend.versions().await.len(), 2);
    assert_eq!((stage.calls(), stage.lock().await["held"].as_bool()), (0, Some(false)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_could_not_be_delivered_is_named_and_delivered_by_the_next_call() {
    let Some(stage) = Stage::start(HELD).await else { return };
    let child = begin(&stage, &["--patience-seconds", "6"]).await;
    stage.set_away(true);
    let_go(&stage);
    let ended = ended(child).await;
    assert_eq!(ended.code, 1, "terraform was told that its lock is not released: {ended:?}");
    let spooled = stage.spooled();
    assert_eq!(spooled.len(), 1, "{ended:?}");
    assert!(ended.stderr.contains(spooled[0].to_str().unwrap()), "{ended:?}");
    assert!(ended.stderr.contains("--deliver"), "{ended:?}");
    stage.set_away(false);

    // Nothing works on an older state meanwhile.
    let asked = stage.tf(&["plan"]).await;
    assert!(asked.code == 2 && asked.stderr.contains("--deliver"), "{asked:?}");
    assert_eq!(stage.lock().await["held"], true);
    let delivered = stage.run(&["tf", "--deliver"]).await;
    assert_eq!(delivered.code, 0, "{delivered:?}");
    assert_eq!(stage.backend.versions().await.len(), 2);
    assert_eq!((stage.calls(), stage.lock().await["held"].as_bool()), (0, Some(false)));
    assert!(stage.ok(&["plan", "-input=false", "-no-color"]).await.contains("No changes"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_killed_between_write_and_delivery_leaves_a_state_that_the_next_one_delivers() {
    let Some(stage) = Stage::start(HELD).await else { return };
    let mut child = begin(&stage, &[]).await;
    stage.set_away(true);
    let_go(&stage);
    eventually("the state is on disk", || !stage.spooled().is_empty()).await;
    kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), Signal::SIGKILL).unwrap();
    child.wait().await.unwrap();
    stage.set_away(false);
    assert_eq!(stage.overrides().len(), 1, "nobody could tidy up");

    // Terraform outlives it a little; while it lives, nobody takes its state over.
    let deadline = std::time::Instant::now() + super::stage::PATIENCE;
    let delivered = loop {
        let delivered = stage.run(&["tf", "--deliver", "--", "plan", "-input=false", "-no-color"]).await;
        if delivered.code == 0 || std::time::Instant::now() > deadline {
            break delivered;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(delivered.code, 0, "{delivered:?}");
    assert!(delivered.stdout.contains("No changes"), "{delivered:?}");
    assert_eq!(stage.backend.versions().await.len(), 2);
    assert_eq!((stage.overrides(), stage.calls()), (Vec::new(), 0));
    assert_eq!(stage.lock().await["held"], false);
}
