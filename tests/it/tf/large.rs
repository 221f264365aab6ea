//! States that no request can hold.

use std::path::Path;
use std::time::Duration;

use super::stage::{APPLY, Stage};
use crate::cli::server::ran;

/// What one process may have in memory, whatever the state's size.
const PEAK_BYTES_MAX: u64 = 64 << 20;

/// Resources with a megabyte each, which the state holds twice: as what came in and as what comes out.
fn stack(resources: usize) -> String {
    format!(
        r#"
locals {{
  kilobyte = join("", [for n in range(16) : sha256(n)])
  megabyte = join("", [for n in range(1024) : local.kilobyte])
}}
resource "terraform_data" "big" {{
  count = {resources}
  input = "${{count.index}} ${{local.megabyte}}"
}}
"#
    )
}

/// Runs a call of `plumb` and gives its exit code, what it said, and the most memory that it ever had.
async fn watched(stage: &Stage, arguments: &[&str]) -> (crate::cli::server::Ran, u64) {
    let child = stage.plumb(arguments).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id().unwrap());
    let ended = child.wait_with_output();
    tokio::pin!(ended);
    let mut peak = 0;
    loop {
        tokio::select! {
            output = &mut ended => return (ran(output.unwrap()), peak),
            () = tokio::time::sleep(Duration::from_millis(10)) => peak = peak.max(peak_of(Path::new(&status))),
        }
    }
}

/// 0 for a process that has ended.
fn peak_of(status: &Path) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

async fn is_applied_pulled_and_pushed(resources: usize, bytes_min: usize) {
    let Some(stage) = Stage::start(&stack(resources)).await else { return };
    let workspace = stage.workspace();
    stage.ok(&["init", "-input=false"]).await;
    let (applied, apply_peak) = watched(&stage, &[&["tf", "--"], &APPLY[..]].concat()).await;
    assert_eq!(applied.code, 0, "{}", applied.stderr);

    let file = stage.directory.path().join("pulled.tfstate");
    let name = file.to_str().unwrap();
    let (pulled, pull_peak) = watched(&stage, &["state", "pull", &workspace, "-o", name]).await;
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.len() >= bytes_min, "{} bytes", text.len());

    let next = text.replacen("\"serial\": 1,", "\"serial\": 2,", 1);
    assert_ne!(next, text, "the serial is raised");
    std::fs::write(&file, next).unwrap();
    let (pushed, push_peak) = watched(&stage, &["state", "push", &workspace, name, "--yes"]).await;
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    let versions = stage.backend.versions().await;
    assert_eq!(versions[0]["serial"].as_i64(), Some(2), "{versions:?}");
    assert_eq!(versions[0]["size_bytes"].as_u64(), Some(text.len() as u64));
    assert_eq!(stage.lock().await["held"], false);

    // A clean look at it, through the proxy: read from the object store.
    let listed = stage.ok(&["state", "list"]).await;
    assert_eq!(listed.lines().count(), resources);
    eprintln!(
        "state {} bytes; peaks of plumb: apply {} MiB, pull {} MiB, push {} MiB",
        text.len(),
        apply_peak >> 20,
        pull_peak >> 20,
        push_peak >> 20
    );
    for peak in [apply_peak, pull_peak, push_peak] {
        assert!(peak > 0 && peak < PEAK_BYTES_MAX, "{peak} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_of_30_megabytes_is_applied_pulled_and_pushed() {
    is_applied_pulled_and_pushed(16, 30 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_of_120_megabytes_is_applied_pulled_and_pushed_in_little_memory() {
    is_applied_pulled_and_pushed(60, 115 << 20).await;
}
