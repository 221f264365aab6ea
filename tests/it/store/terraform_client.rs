//! The backend against the real `terraform`: what it says and does is what counts.

use std::path::Path;
use std::process::{Output, Stdio};

use plumbline_core::db::Query as _;
use tokio::process::Command;

use super::state_client::Backend;

const MODULE: &str = r#"
terraform {
  backend "http" {}
}
variable "value" { default = "one" }
resource "terraform_data" "one" { input = var.value }
output "value" { value = terraform_data.one.output }
"#;

pub(super) struct Terraform {
    pub(super) backend: Backend,
    address: String,
    directory: tempfile::TempDir,
}

/// Whether there is a terraform; if not, it is said why a test does nothing.
pub async fn is_there() -> bool {
    let found =
        Command::new("terraform").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("SKIP: terraform was not found on the PATH");
    }
    is_there
}

impl Terraform {
    /// `None`, with the reason printed, where there is no terraform.
    async fn start() -> Option<Self> {
        if is_there().await { Some(Self::at(Backend::start().await).await) } else { None }
    }

    /// Works on the state of this backend. The caller knows that there is a terraform.
    pub(super) async fn at(backend: Backend) -> Self {
        let address = backend.serve().await + &backend.path();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("main.tf"), MODULE).unwrap();
        Self { backend, address, directory }
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, &[]).await
    }

    async fn run_with(&self, arguments: &[&str], more: &[(&str, &str)]) -> Output {
        Command::new("terraform")
            .args(arguments)
            .current_dir(self.directory.path())
            .env("TF_HTTP_ADDRESS", &self.address)
            .env("TF_HTTP_LOCK_ADDRESS", &self.address)
            .env("TF_HTTP_UNLOCK_ADDRESS", &self.address)
            .env("TF_HTTP_USERNAME", "terraform")
            .env("TF_HTTP_PASSWORD", &self.backend.token)
            .env("TF_HTTP_RETRY_WAIT_MIN", "1")
            .env("TF_IN_AUTOMATION", "1")
            .env("CHECKPOINT_DISABLE", "1")
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap()
    }

    pub(super) async fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(output.status.success(), "terraform {arguments:?}\n{}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn errored_state(&self) -> bool {
        self.directory.path().join("errored.tfstate").exists()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub const APPLY: [&str; 4] = ["apply", "-auto-approve", "-input=false", "-no-color"];

#[tokio::test]
async fn terraform_inits_plans_applies_and_finds_nothing_more_to_do() {
    let Some(terraform) = Terraform::start().await else { return };
    terraform.ok(&["init", "-input=false", "-no-color"]).await;
    terraform.ok(&["plan", "-input=false", "-no-color"]).await;
    terraform.ok(&APPLY).await;
    let again = terraform.ok(&APPLY).await;
    assert!(again.contains("No changes."), "{again}");
    terraform.ok(&["apply", "-auto-approve", "-no-color", "-var=value=two"]).await;
    assert_eq!(terraform.ok(&["output", "-raw", "value"]).await, "two");
    assert_eq!(terraform.backend.versions().await.len(), 2);
    terraform.ok(&["destroy", "-auto-approve", "-no-color"]).await;
    assert!(terraform.ok(&["state", "list"]).await.is_empty());
    let (_, lock) =
        terraform.backend.api("GET", &format!("workspaces/{}/state-lock", terraform.backend.workspace)).await;
    assert_eq!(lock["held"], false);
}

#[tokio::test]
async fn terraform_works_with_the_methods_that_gateways_know() {
    let Some(terraform) = Terraform::start().await else { return };
    let lock = format!("{}/lock", terraform.address);
    let twins = [
        ("TF_HTTP_UPDATE_METHOD", "PUT"),
        ("TF_HTTP_LOCK_METHOD", "POST"),
        ("TF_HTTP_UNLOCK_METHOD", "DELETE"),
        ("TF_HTTP_LOCK_ADDRESS", lock.as_str()),
        ("TF_HTTP_UNLOCK_ADDRESS", lock.as_str()),
    ];
    for arguments in [&["init", "-input=false"][..], &APPLY] {
        let output = terraform.run_with(arguments, &twins).await;
        assert!(output.status.success(), "{}", text(&output));
    }
    assert_eq!(terraform.backend.versions().await.len(), 1);
    assert_eq!(terraform.backend.audited().await.last().unwrap(), "state.unlock");
}

#[tokio::test]
async fn terraform_pushes_a_pulled_state_and_is_told_why_a_foreign_one_is_refused() {
    let Some(terraform) = Terraform::start().await else { return };
    terraform.ok(&["init", "-input=false"]).await;
    terraform.ok(&APPLY).await;
    let pulled = terraform.ok(&["state", "pull"]).await;
    let mut state: serde_json::Value = serde_json::from_str(&pulled).unwrap();
    state["serial"] = (state["serial"].as_i64().unwrap() + 5).into();
    let write = |name: &str, state: &serde_json::Value| {
        std::fs::write(Path::new(terraform.directory.path()).join(name), state.to_string()).unwrap();
    };
    write("next.json", &state);
    terraform.ok(&["state", "push", "next.json"]).await;
    state["lineage"] = "another".into();
    write("foreign.json", &state);
    let refused = terraform.run(&["state", "push", "-force", "foreign.json"]).await;
    assert!(!refused.status.success(), "{}", text(&refused));
    assert!(text(&refused).contains("409"), "{}", text(&refused));
    let accept = format!("workspaces/{}/accept-next-lineage", terraform.backend.workspace);
    terraform.backend.api("POST", &accept).await;
    terraform.ok(&["state", "push", "-force", "foreign.json"]).await;
    assert_eq!(terraform.backend.versions().await[0]["lineage"], "another");
}

#[tokio::test]
async fn terraform_shows_the_holder_and_force_unlocks() {
    let Some(terraform) = Terraform::start().await else { return };
    terraform.ok(&["init", "-input=false"]).await;
    terraform.backend.lock("the-holder").await;
    let refused = terraform.run(&APPLY).await;
    assert!(!refused.status.success());
    assert!(text(&refused).contains("the-holder"), "{}", text(&refused));
    assert_eq!(terraform.backend.lock("the-holder").await.2, "", "the lock is still the holder's");
    terraform.ok(&["force-unlock", "-force", "the-holder"]).await;
    terraform.ok(&APPLY).await;
    assert!(terraform.backend.audited().await.contains(&"state.force_unlock".to_owned()));
}

#[tokio::test]
async fn terraform_keeps_its_state_when_the_lock_was_taken_away_meanwhile() {
    let Some(terraform) = Terraform::start().await else { return };
    terraform.ok(&["init", "-input=false"]).await;
    let conn = terraform.backend.plane.db().conn().await.unwrap();
    // Whoever locks loses the lock at once to somebody else.
    conn.batch(
        "CREATE FUNCTION steal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            NEW.lock_id := 'thief'; NEW.lock_info := '{\"ID\":\"thief\"}'; RETURN NEW; END $$;
         CREATE TRIGGER steal BEFORE INSERT OR UPDATE ON tfstates FOR EACH ROW WHEN (NEW.lock_id IS NOT NULL)
            EXECUTE FUNCTION steal()",
    )
    .await
    .unwrap();
    let applied = terraform.run(&APPLY).await;
    assert!(!applied.status.success(), "{}", text(&applied));
    assert!(terraform.errored_state(), "{}", text(&applied));
    assert_eq!(terraform.backend.quarantined().await.len(), 1);
    let heads = conn.query("SELECT 1 FROM tfstates WHERE head_version_id IS NOT NULL", &[]).await.unwrap();
    assert!(heads.is_empty());
}
