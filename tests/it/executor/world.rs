//! One run for one test: a repository, a bundle, a fake `callback` and the real executor.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::*;
use uuid::Uuid;

use super::fake_callback::FakeCallback;

/// A whole run should not take longer; the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The repository and how executors are started.
pub(crate) struct World {
    root: tempfile::TempDir,
    pub(crate) bundle: Bundle,
    pub(crate) environment: Vec<(String, String)>,
    uid: Option<u32>,
}

/// A finished executor.
pub(crate) struct Finished {
    pub(crate) fake: FakeCallback,
    pub(crate) code: Option<i32>,
}

/// A running executor.
pub(crate) struct Running {
    pub(crate) fake: FakeCallback,
    pub(crate) child: std::process::Child,
}

pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.invalid",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl World {
    /// A repository with these files on `main`.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let repo = root.path().join("repos/stack");
        std::fs::create_dir_all(&repo).unwrap();
        git(&repo, &["init", "--quiet"]);
        let world = Self { bundle: bundle(&repo), environment: Vec::new(), uid: None, root };
        world.commit(files);
        world
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.root.path().join("repos/stack")
    }

    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            let path = self.repo().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        git(&self.repo(), &["add", "-A"]);
        git(&self.repo(), &["commit", "--quiet", "--allow-empty", "-m", "change"]);
        git(&self.repo(), &["rev-parse", "HEAD"])
    }

    pub(crate) fn secret(&mut self, key: &str, value: &str) {
        self.bundle.variables.push(Variable {
            key: key.into(),
            value: value.into(),
            is_secret: true,
            is_hcl: false,
        });
    }

    /// Gives everything to another user; executors run as that user from now on.
    pub(crate) fn run_as(&mut self, uid: u32) {
        let owner = format!("{uid}:{uid}");
        let given = Command::new("chown").arg("-R").arg(owner).arg(self.root.path()).status().unwrap();
        assert!(given.success());
        self.uid = Some(uid);
    }

    /// Starts the executor against a fresh fake.
    pub(crate) async fn start(&self) -> Running {
        self.start_against(FakeCallback::start(self.bundle.clone()).await)
    }

    pub(crate) fn start_against(&self, fake: FakeCallback) -> Running {
        let task_id = fake.bundle.lock().unwrap().task_id;
        let log = std::fs::File::create(self.root.path().join("executor.log")).unwrap();
        let mut command = Command::new(plumbline_tests::bin("executor-task"));
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid).env("HOME", self.root.path());
        }
        let child = command
            .env_remove("TF_CLI_CONFIG_FILE")
            .env("PLUMBLINE_CALLBACK_URL", &fake.url)
            .env("PLUMBLINE_TICKET", "ticket-ticket-ticket")
            .env("PLUMBLINE_TASK_ID", task_id.to_string())
            .env("PLUMBLINE_LOCAL_REPOS_ROOT", self.root.path().join("repos"))
            .env("PLUMBLINE_STOP_GRACE_SECONDS", "3")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Running { fake, child }
    }

    /// Runs it to its end.
    pub(crate) async fn run(&self) -> Finished {
        self.start().await.finish().await
    }

    /// Applies what `planned` made, on the same control plane.
    pub(crate) fn start_apply(&self, planned: &Finished) -> Running {
        self.start_against(self.approve(planned))
    }

    /// The control plane as it is after the approval.
    pub(crate) fn approve(&self, planned: &Finished) -> FakeCallback {
        let fake = planned.fake.clone();
        {
            let (mut bundle, mut told) = (fake.bundle.lock().unwrap(), fake.told());
            let done = told.plan_done.clone().expect("the plan is complete");
            bundle.phase = RunPhase::Apply;
            bundle.steps = steps(&APPLY_STEPS);
            bundle.source.commit = told.steps.iter().find_map(|(_, report)| report.commit.clone());
            bundle.tool = Tool {
                name: "terraform".into(),
                version: told.steps.iter().find_map(|(_, report)| report.tool_version.clone()),
                pinned: true,
            };
            bundle.plan =
                Some(PlanReference { sha256: done.plan_sha256, lock_file_sha256: done.lock_file_sha256 });
            told.nonce = None;
            told.logs.clear();
            told.steps.clear();
        }
        fake
    }

    pub(crate) async fn apply(&self, planned: &Finished) -> Finished {
        self.start_apply(planned).finish().await
    }

    /// The next plan reads what the last apply wrote.
    pub(crate) fn on_state_of(&mut self, applied: &Finished) {
        let told = applied.fake.told();
        let state = told.states.last().expect("a state was written");
        let json: serde_json::Value = serde_json::from_slice(state).unwrap();
        self.bundle.state = Some(PinnedState {
            version_id: Uuid::now_v7().into(),
            serial: json["serial"].as_i64().unwrap(),
            lineage: json["lineage"].as_str().unwrap().into(),
            size_bytes: i64::try_from(state.len()).unwrap(),
            sha256: Sha256Digest::of(state),
        });
    }

    pub(crate) async fn run_on_state_of(&mut self, applied: &Finished) -> Finished {
        self.on_state_of(applied);
        let fake = FakeCallback::start(self.bundle.clone()).await;
        fake.told().states.clone_from(&applied.fake.told().states);
        self.start_against(fake).finish().await
    }

    /// The executor's own output.
    pub(crate) fn executor_log(&self) -> String {
        std::fs::read_to_string(self.root.path().join("executor.log")).unwrap_or_default()
    }
}

