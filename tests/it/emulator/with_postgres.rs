//! A command beside a scratch cluster.

use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_core::db::{Connect, Db, PgMode, Query as _};

use super::program::{all_gone, command, descendants, eventually, scratch};

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("a pid")
}

#[tokio::test]
async fn the_command_finds_a_cluster_and_its_exit_code_is_ours() {
    let scratch = scratch();
    let said = scratch.path().join("url");
    let script =
        format!("printf %s \"$PLUMBLINE_TEST_DATABASE_URL\" > {}; sleep 600 & wait $!", said.display());
    let mut child = command(&["with-postgres", "--", "sh", "-c", &script]).spawn().expect("it runs");
    eventually("the command has started", || std::fs::read_to_string(&said).is_ok_and(|url| !url.is_empty()))
        .await;
    let url = std::fs::read_to_string(&said).expect("said");
    let db = Db::new(&Connect { url, pool_size: 1, mode: PgMode::Direct }).expect("a URL");
    let row = db
        .conn()
        .await
        .expect("it answers")
        .query_one("SELECT current_setting('listen_addresses')", &[])
        .await;
    assert_eq!(row.expect("one row").get::<_, String>(0), "127.0.0.1");
    db.close();

    let processes = descendants(pid(&child));
    kill(Pid::from_raw(pid(&child)), Signal::SIGTERM).expect("our child");
    let mut status = None;
    eventually("it has ended", || {
        status = child.try_wait().expect("our child");
        status.is_some()
    })
    .await;
    assert_eq!(status.and_then(|status| status.code()), Some(128 + 15), "the command died of the signal");
    eventually("nothing is left", || all_gone(&processes)).await;
}

#[tokio::test]
async fn the_exit_code_of_a_command_that_ends_by_itself_is_passed_on() {
    let mut order = command(&["with-postgres", "--", "sh", "-c", "exit 7"]);
    order.stderr(Stdio::null());
    let status =
        tokio::task::spawn_blocking(move || order.status().expect("it runs")).await.expect("it ends");
    assert_eq!(status.code(), Some(7));
}

#[tokio::test]
async fn a_killed_helper_takes_cluster_and_command_with_it() {
    let mut child = command(&["with-postgres", "--", "sleep", "600"]).spawn().expect("it runs");
    let mut processes = Vec::new();
    let mut quiet_since = None;
    eventually("cluster and command run", || {
        let now = descendants(pid(&child));
        if now != processes {
            processes = now;
            quiet_since = Some(std::time::Instant::now());
        }
        // The command is the last to start: nothing changes any more once it runs.
        processes.len() > 3 && quiet_since.is_some_and(|since| since.elapsed() > Duration::from_millis(500))
    })
    .await;
    child.kill().expect("our child");
    child.wait().expect("our child");
    eventually("nothing is left", || all_gone(&processes)).await;
}

#[tokio::test]
async fn a_server_named_by_a_relative_path_is_started() {
    let scratch = scratch();
    let programs = plumbline_emulator::postgres::find_or_install(scratch.path()).await.expect("a server");
    assert!(programs.is_absolute(), "{}", programs.display());
    std::os::unix::fs::symlink(&programs, scratch.path().join("server")).expect("linked");
    let mut order = command(&["with-postgres", "--", "sh", "-c", "exit 7"]);
    order.current_dir(scratch.path()).env("PLUMBLINE_PG_BIN", "server");
    let output =
        tokio::task::spawn_blocking(move || order.output().expect("it runs")).await.expect("it ends");
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
}
