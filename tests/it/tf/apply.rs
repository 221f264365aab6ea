//! Everyday use.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::stage::{APPLY, MODULE, Stage, eventually};
use crate::cli::server::ran;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_inits_plans_applies_and_shows_through_plumb_and_nothing_is_left_behind() {
    let Some(stage) = Stage::start(MODULE).await else { return };
    stage.ok(&["init", "-input=false"]).await;
    let planned = stage.tf(&["plan", "-input=false", "-detailed-exitcode", "-out=tfplan"]).await;
    assert_eq!(planned.code, 2, "terraform's own exit code: {planned:?}");
    stage.ok(&["apply", "-input=false", "tfplan"]).await;
    assert_eq!(stage.ok(&["output", "-raw", "value"]).await, "one");
    let again = stage.tf(&["plan", "-input=false", "-detailed-exitcode"]).await;
    assert_eq!(again.code, 0, "{again:?}");
    let versions = stage.backend.versions().await;
    assert_eq!((versions.len(), versions[0]["serial"].as_i64()), (1, Some(1)), "{versions:?}");
    let audited = stage.backend.audited().await;
    assert!(audited.contains(&"state.lock".to_owned()) && audited.contains(&"state.unlock".to_owned()));
    assert_eq!(stage.lock().await["held"], false);
    assert_eq!((stage.overrides(), stage.calls()), (Vec::new(), 0));
    let plan = std::fs::read(stage.directory.path().join("tfplan")).unwrap();
    let token = stage.backend.token.as_bytes();
    assert!(!plan.windows(token.len()).any(|window| window == token), "the token is in no plan");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_http_backend_is_used_as_it_is_and_another_backend_is_refused_by_name() {
    let Some(stage) = Stage::start(&format!("terraform {{\n  backend \"http\" {{}}\n}}\n{MODULE}")).await
    else {
        return;
    };
    stage.ok(&["init", "-input=false"]).await;
    stage.ok(&APPLY).await;
    assert_eq!(stage.backend.versions().await.len(), 1);
    let other = stage.directory.path().join("backend.tf");
    for (text, named) in [
        ("terraform {\n  backend \"s3\" {\n    bucket = \"b\"\n  }\n}\n", "backend.tf: s3"),
        ("terraform {\n  cloud {}\n}\n", "backend.tf: cloud"),
        ("terraform {\n  backend \"http\" {\n    address = \"https://x\"\n  }\n}\n", "settings of its own"),
    ] {
        std::fs::write(&other, text).unwrap();
        let refused = stage.tf(&["plan"]).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(named), "{refused:?}");
        assert_eq!(stage.overrides(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_are_the_tools_and_reasons_of_the_server_are_shown() {
    let Some(stage) = Stage::start(MODULE).await else { return };
    assert_eq!(stage.tf(&["no-such-command"]).await.code, 1);
    let usage = stage.run(&["tf"]).await;
    assert_eq!(usage.code, 2, "{usage:?}");
    let mut nowhere = stage.plumb(&["tf", "--", "plan"]);
    let nowhere = ran(nowhere.env_remove("PLUMB_WORKSPACE").output().await.unwrap());
    assert_eq!(nowhere.code, 2, "{nowhere:?}");
    let missing = stage.run(&["tf", "--tool", "no-such-tool", "--", "plan"]).await;
    assert!(missing.code == 2 && missing.stderr.contains("no-such-tool"), "{missing:?}");
    stage.ok(&["init", "-input=false"]).await;
    stage.backend.lock("the-holder").await;
    let locked = stage.tf(&APPLY).await;
    assert!(locked.code == 1 && locked.stderr.contains("the-holder"), "{locked:?}");
    assert_eq!(stage.calls(), 0, "a refused lock leaves nothing");
    stage.ok(&["force-unlock", "-force", "the-holder"]).await;
    // As the person decides: without the lock.
    stage.ok(&[&APPLY[..], &["-lock=false"]].concat()).await;
    assert_eq!(stage.backend.versions().await.len(), 1);
}

/// Ready when it says so, and slow.
const SLOW: &str = r#"
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "touch begun; while [ ! -f go ]; do sleep 0.05; done" }
}
resource "terraform_data" "after" {
  input = terraform_data.slow.id
  provisioner "local-exec" { command = "touch second" }
}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_reaches_terraform_once_and_its_state_is_kept_before_plumb_ends() {
    let Some(stage) = Stage::start(SLOW).await else { return };
    stage.ok(&["init", "-input=false"]).await;
    let mut command = stage.plumb(&[&["tf", "--"], &APPLY[..]].concat());
    // A session of its own, as in CI: there is no terminal that would send the signal to both.
    // SAFETY: `setsid` touches no memory.
    unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(std::io::Error::from)) };
    let child = command.spawn().unwrap();
    let at = |name: &str| stage.directory.path().join(name);
    eventually("the apply has begun", || at("begun").exists()).await;
    assert_eq!(stage.overrides().len(), 1);
    kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = tokio::spawn(child.wait_with_output());
    std::fs::write(at("go"), "").unwrap();
    let ended = ran(output.await.unwrap().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("nterrupt"), "{ended:?}");
    assert!(!ended.stdout.contains("Two interrupts"), "{ended:?}");
    assert!(!at("second").exists(), "it stopped after what it had begun");
    assert_eq!((stage.overrides(), stage.calls()), (Vec::new(), 0));
    assert!(stage.ok(&["state", "list"]).await.contains("terraform_data.slow"), "what was made is recorded");
    assert_eq!(stage.lock().await["held"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_is_renewed_while_a_long_apply_runs() {
    let Some(stage) = Stage::start(SLOW).await else { return };
    stage.backend.plane.admin_token().await;
    let person = |arguments: &[&str]| {
        let mut command = stage.plumb(arguments);
        command.env_remove("PLUMB_API_KEY");
        command
    };
    let password = stage.config.path().join("password");
    std::fs::write(&password, crate::plane::PASSWORD).unwrap();
    let mut login = person(&["login", "--email", crate::plane::ADMIN_EMAIL, "--password-stdin"]);
    let login = ran(login.stdin(std::fs::File::open(&password).unwrap()).output().await.unwrap());
    assert_eq!(login.code, 0, "{login:?}");
    let init = ran(person(&["tf", "--", "init", "-input=false"]).output().await.unwrap());
    assert_eq!(init.code, 0, "{init:?}");
    let child = person(&[&["tf", "--"], &APPLY[..]].concat()).spawn().unwrap();
    eventually("the apply has begun", || stage.directory.path().join("begun").exists()).await;
    // Beyond the life of any access token.
    stage.backend.plane.advance(std::time::Duration::from_secs(9 * 3600)).await;
    std::fs::write(stage.directory.path().join("go"), "").unwrap();
    let ended = ran(child.wait_with_output().await.unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(stage.backend.plane.send(all_versions(&stage)).await.status(), 401, "the old tokens are over");
    assert_eq!(stage.calls(), 0);
}

/// With a token from before.
fn all_versions(stage: &Stage) -> http::Request<axum::body::Body> {
    let path = format!("/api/v1/workspaces/{}/state-versions", stage.backend.workspace);
    let request = http::Request::get(path).header("authorization", format!("Bearer {}", stage.backend.token));
    request.body(axum::body::Body::empty()).unwrap()
}
