//! Runs that get into AWS although nothing is stored: by tokens of the emulator's own issuer.

use std::path::Path;

use plumbline_core::db::Query as _;
use plumbline_emulator::{Emulator, Options};
use serde_json::{Value, json};

use super::program::{programs, scratch};
use super::session::{Session, commit_and_push, git, serve};
use crate::fake_sts::{FakeSts, REGION, Trust};

const ACCOUNT: &str = "123456789012";
const AUDIENCE: &str = "sts.amazonaws.com";
/// The real provider, where it is installed.
const MIRROR: &str = "/opt/tf-plugins";
const PROVIDER: &str = "registry.terraform.io/hashicorp/aws";

/// Fails unless the child has the keys of a session, and nothing that leads to another one.
const PROBE: &str = r#"
resource "terraform_data" "who" {
  provisioner "local-exec" {
    command = "test -n \"$AWS_SESSION_TOKEN\" && ! env | grep -q -e WEB_IDENTITY -e =eyJ"
  }
}
"#;

fn role(phase: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:role/{phase}")
}

async fn put(session: &Session, path: &str, body: Value) {
    let request = session.http.put(format!("{}/api/v1/{path}", session.url)).json(&body);
    let request =
        request.bearer_auth(&session.token).header("X-Business-Unit", "default").header("If-Match", "*");
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "{path}: {}", answer.text().await.unwrap_or_default());
}

/// Imports the stack, lets its account trust the emulator, applies it, and gives the state that came out of it.
async fn apply(sts: &FakeSts, stack: &str, mirror: Option<&Path>) -> Value {
    let scratch = scratch();
    let mut options = Options::scratch(scratch.path().join("home"), programs());
    options.sts_endpoint = Some(sts.url.clone());
    options.provider_mirror = mirror.map(Path::to_owned);
    let emulator = Emulator::start(options).await.expect("it starts");
    let root = scratch.path().join("git");
    std::fs::create_dir(&root).expect("created");
    let served = serve(&root, None).await;
    let work = root.join("work");
    git(&root, &["init", "-q", "--bare", "-b", "main", "demo.git"]);
    git(&root, &["init", "-q", "-b", "main", "work"]);
    git(&work, &["remote", "add", "origin", &served.url]);
    std::fs::write(work.join("main.tf"), stack).expect("written");
    commit_and_push(&work).await;

    let session = Session::sign_in(&emulator.facts).await;
    let workspaces = session.import(&served.url).await;
    let [workspace] = workspaces.as_slice() else { panic!("one workspace, not {workspaces:?}") };
    let account = json!({
        "account_id": ACCOUNT, "name": "payments", "default_region": REGION, "oidc_audience": AUDIENCE,
        "plan_role_arn": role("plan"), "apply_role_arn": role("apply"), "session_duration_seconds": 900,
        "session_policy": { "Version": "2012-10-17", "Statement": [] },
    });
    let account = session.post("aws-accounts", account).await;
    put(&session, &format!("workspaces/{workspace}"), json!({ "state_aws_account_id": ACCOUNT })).await;
    let unit = account["business_unit_id"].as_str().expect("a unit");
    for phase in ["plan", "apply"] {
        let subject = format!("unit:{unit}:workspace:{workspace}:phase:{phase}");
        let trust = Trust { issuer: session.url.clone(), audience: AUDIENCE.into(), subject };
        sts.trusting_role(&role(phase), trust);
    }
    let applied = session.apply(workspace).await;

    let sessions = sts.sessions();
    let [planned, changed] = &sessions[..] else { panic!("one session for each phase, not {sessions:?}") };
    for (given, phase) in [(planned, "plan"), (changed, "apply")] {
        assert_eq!((given.role_arn.as_str(), given.duration_seconds.as_str()), (&*role(phase), "900"));
        assert_eq!(given.name, format!("plumbline-{}", applied["id"].as_str().expect("an id")));
        assert!(given.policy.as_ref().is_some_and(|policy| policy.contains("2012-10-17")), "{given:?}");
        assert_eq!(given.tags["plumbline:phase"], phase);
    }
    const KEYS: &str = "SELECT count(*) FROM aws_accounts WHERE keys_sealed IS NOT NULL";
    let conn = emulator.deps.db.conn().await.expect("a connection");
    assert_eq!(conn.query_one(KEYS, &[]).await.expect("counted").get::<_, i64>(0), 0, "nothing is stored");
    drop(conn);
    let issued = session.get("audit?action=identity_token.issue").await;
    assert_eq!(issued["items"].as_array().map(Vec::len), Some(2), "{issued}");
    let state = session.get(&format!("state/{workspace}")).await;
    emulator.stop().await.expect("it stops");
    state
}

#[tokio::test]
async fn a_run_gets_into_aws_with_nothing_stored_and_its_child_never_sees_the_token() {
    let sts = FakeSts::start().await;
    let state = apply(&sts, PROBE, None).await;
    assert_eq!(state["resources"].as_array().map(Vec::len), Some(1), "{state}");
}

#[tokio::test]
async fn the_real_provider_of_aws_acts_in_the_roles_that_trust_the_issuer() {
    let mirror = Path::new(MIRROR);
    if !mirror.join(PROVIDER).is_dir() {
        eprintln!("SKIP: the AWS provider is not installed in {MIRROR}");
        return;
    }
    let sts = FakeSts::start().await;
    let stack = format!(
        "terraform {{\n  required_providers {{ aws = {{ source = \"hashicorp/aws\" }} }}\n}}\n\
         provider \"aws\" {{\n  region = \"{REGION}\"\n  endpoints {{ sts = \"{}\" }}\n}}\n\
         data \"aws_caller_identity\" \"me\" {{}}\n\
         resource \"terraform_data\" \"who\" {{\n  input = data.aws_caller_identity.me.arn\n}}\n",
        sts.url
    );
    let state = apply(&sts, &stack, Some(mirror)).await;
    assert!(state.to_string().contains(&format!("arn:aws:sts::{ACCOUNT}:assumed-role")), "{state}");
}
