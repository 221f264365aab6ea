//! `plumb state push`, `history`, `rm-lock`.

use super::stage::{MODULE, Stage};
use crate::store::state_client::state;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_state_is_refused_before_anything_is_sent() {
    let Some(stage) = Stage::start(MODULE).await else { return };
    let workspace = stage.workspace();
    // Nothing is asked of a server that is away.
    stage.set_away(true);
    for (content, said) in [
        (&b""[..], "empty"),
        (b"garbage", "not JSON"),
        (b"{\"version\":4,\"serial\":1,\"lineage\":\"l\",\"x\":\"\xff\"}", "not UTF-8"),
        (b"{}", "empty object"),
        (br#"{"format_version":"1.0","values":{}}"#, "show -json"),
        (br#"{"format_version":"1.2","planned_values":{}}"#, "plan"),
        (br#"{"version":4,"serial":1}"#, "lineage"),
    ] {
        let file = stage.directory.path().join("bad.tfstate");
        std::fs::write(&file, content).unwrap();
        let refused = stage.run(&["state", "push", &workspace, file.to_str().unwrap(), "--yes"]).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let missing = stage.run(&["state", "push", &workspace, "nowhere.tfstate", "--yes"]).await;
    assert!(missing.code == 1 && missing.stderr.contains("nowhere.tfstate"), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_takes_the_lock_and_says_why_it_is_refused() {
    let Some(stage) = Stage::start(MODULE).await else { return };
    let workspace = stage.workspace();
    let file = stage.directory.path().join("next.tfstate");
    let name = file.to_str().unwrap();
    let push = async |content: String, more: &[&str]| {
        std::fs::write(&file, content).unwrap();
        stage.run(&[&["state", "push", &workspace, name], more].concat()).await
    };
    let asked = push(state(4, "l", "a"), &[]).await;
    assert!(asked.code == 2 && asked.stderr.contains("--yes"), "{asked:?}");
    assert_eq!(push(state(4, "l", "a"), &["--yes"]).await.code, 0);
    let audited = stage.backend.audited().await;
    assert_eq!(audited, ["state.lock", "state.write", "state.unlock"]);
    let again = push(state(4, "l", "a"), &["--yes"]).await;
    assert!(again.code == 0 && again.stdout.contains("already"), "{again:?}");

    let lower = push(state(3, "l", "b"), &["--yes"]).await;
    assert!(lower.code == 1 && lower.stderr.contains("higher serial"), "{lower:?}");
    let foreign = push(state(9, "other", "b"), &["--yes"]).await;
    assert!(foreign.code == 1 && foreign.stderr.contains("accept-next-lineage"), "{foreign:?}");
    // The same for what goes by the object store: refused before it is sent.
    let large = push(state(9, "other", &"x".repeat(2 << 20)), &["--yes"]).await;
    assert!(large.code == 1 && large.stderr.contains("accept-next-lineage"), "{large:?}");
    assert!(stage.backend.quarantined().await.is_empty());
    assert_eq!(stage.lock().await["held"], false, "a refused push gives the lock back");

    stage.backend.lock("the-holder").await;
    let locked = push(state(5, "l", "b"), &["--yes"]).await;
    assert!(locked.code == 1 && locked.stderr.contains("the-holder"), "{locked:?}");
    let under = push(state(5, "l", "b"), &["--yes", "--lock-id", "the-holder"]).await;
    assert_eq!(under.code, 0, "{under:?}");
    assert_eq!(stage.lock().await["held"], false);
    let history = stage.run(&["state", "history", &workspace]).await;
    assert!(history.stdout.lines().count() == 3 && history.stdout.contains("current"), "{history:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_broken_by_rm_lock_after_a_question() {
    let Some(stage) = Stage::start(MODULE).await else { return };
    let workspace = stage.workspace();
    stage.backend.lock("left-behind").await;
    let asked = stage.run(&["state", "rm-lock", &workspace]).await;
    assert!(asked.code == 2 && asked.stderr.contains("left-behind"), "{asked:?}");
    assert_eq!(stage.lock().await["held"], true);
    assert_eq!(stage.run(&["state", "rm-lock", &workspace, "--yes"]).await.code, 0);
    assert_eq!(stage.lock().await["held"], false);
    assert_eq!(stage.backend.audited().await.last().unwrap(), "state.force_unlock");
}
