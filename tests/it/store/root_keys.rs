//! No program starts without a root key, or the keys made of one.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use plumbline_runtime::Function;

use crate::emulator::program;
use crate::plane::ROOT_KEY;

const DEADLINE: Duration = Duration::from_secs(30);
const ROOT: &str = "CREDENTIAL_ENCRYPTION_KEY";

/// What a program says when it is started with nothing but these variables and what everybody needs.
async fn started(mut command: Command, variables: &[(&str, &str)]) -> Output {
    command
        .env_clear()
        .env("DATABASE_URL", "postgres://nobody@127.0.0.1:9/nothing")
        .env("PLUMBLINE_PUBLIC_URL", "http://127.0.0.1:9")
        .env("PLUMBLINE_BLOBS", "s3://bucket")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    let ended = tokio::time::timeout(DEADLINE, command.kill_on_drop(true).output()).await;
    ended.expect("it ends at once").expect("it can be started")
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

#[tokio::test]
async fn every_function_refuses_to_start_without_a_root_key_that_is_one() {
    let blank = " ".repeat(40);
    let cases = [None, Some("too-short"), Some(&*blank), Some("change-me-change-me-change-me-change-me")];
    for function in Function::ALL {
        for root in cases {
            let program = plumbline_tests::bin(&["plumbline-", function.as_str()].concat());
            let variables: Vec<(&str, &str)> = root.map(|root| (ROOT, root)).into_iter().collect();
            let output = started(Command::new(program), &variables).await;
            let said = said(&output);
            assert!(!output.status.success(), "{function:?} {root:?}: {said}");
            assert!(said.contains(ROOT), "{function:?} {root:?}: {said}");
            assert!(root.is_none_or(|root| !said.contains(root)), "{function:?} repeats it: {said}");
        }
    }
}

#[tokio::test]
async fn every_function_refuses_to_start_without_one_of_its_keys() {
    let all = plumbline_core::secrets::Keyring::from_root(ROOT_KEY).unwrap();
    for function in Function::ALL {
        let (missing, rest) = function.key_domains().split_first().expect("each has some");
        let exported = all.only(rest).export();
        // A function with a single key would have none at all, and is asked for the root then.
        let wanted = if rest.is_empty() { ROOT.to_owned() } else { missing.variable() };
        let variables: Vec<(&str, &str)> =
            exported.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let program = plumbline_tests::bin(&["plumbline-", function.as_str()].concat());
        let output = started(Command::new(program), &variables).await;
        assert!(
            !output.status.success() && said(&output).contains(&wanted),
            "{function:?}: {}",
            said(&output)
        );
    }
}

#[tokio::test]
async fn the_emulator_refuses_a_root_key_that_was_damaged_before_it_starts_anything() {
    for root in ["", "too short\n", "replace-this-with-a-root-key-of-your-own\n"] {
        let scratch = program::scratch();
        let home = scratch.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("root-key"), root).unwrap();
        let mut command =
            program::command(&["up", "--fsync", "off", "--port", "0", "--store-port", "0", "--pg-port", "0"]);
        command.arg("--dir").arg(&home).arg("--cache").arg(scratch.path().join("cache"));
        let output = started(command, &[]).await;
        let said = said(&output);
        assert!(!output.status.success() && said.contains("root-key") && said.contains("root key"), "{said}");
        assert!(!home.join("postgres").exists(), "nothing was started");
        assert_eq!(std::fs::read_to_string(home.join("root-key")).unwrap(), root, "nor overwritten");
    }
}
