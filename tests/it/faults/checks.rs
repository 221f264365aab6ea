//! What must hold after every fault, no matter where it struck.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};
use uuid::Uuid;

use super::stage::Stage;

/// Longer than a sweep leaves an ended or unrecorded executor alone.
const LEAVE: Duration = Duration::from_secs(61);
const SWEEPS_MAX: usize = 5;

impl Stage {
    /// Sweeps until no executor may live any more, then looks at everything that a fault could have broken.
    pub async fn check_all(&self, what: &str) {
        const LIVING: &str = "SELECT count(*) FROM executors WHERE status <> 'stopped'";
        self.eventually("no process of an executor is left", async || {
            processes_below(&self.executors()).is_empty()
        })
        .await;
        for _ in 0..SWEEPS_MAX {
            self.plane.advance(LEAVE).await;
            self.reconcile().await;
            if self.count(LIVING).await == 0 {
                break;
            }
        }
        assert_eq!(self.count(LIVING).await, 0, "{what}: executors that may live");
        self.check_counters(what).await;
        self.check_history(what).await;
        let lock = self.get(&format!("workspaces/{}/state-lock", self.workspace)).await;
        assert_eq!(lock["held"], json!(false), "{what}: {lock}");
        assert_eq!(self.get("audit/verify").await["ok"], json!(true), "{what}: the audit chain");
    }

    /// Counters say what is so, for units and for the installation.
    pub async fn check_counters(&self, what: &str) {
        const WRONG: &str = "
            SELECT (SELECT count(*) FROM queue_units q WHERE running <>
                       (SELECT count(*) FROM tasks t WHERE t.business_unit_id = q.business_unit_id
                        AND t.class = q.class AND t.status = 'running'))
                 + (SELECT count(*) FROM launch_budget WHERE running <>
                       (SELECT count(*) FROM tasks WHERE status = 'running' AND class = 'executor'))";
        assert_eq!(self.count(WRONG).await, 0, "{what}: counters of running tasks");
    }

    /// State versions have one lineage and rising serials, and the newest is the head.
    pub async fn check_history(&self, what: &str) {
        let path = format!("workspaces/{}/state-versions", self.workspace);
        let versions = self.get(&path).await["items"].as_array().unwrap().clone();
        let newest_first: Vec<i64> =
            versions.iter().map(|version| version["serial"].as_i64().unwrap()).collect();
        assert!(newest_first.windows(2).all(|pair| pair[0] > pair[1]), "{what}: serials {newest_first:?}");
        assert!(
            versions.windows(2).all(|pair| pair[0]["lineage"] == pair[1]["lineage"]),
            "{what}: {versions:?}"
        );
        const HEAD: &str = "SELECT coalesce(max(head_serial), 0)::bigint FROM tfstates";
        assert_eq!(self.count(HEAD).await, newest_first.first().copied().unwrap_or(0), "{what}: the head");
    }

    /// Whether the workspace is blocked.
    pub async fn is_blocked(&self) -> bool {
        self.get(&format!("workspaces/{}", self.workspace)).await["blocked"] != Value::Null
    }

    /// Attempts of a run's finished task of a kind.
    pub async fn attempts_of(&self, run: &str, kind: &str) -> i32 {
        const ATTEMPTS: &str = "SELECT attempts FROM finished_tasks WHERE subject_id = $1 AND kind = $2";
        let conn = self.plane.db().conn().await.unwrap();
        let row = conn.query_opt(ATTEMPTS, &[&run.parse::<Uuid>().unwrap(), &kind]).await.unwrap();
        row.unwrap_or_else(|| panic!("the {kind} task of {run} is lost")).get(0)
    }
}

/// Ends what a failed test has left running: an executor goes on alone for hours.
pub fn kill_below(directory: &Path) {
    for pid in processes_below(directory) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// Processes that work in the directory, or name it.
pub fn processes_below(directory: &Path) -> Vec<i32> {
    let directory = directory.to_str().unwrap();
    let works_there = |path: &Path| {
        let names = std::fs::read(path.join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(directory));
        names || std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    };
    let own = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(pid, path)| *pid != own && works_there(path))
        .map(|(pid, _)| pid)
        .collect()
}
