//! An executor with the role of an ECS task proves who it is, and keeps the role from whatever it runs.

use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{CallerArn, CallerIdentity as _};

use super::fake_tool;
use super::world::{Finished, World, open_directory};
use crate::fake_sts::FakeSts;

const ARN: &str = "arn:aws:sts::123456789012:assumed-role/executor/0123456789abcdef";

/// Looks for what leads to the role's credentials: in its own environment and in that of whoever stands above.
const CURIOUS: &str = r#"
  looked=0
  env | grep -v '^AWS_EC2_METADATA_DISABLED=true$' | grep -E 'AWS_|ECS_|agent-token|/credentials/' && echo "STOLEN own environment"
  pid=$$
  while [ "$pid" -gt 1 ] && [ "$pid" != "TEST" ]; do
    looked=$((looked + 1))
    tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null | grep -aE 'agent-token|/credentials/' && echo "STOLEN from environ of $pid"
    pid=$(awk '/^PPid:/ {print $2}' "/proc/$pid/status")
  done
  echo "looked at $looked processes"
  echo plan > "$out"
  exit 2
"#;

async fn run(environment: Vec<(String, String)>) -> Finished {
    let tools = open_directory();
    let mut world = World::with(&[("main.tf", "")]);
    let script = CURIOUS.replace("TEST", &std::process::id().to_string());
    fake_tool::write(tools.path(), "1.99.0", &script);
    world.bundle.tool.version = Some("1.99.0".into());
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.environment.extend(environment);
    let finished = world.run().await;
    assert_eq!(finished.code, Some(0), "{}", world.executor_log());
    for secret in ["agent-token", "/credentials/"] {
        assert!(!world.executor_log().contains(secret), "{}", world.executor_log());
    }
    finished
}

#[tokio::test]
async fn an_executor_with_a_role_proves_it_and_its_child_gets_nothing_of_it() {
    let sts = FakeSts::start().await;
    let mut environment = sts.principal(ARN).environment();
    environment.push(("ECS_CONTAINER_METADATA_URI_V4".into(), "http://169.254.170.2/v4/x".into()));
    // The agent is slow to start: that is no reason to go without.
    sts.fail_agent(3);
    let finished = run(environment).await;

    assert_eq!(sts.agent_failures_left(), 0);
    let proof = finished.fake.told().identity.clone().expect("a proof came with the ticket");
    let ticket = Sha256Digest::of(b"ticket-ticket-ticket");
    assert_eq!(sts.callers().identify(&proof, ticket).await, Ok(CallerArn(ARN.into())));
    let log = finished.fake.log_of("Terraform Plan");
    assert!(log.contains("looked at 3 processes"), "child, keeper and supervisor: {log}");
    assert!(!log.contains("STOLEN"), "{log}");
}

#[tokio::test]
async fn an_executor_without_a_role_sends_no_proof() {
    let finished = run(Vec::new()).await;
    assert!(finished.fake.told().identity.is_none());
}
