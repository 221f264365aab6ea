//! An apply that fails half-way, on a whole emulator: what was made is kept and named, and work goes on.

use plumbline_core::limits::Limits;
use plumbline_emulator::{Emulator, Options};
use serde_json::{Value, json};

use super::{Mirror, stack};
use crate::emulator::program::{programs, scratch};
use crate::emulator::session::Session;
use crate::executor::world::git;

/// An emulator with one workspace, whose stack uses our provider.
pub(super) struct Plane {
    pub(super) emulator: Emulator,
    pub(super) session: Session,
    pub(super) workspace: String,
    repository: std::path::PathBuf,
    _directory: tempfile::TempDir,
    _mirror: Mirror,
}

impl Plane {
    pub(super) async fn start(mirror: Mirror, main: &str) -> Self {
        let directory = scratch();
        let repositories = directory.path().join("repositories");
        let repository = repositories.join("stack");
        std::fs::create_dir_all(&repository).unwrap();
        git(&repository, &["init", "--quiet"]);
        let mut options = Options {
            repositories: Some(repositories),
            provider_mirror: Some(mirror.path().to_owned()),
            ..Options::scratch(directory.path().join("home"), programs())
        };
        options.limits = Limits { heartbeat: std::time::Duration::from_secs(1), ..options.limits };
        let emulator = Emulator::start(options).await.expect("it starts");
        let session = Session::sign_in(&emulator.facts).await;
        let mut plane = Self {
            emulator,
            session,
            workspace: String::new(),
            repository,
            _directory: directory,
            _mirror: mirror,
        };
        plane.push(main);
        let imported = plane.session.import(&plane.repository.display().to_string()).await;
        let [workspace] = imported.as_slice() else { panic!("one workspace, not {imported:?}") };
        plane.workspace = workspace.clone();
        plane
    }

    /// Commits another stack.
    pub(super) fn push(&self, main: &str) {
        std::fs::write(self.repository.join("main.tf"), stack(main)).unwrap();
        git(&self.repository, &["add", "-A"]);
        git(&self.repository, &["commit", "--quiet", "-m", "change"]);
    }

    /// Asks for a run and gives its id.
    pub(super) async fn begin(&self, command: &str) -> String {
        let request = json!({ "workspace_id": self.workspace, "command": command });
        self.session.post("runs", request).await["id"].as_str().unwrap().to_owned()
    }

    /// Waits for its plan, approves it, and gives the run as it was.
    pub(super) async fn approve(&self, run: &str) -> Value {
        let planned = self.session.run(run, "awaiting_approval").await;
        let approval = json!({ "digest": planned["approval_digest"] });
        self.session.post(&format!("approvals/{run}/approve"), approval).await;
        planned
    }

    pub(super) async fn stop(self) {
        self.emulator.stop().await.expect("it stops");
    }
}

const PARTS: &str = r#"
resource "plumbtest_slow" "before" {
  name = "before"
}
resource "plumbtest_parts" "some" {
  wanted      = 3
  FAILS
  depends_on  = [plumbtest_slow.before]
}
resource "plumbtest_slow" "after" {
  name       = "after"
  depends_on = [plumbtest_parts.some]
}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_that_fails_half_way_keeps_what_was_made_and_the_next_one_makes_the_rest() {
    let Some(mirror) = Mirror::find() else { return };
    let plane = Plane::start(mirror, &PARTS.replace("FAILS", "fails_after = 2")).await;
    let session = &plane.session;
    let run = plane.begin("apply").await;
    plane.approve(&run).await;
    let failed = session.run(&run, "failed").await;
    assert_eq!(failed["status_reason"], "error", "{failed}");

    let steps = session.get(&format!("runs/{run}/steps")).await;
    let apply =
        steps["items"].as_array().unwrap().iter().find(|step| step["name"] == "Terraform Apply").unwrap();
    let touched = &apply["summary"]["touched"];
    assert_eq!(touched[0]["address"], "plumbtest_parts.some", "{apply}");
    assert_eq!(
        (&touched[1]["address"], &touched[1]["id"]),
        (&json!("plumbtest_slow.before"), &json!("slow-before"))
    );
    assert_eq!(touched.as_array().unwrap().len(), 2);

    let workspace = format!("workspaces/{}", plane.workspace);
    let shown = session.get(&workspace).await;
    assert_eq!(shown["blocked"], Value::Null, "{shown}");
    assert_eq!(session.get(&format!("{workspace}/state-lock")).await["held"], json!(false));
    let versions = session.get(&format!("{workspace}/state-versions")).await;
    let newest = versions["items"][0]["id"].as_str().unwrap();
    let kept = session.get(&format!("state-versions/{newest}/download")).await;
    let parts =
        kept["resources"].as_array().unwrap().iter().find(|one| one["type"] == "plumbtest_parts").unwrap();
    assert_eq!(parts["instances"][0]["attributes"]["made"], 2, "{parts}");
    assert_eq!(parts["instances"][0]["status"], "tainted");

    plane.push(&PARTS.replace("FAILS", ""));
    let next = plane.begin("apply").await;
    let planned = plane.approve(&next).await["plan_summary"].clone();
    // The tainted one is made anew, the one behind it for the first time.
    assert_eq!((&planned["add"], &planned["replace"], &planned["no_op"]), (&json!(2), &json!(1), &json!(1)));
    session.run(&next, "applied").await;
    plane.stop().await;
}
