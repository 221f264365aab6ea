//! One change from Git to applied: with the functions in one process, and with their own programs behind Lambda's
//! runtime API.

use plumbline_emulator::{Emulator, Hosting, Options};
use serde_json::json;

use super::program::{programs, scratch};
use super::session::{Session, commit_and_push, demo_repository};

async fn one_change_from_git_to_applied(hosting: Hosting) {
    let scratch = scratch();
    let options = Options { hosting, ..Options::scratch(scratch.path().join("home"), programs()) };
    let emulator = Emulator::start(options).await.expect("it starts");
    let root = scratch.path().join("git");
    std::fs::create_dir(&root).expect("created");
    let repository = demo_repository(&root).await;
    let session = Session::sign_in(&emulator.facts).await;

    let workspaces = session.import(&repository.url).await;
    let [workspace] = workspaces.as_slice() else { panic!("one workspace, not {workspaces:?}") };
    let applied = session.apply(workspace).await;
    assert_eq!(applied["plan_summary"]["add"], json!(8), "{applied}");

    let services = repository.root.join("work/environments/dev/services.auto.tfvars");
    let text =
        std::fs::read_to_string(&services).expect("it is there").replace("replicas = 2", "replicas = 1");
    std::fs::write(&services, text).expect("written");
    commit_and_push(&repository.root.join("work")).await;
    let applied = session.apply(workspace).await;
    assert_eq!(applied["plan_summary"]["destroy"], json!(1), "{applied}");

    let versions = session.get(&format!("workspaces/{workspace}/state-versions")).await;
    let newest = versions["items"][0]["id"].as_str().expect("a version").to_owned();
    let diff = session.get(&format!("state-versions/{newest}/diff")).await;
    assert_eq!(diff["removed"], json!(["module.service[\"web\"].terraform_data.replica[1]"]), "{diff}");
    assert_eq!(session.get(&format!("workspaces/{workspace}/state-lock")).await["held"], json!(false));
    assert_eq!(session.get("audit/verify").await["ok"], json!(true));
    emulator.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change_goes_from_git_to_applied_in_one_process() {
    one_change_from_git_to_applied(Hosting::Process).await;
}
