//! Output without end costs neither memory nor the run.

use std::time::Duration;

use super::fake_tool;
use super::world::{World, open_directory};

const MEMORY_KIB_MAX: u64 = 120 << 10;

/// Highest resident memory of the process so far.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}

#[tokio::test]
async fn a_log_of_200_mb_and_one_line_of_20_mb_are_cut_to_head_and_tail() {
    let mut world = World::with(&[("main.tf", "")]);
    world.secret("password", "hunter2-hunter2");
    world.bundle.log_bytes_max = 2 << 20;
    let tools = open_directory();
    let plan = "echo the-head; yes 'a line of a flood, hunter2-hunter2, and more of it' | head -c 200000000; echo; \
                head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the-tail; echo plan > \"$out\"; exit 2";
    fake_tool::write(tools.path(), "1.99.0", plan);
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());

    let mut running = world.start().await;
    let mut peak = 0;
    while running.child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_kib(running.child.id()).unwrap_or(0));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let fake = running.fake.clone();
    assert!(fake.told().plan_done.is_some(), "{:?}", fake.told().failed);
    assert!(peak < MEMORY_KIB_MAX, "{peak} KiB");
    let log = fake.log_of("Terraform Plan");
    assert!(log.len() <= 2 << 20, "{} bytes", log.len());
    assert!(log.starts_with("the-head") && log.trim_end().ends_with("the-tail"));
    assert!(log.contains("bytes of this log were left out") && !log.contains("hunter2"));
}

#[tokio::test]
async fn a_flood_does_not_wait_for_a_control_plane_that_is_away() {
    let signs = open_directory();
    let mut world = World::with(&[("main.tf", "")]);
    let tools = open_directory();
    let plan = format!(
        "touch {0}/begun; until [ -e {0}/go ]; do sleep 0.05; done; head -c 30000000 /dev/zero | tr '\\0' x; touch {0}/written; echo plan > \"$out\"; exit 2",
        signs.path().display()
    );
    fake_tool::write(tools.path(), "1.99.0", &plan);
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    let running = world.start().await;
    running.until("the plan is under way", |_| signs.path().join("begun").exists()).await;
    running.fake.is_away.store(true, std::sync::atomic::Ordering::SeqCst);
    std::fs::write(signs.path().join("go"), "").unwrap();
    running.until("everything is written", |_| signs.path().join("written").exists()).await;
    running.fake.is_away.store(false, std::sync::atomic::Ordering::SeqCst);
    let planned = running.finish().await;
    assert!(planned.fake.told().plan_done.is_some());
    assert_eq!(planned.fake.log_of("Terraform Plan").len(), 30_000_000);
}
