//! A state of more than 30 MB through the whole emulator, with AWS's limits in its gateway.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::gate::Gate;
use super::machine::Machine;

const STATE_BYTES_MIN: usize = 30 << 20;
/// Terraform in one process and ours, built without optimisation, write and read 100 MB of JSON several times.
const PATIENCE: Duration = Duration::from_secs(240);

/// Sixteen resources with a megabyte each, which the state holds twice: as what came in and as what comes out.
const STACK: &str = r#"
locals {
  kilobyte = join("", [for n in range(16) : sha256(n)])
  megabyte = join("", [for n in range(1024) : local.kilobyte])
}
resource "terraform_data" "big" {
  count = 16
  input = "${count.index} ${local.megabyte}"
}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_of_30_megabytes_is_planned_applied_planned_again_and_pulled() {
    let machine = Machine::start_with(Gate::default(), |_| STACK.to_owned()).await;
    let run = machine.trigger().await;
    let planned = until(&machine, &run, "awaiting_approval").await;
    assert_eq!(planned["plan_summary"]["add"], json!(16), "{planned}");
    machine.approve(&run).await;
    until(&machine, &run, "applied").await;

    let body = json!({ "workspace_id": machine.workspace, "command": "plan" });
    let again = machine.session.post("runs", body).await["id"].as_str().unwrap().to_owned();
    let planned = until(&machine, &again, "planned").await;
    assert_eq!(planned["has_changes"], json!(false), "{planned}");

    let pulled = pull(&machine);
    assert!(pulled.len() >= STATE_BYTES_MIN, "{} bytes", pulled.len());
    let state: Value = serde_json::from_slice(&pulled).unwrap();
    assert_eq!(state["resources"][0]["instances"].as_array().unwrap().len(), 16);
    let versions = machine.session.get(&format!("workspaces/{}/state-versions", machine.workspace)).await;
    assert_eq!(versions["items"][0]["size_bytes"].as_u64(), Some(pulled.len() as u64), "{versions}");
    println!("state {} bytes; the emulator's peak {} MiB", pulled.len(), peak_memory(machine.pid()) >> 20);
    machine.stop().await;
}

async fn until(machine: &Machine, run: &str, wanted: &str) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = machine.session.get(&format!("runs/{run}")).await;
        if now["status"] == wanted {
            return now;
        }
        let is_over = now["completed_at"] != Value::Null;
        assert!(!is_over && Instant::now() < deadline, "not {wanted}: {now}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// `plumb state pull`, after `plumb login`.
fn pull(machine: &Machine) -> Vec<u8> {
    let plumb = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb-under-test"));
        command
            .args(arguments)
            .env("PLUMB_CONFIG_DIR", machine.scratch.path().join("plumb"))
            .env("PLUMB_SERVER", &machine.facts.url)
            .env("PLUMB_BUSINESS_UNIT", "default");
        command
    };
    let password = std::fs::File::open(&machine.facts.password_file).unwrap();
    let mut login = plumb(&["login", "--email", &machine.facts.admin_email, "--password-stdin"]);
    let said = login.stdin(password).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let file = machine.scratch.path().join("pulled.tfstate");
    let said = plumb(&["state", "pull", &machine.workspace, "-o", file.to_str().unwrap()]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    std::fs::read(file).unwrap()
}

/// In bytes.
fn peak_memory(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}