impl Running {
    pub(crate) async fn finish(mut self) -> Finished {
        let mut code = None;
        eventually("the executor ends", || match self.child.try_wait().unwrap() {
            Some(status) => {
                code = status.code();
                true
            }
            None => false,
        })
        .await;
        Finished { fake: self.fake.clone(), code }
    }

    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&FakeCallback) -> bool) {
        eventually(what, || condition(&self.fake)).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A failed test leaves nothing running; a finished executor is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory where the child, whoever it is, can leave signs.
pub(crate) fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    directory
}

/// A resource whose creation says `begun` and then waits for `go`.
pub(crate) fn waiting_stack(signs: &Path) -> String {
    format!(
        r#"
resource "terraform_data" "one" {{
  provisioner "local-exec" {{ command = "touch {0}/begun; until [ -e {0}/go ]; do sleep 0.05; done" }}
}}
"#,
        signs.display()
    )
}

/// Polls until it holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "this never came: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const PLAN_STEPS: [&str; 6] =
    ["Git Clone", "Load Configuration", "Set Version", "Terraform Init", "Terraform Plan", "Derive Plan"];
const APPLY_STEPS: [&str; 3] = ["Prepare Apply", "Terraform Apply", "Terraform Output"];

fn steps(names: &[&str]) -> Vec<StepSpec> {
    names.iter().zip(1..).map(|(name, position)| StepSpec { position, name: (*name).into() }).collect()
}

fn bundle(repo: &Path) -> Bundle {
    Bundle {
        run_password: String::new(),
        protocol: VERSION,
        token: format!("run-token-{}", Uuid::now_v7()),
        executor_id: Uuid::now_v7().into(),
        task_id: Uuid::now_v7().into(),
        run_id: Uuid::now_v7().into(),
        workspace_id: Uuid::now_v7().into(),
        phase: RunPhase::Plan,
        command: RunCommand::Apply,
        attempt: 1,
        lease: LeaseTerms { lease_seconds: 60, heartbeat_seconds: 1, wall_clock_seconds: 100 },
        source: Source {
            repo_url: repo.display().to_string(),
            branch: "main".into(),
            commit: None,
            working_dir: ".".into(),
            credentials: Vec::new(),
            allow_private_addresses: true,
        },
        tool: Tool { name: "terraform".into(), version: None, pinned: false },
        variables: Vec::new(),
        environment: BTreeMap::new(),
        aws: None,
        cluster: None,
        token_files: Vec::new(),
        secrets: Vec::new(),
        steps: steps(&PLAN_STEPS),
        state: None,
        plan: None,
        log_bytes_max: 64 << 20,
        traceparent: None,
    }
}

/// Whether a process of this machine has the text among its arguments.
pub(crate) fn is_named_by_a_process(text: &str) -> bool {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        entry.file_name().to_str() != Some(&own)
            && std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    })
}
