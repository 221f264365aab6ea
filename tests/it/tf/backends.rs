//! `plumb backend-config`: what it prints works.

use std::process::Stdio;

use super::stage::{MODULE, Stage};
use crate::cli::server::ran;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_block_and_the_printed_exports_lead_a_stock_terraform_to_the_state() {
    let Some(stage) = Stage::start(MODULE).await else { return };
    let workspace = stage.workspace();
    let block = stage.run(&["backend-config", &workspace]).await;
    assert_eq!(block.code, 0, "{block:?}");
    let token = &stage.backend.token;
    std::fs::write(stage.directory.path().join("backend.tf"), &block.stdout).unwrap();
    let terraform = |script: &str| {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-ec", script]).current_dir(stage.directory.path()).env("PLUMB_API_KEY", token);
        command.env("CHECKPOINT_DISABLE", "1").stdin(Stdio::null());
        command
    };
    let apply =
        "terraform init -input=false -no-color && terraform apply -auto-approve -input=false -no-color";
    let by_block = format!("export TF_HTTP_PASSWORD=\"$PLUMB_API_KEY\"; {apply}");
    let applied = ran(terraform(&by_block).output().await.unwrap());
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(stage.backend.versions().await.len(), 1);

    let exports = stage.run(&["backend-config", &workspace, "--env"]).await;
    assert!(!exports.stdout.contains(token) && exports.stdout.contains("$PLUMB_API_KEY"), "{exports:?}");
    std::fs::write(stage.directory.path().join("backend.tf"), "terraform {\n  backend \"http\" {}\n}\n")
        .unwrap();
    std::fs::remove_dir_all(stage.directory.path().join(".terraform")).unwrap();
    let by_exports = format!("{}\n{apply} -var=value=two", exports.stdout);
    let applied = ran(terraform(&by_exports).output().await.unwrap());
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(stage.backend.versions().await.len(), 2);

    let with = stage.run(&["backend-config", &workspace, "--env", "--with-password"]).await;
    assert!(with.stdout.contains(token.as_str()), "asked for, it is printed");
    let json = stage.run(&["--json", "backend-config", &workspace]).await.json();
    let address = json["terraform"]["backend"]["http"]["address"].as_str().unwrap();
    assert!(address.ends_with(&format!("/api/v1/state/{workspace}")), "{json}");
    let mut keyless = stage.plumb(&["backend-config", &workspace, "--env"]);
    let keyless = ran(keyless.env_remove("PLUMB_API_KEY").output().await.unwrap());
    assert!(keyless.code == 0 && keyless.stderr.contains("plumb api-key create"), "{keyless:?}");
}
