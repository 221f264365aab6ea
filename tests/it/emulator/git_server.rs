//! Git's smart HTTP, as the demo and other tests use it.

use super::program::scratch;
use super::session::{commit_and_push, demo_repository, git, git_command, serve};

#[tokio::test]
async fn a_pushed_commit_can_be_cloned() {
    let scratch = scratch();
    let repository = demo_repository(scratch.path()).await;
    let work = repository.root.join("work");
    std::fs::write(work.join("added"), "text").expect("written");
    commit_and_push(&work).await;

    let (url, root) = (repository.url.clone(), repository.root.clone());
    tokio::task::spawn_blocking(move || git(&root, &["clone", "-q", &url, "clone"])).await.expect("cloned");
    let clone = repository.root.join("clone");
    assert_eq!(std::fs::read_to_string(clone.join("added")).expect("it is there"), "text");
    assert_eq!(git(&clone, &["rev-parse", "HEAD"]), git(&work, &["rev-parse", "HEAD"]));
}

#[tokio::test]
async fn a_repository_with_a_password_is_served_to_those_who_know_it() {
    let scratch = scratch();
    let root = scratch.path().to_owned();
    git(&root, &["init", "-q", "--bare", "-b", "main", "demo.git"]);
    let served = serve(&root, Some(("robot".to_owned(), "word".to_owned()))).await;
    let list = async |url: String| {
        let mut order = git_command(&root, &["ls-remote", &url]);
        tokio::task::spawn_blocking(move || order.output().expect("git runs").status.success())
            .await
            .expect("ends")
    };
    assert!(!list(served.url.clone()).await);
    assert!(!list(served.url.replace("http://", "http://robot:wrong@")).await);
    assert!(list(served.url.replace("http://", "http://robot:word@")).await);
}
