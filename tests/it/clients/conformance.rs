//! `make conformance`: the matrix as a program, against servers that are only an address to it.

use std::process::Output;

use plumbline_emulator::{Emulator, Options};
use plumbline_tests::bin;
use tokio::process::Command;

use super::naive::{self, Defect};
use super::program;
use crate::emulator::program::{programs, scratch};
use crate::emulator::session::Session;

async fn conformance(arguments: &[&str]) -> Output {
    Command::new(bin("conformance")).args(arguments).output().await.unwrap()
}

#[tokio::test]
async fn the_emulator_passes_behind_the_gateway_of_aws() {
    if program("terraform").await.is_none() {
        return;
    }
    let scratch = scratch();
    let emulator = Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts");
    let session = Session::sign_in(&emulator.facts).await;
    // The answers that get lost stand for all: every call of the protocol is among them.
    let options =
        ["--token", &session.token, "--user", "unit/default", "--methods", "twins", "--cases", "lost"];
    let output = conformance(&[&[emulator.url()], &options[..]].concat()).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let held = text.lines().filter(|line| line.contains(" ok ") && line.contains("terraform")).count();
    assert!(held >= 5, "{text}");
    assert!(text.contains(&format!("matrix: {held} cases with terraform ")), "{text}");
    emulator.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_defect_fails_and_the_table_says_where() {
    if program("terraform").await.is_none() {
        return;
    }
    let template = naive::serve(Defect::UnlockForgets).await;
    let output = conformance(&[&template, "--cases", "the answer to"]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("recorded: LOCK 200, GET 204, GET 204, POST?ID 200, UNLOCK 200 lost, UNLOCK 404"),
        "{text}"
    );
    assert!(text.contains("; 1 failed"), "{text}");
}
