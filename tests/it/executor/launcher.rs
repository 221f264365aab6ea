//! The local launcher, with the real executor.

use std::time::Duration;

use plumbline_core::adapters::LocalLauncher;
use plumbline_core::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher as _};
use plumbline_core::protocol::FailureKind;

use super::fake_callback::FakeCallback;
use super::world::{World, eventually, is_named_by_a_process, open_directory, waiting_stack};

fn request(world: &World, fake: &FakeCallback) -> LaunchRequest {
    LaunchRequest {
        executor_id: world.bundle.executor_id,
        task_id: world.bundle.task_id,
        lease_token: 7,
        callback_url: fake.url.clone(),
        ticket: "ticket-ticket".into(),
    }
}

fn launcher(world: &World) -> LocalLauncher {
    let root = world.repo().parent().unwrap().display().to_string();
    LocalLauncher::new(
        plumbline_tests::bin("executor-task"),
        world.scratch("executors"),
        vec![("PLUMBLINE_LOCAL_REPOS_ROOT".into(), root)],
    )
    .with_stop_grace(Duration::from_secs(2))
}

async fn fate(launcher: &LocalLauncher, handle: &str) -> ExecutorFate {
    launcher.describe(&[handle.to_owned()]).await.unwrap().remove(0)
}

async fn until_stopped(launcher: &LocalLauncher, handle: &str) -> String {
    for _ in 0..3000 {
        if let ExecutorFate::Stopped { reason } = fate(launcher, handle).await {
            return reason;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{handle} still runs");
}

#[tokio::test]
async fn launching_an_attempt_twice_starts_one_executor_and_a_new_launcher_finds_it() {
    let world = World::with(&[("main.tf", "resource \"terraform_data\" \"one\" {}\n")]);
    let fake = FakeCallback::start(world.bundle.clone()).await;
    let (first, second) = (launcher(&world), launcher(&world));
    let request = request(&world, &fake);
    let (one, two) = tokio::join!(first.launch(&request), second.launch(&request));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one, two);
    assert_eq!(launcher(&world).find(request.task_id, 7).await.unwrap(), Some(one.clone()));
    assert_eq!(launcher(&world).find(request.task_id, 8).await.unwrap(), None);

    until_stopped(&first, &one).await;
    assert!(fake.told().plan_done.is_some());
    assert_eq!(fate(&first, "not a handle").await, ExecutorFate::Unknown);
    assert!(matches!(fate(&first, "2147480000:1").await, ExecutorFate::Stopped { .. }));
}

#[tokio::test]
async fn stopping_asks_first_and_the_executor_reports() {
    let signs = open_directory();
    let world = World::with(&[("main.tf", &waiting_stack(signs.path()))]);
    let fake = world.approve(&world.run().await);
    let launcher = launcher(&world);
    let handle = launcher.launch(&request(&world, &fake)).await.unwrap();
    eventually("the apply is under way", || signs.path().join("begun").exists()).await;
    launcher.stop(&handle, "a test").await.unwrap();
    until_stopped(&launcher, &handle).await;
    let told = fake.told();
    assert_eq!(told.failed.as_ref().map(|failed| failed.kind), Some(FailureKind::Cancelled));
    assert!(told.lock.is_none() && !told.states.is_empty());
}

#[tokio::test]
async fn an_executor_that_does_not_react_is_killed_and_nothing_of_it_stays() {
    let signs = open_directory();
    let world = World::with(&[("main.tf", &waiting_stack(signs.path()))]);
    let fake = world.approve(&world.run().await);
    let launcher = launcher(&world);
    let handle = launcher.launch(&request(&world, &fake)).await.unwrap();
    eventually("the apply is under way", || signs.path().join("begun").exists()).await;
    let pid = handle.split(':').next().unwrap().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGSTOP).unwrap();
    launcher.stop(&handle, "a test").await.unwrap();
    assert!(until_stopped(&launcher, &handle).await.contains("signal"));
    let mark = signs.path().display().to_string();
    eventually("its child is gone", || !is_named_by_a_process(&mark)).await;
}

#[tokio::test]
async fn a_killed_executor_leaves_no_file_with_a_secret_whoever_notices_it() {
    for is_watched in [true, false] {
        let signs = open_directory();
        let mut world = World::with(&[("main.tf", &waiting_stack(signs.path()))]);
        world.secret("planted", "hunter2-in-a-file");
        let fake = world.approve(&world.run().await);
        let (mut watching, next) = (launcher(&world), launcher(&world));
        let handle = watching.launch(&request(&world, &fake)).await.unwrap();
        eventually("the apply is under way", || signs.path().join("begun").exists()).await;
        let attempt = world.scratch("executors").join(format!("{}-7", world.bundle.task_id));
        let place = std::fs::read_to_string(attempt.join("work-place")).map(std::path::PathBuf::from);
        let place = place.unwrap_or_else(|_| attempt.join("work"));
        assert!(place.is_dir() && std::fs::read_dir(&place).unwrap().count() > 0, "it works there");
        let pid = handle.split(':').next().unwrap().parse().unwrap();
        if !is_watched {
            // As if whoever launched it had died with it.
            watching = launcher(&world);
        }
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
        if is_watched {
            until_stopped(&watching, &handle).await;
        } else {
            eventually("it is gone", || next.running().is_empty()).await;
            next.tidy();
        }
        eventually("its files are gone", || !place.exists()).await;
    }
}

#[tokio::test]
async fn a_missing_program_is_refused_for_good() {
    let world = World::with(&[]);
    let fake = FakeCallback::start(world.bundle.clone()).await;
    let launcher = LocalLauncher::new("/absent/executor-task".into(), world.scratch("executors"), Vec::new());
    let refused = launcher.launch(&request(&world, &fake)).await;
    assert!(matches!(refused, Err(LaunchError::Refused(_))), "{refused:?}");
}
