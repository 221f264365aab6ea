//! One workspace reads the outputs of another: real Terraform, real runs, no secret in any code.

use std::path::Path;

use plumbline_emulator::{Emulator, Options};
use serde_json::{Value, json};

use super::program::{programs, scratch};
use super::session::{Session, commit_and_push, git, serve};

const PRODUCER: &str = r#"
resource "terraform_data" "hidden" { input = "never-shared-7f31" }
output "address" { value = "10.0.0.7" }
output "key" {
  value     = "sensitive-5d20"
  sensitive = true
}
"#;

fn consumer(address: &str) -> String {
    format!(
        r#"
data "terraform_remote_state" "producer" {{
  backend = "http"
  config  = {{ address = "{address}" }}
}}
resource "terraform_data" "one" {{ input = data.terraform_remote_state.producer.outputs.address }}
resource "terraform_data" "two" {{ input = data.terraform_remote_state.producer.outputs.key }}
"#
    )
}

async fn workspace(session: &Session, repository: &str, name: &str) -> String {
    let new = json!({ "name": name, "environment": "dev", "repo_url": repository, "tf_working_dir": name });
    session.post("workspaces", new).await["id"].as_str().expect("an id").to_owned()
}

async fn trigger(session: &Session, workspace: &str) -> String {
    let run = json!({ "workspace_id": workspace, "command": "apply" });
    session.post("runs", run).await["id"].as_str().expect("an id").to_owned()
}

/// A plan that must be refused: what its log says.
async fn refused(session: &Session, workspace: &str) -> String {
    let id = trigger(session, workspace).await;
    session.run(&id, "failed").await;
    session.get(&format!("runs/{id}/logs?position=5")).await["text"].as_str().unwrap_or_default().to_owned()
}

async fn share(session: &Session, workspace: &str, with: &[&str]) {
    let path = format!("workspaces/{workspace}/state-consumers");
    let shared = session.put(&path, json!({ "workspace_ids": with })).await;
    assert_eq!(shared["items"].as_array().map(Vec::len), Some(with.len()), "{shared}");
}

/// Files below a directory that hold the words.
fn holding(directory: &Path, words: &str) -> Vec<String> {
    let found =
        std::process::Command::new("grep").args(["-rlaF", words]).arg(directory).output().expect("grep");
    String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_reads_the_outputs_that_another_workspace_shares_and_nothing_else() {
    let scratch = scratch();
    let options = Options::scratch(scratch.path().join("home"), programs());
    let emulator = Emulator::start(options).await.expect("it starts");
    let root = scratch.path().join("git");
    std::fs::create_dir(&root).expect("created");
    let repository = serve(&root, None).await;
    let session = Session::sign_in(&emulator.facts).await;
    let producer = workspace(&session, &repository.url, "producer").await;
    let reader = workspace(&session, &repository.url, "consumer").await;
    let address = format!("{}/api/v1/state/{producer}", emulator.facts.url);
    let work = root.join("work");
    git(&root, &["init", "-q", "--bare", "-b", "main", "demo.git"]);
    git(&root, &["init", "-q", "-b", "main", "work"]);
    git(&work, &["remote", "add", "origin", &repository.url]);
    for (name, code) in [("producer", PRODUCER.to_owned()), ("consumer", consumer(&address))] {
        std::fs::create_dir(work.join(name)).expect("created");
        std::fs::write(work.join(name).join("main.tf"), code).expect("written");
    }
    commit_and_push(&work).await;
    session.apply(&producer).await;

    let log = refused(&session, &reader).await;
    assert!(log.contains("does not share its outputs with this one"), "{log}");

    share(&session, &producer, &[&reader]).await;
    session.apply(&reader).await;
    let state = session.get(&format!("state/{reader}")).await.to_string();
    assert!(state.contains("10.0.0.7") && state.contains("sensitive-5d20"), "{state}");
    assert!(!state.contains("never-shared-7f31"), "outputs alone: {state}");

    // What was read while planning is in the plan: taking it back counts from the next plan on.
    let id = trigger(&session, &reader).await;
    let planned = session.run(&id, "awaiting_approval").await;
    share(&session, &producer, &[]).await;
    let seen = json!({ "digest": planned["approval_digest"] });
    session.post(&format!("approvals/{id}/approve"), seen).await;
    session.run(&id, "applied").await;
    let log = refused(&session, &reader).await;
    assert!(log.contains("does not share its outputs"), "{log}");

    // The same address, asked by a person who may read states.
    let whole: Value = session.get(&format!("state/{producer}")).await;
    assert!(whole.to_string().contains("never-shared-7f31"));
    let log = session.get(&format!("audit?workspace_id={producer}&action=state.shared_read")).await;
    let reads = log["items"].as_array().expect("entries");
    assert!(reads.len() >= 2 && reads.iter().all(|entry| entry["run_id"].is_string()), "{log}");
    assert!(reads.iter().all(|entry| entry["details"]["consumer_workspace_id"] == reader), "{log}");

    emulator.stop().await.expect("it stops");
    let home = scratch.path().join("home");
    assert!(!holding(&home, "10.0.0.7").is_empty(), "the search finds what is there");
    assert_eq!(holding(&home, "plw_"), Vec::<String>::new(), "no run password is anywhere");
}
