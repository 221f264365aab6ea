//! Git credentials of every kind: stored, replaced, tested with what is right and wrong, used by tasks.

use std::path::{Path, PathBuf};

use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::stage::{Stage, id};
use crate::emulator::session::{Repository, git, serve};
use crate::fake_github::{self, APP_ID, FakeGithub, INSTALLATION_ID};
use crate::sshd::Sshd;

/// Repositories behind a login, and who serves them.
pub struct Forge {
    pub host: String,
    served: Repository,
}

impl Forge {
    /// Repositories below a directory, for this login.
    pub async fn serve(root: &Path, user: &str, password: &str) -> Self {
        std::fs::create_dir_all(root).unwrap();
        let served = serve(root, Some((user.to_owned(), password.to_owned()))).await;
        let host = served.url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
        Self { host, served }
    }

    /// The address of a repository.
    pub fn url(&self, name: &str) -> String {
        self.served.url.replace("demo.git", &format!("{name}.git"))
    }

    /// A repository with this root module.
    pub fn add(&self, name: &str, text: &str) -> PathBuf {
        let work = self.served.root.join(format!("{name}-work"));
        std::fs::create_dir(&work).unwrap();
        git(&work, &["init", "-q", "-b", "main"]);
        std::fs::write(work.join("main.tf"), text).unwrap();
        git(&work, &["add", "-A"]);
        git(
            &work,
            &["-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "begin"],
        );
        git(&self.served.root, &["clone", "-q", "--bare", &format!("{name}-work"), &format!("{name}.git")]);
        self.served.root.join(format!("{name}.git"))
    }
}

/// The middle of a private key: a line that holds nothing public.
fn inside(key: &str) -> String {
    let lines: Vec<&str> = key.lines().collect();
    lines[lines.len() * 3 / 5].to_owned()
}

/// A task of a credential: what became of it.
async fn tested(stage: &Stage, credential: &str, repo_url: &str) -> Value {
    let asked =
        stage.post(&format!("git-credentials/{credential}/test"), json!({ "repo_url": repo_url })).await;
    stage.tried(&asked).await
}

/// A forge whose token is stored for runs.
pub async fn forge(stage: &Stage, scratch: &Path) -> Forge {
    let first = stage.plant("NewGitCredential.token", "a token");
    let token = stage.plant("GitCredentialChange.token", "a token");
    let forge = Forge::serve(&scratch.join("forge"), "robot", &token).await;
    forge.add("module", "variable \"word\" {}\noutput \"word\" { value = var.word }\n");
    let new =
        json!({ "name": "forge", "kind": "token", "host": forge.host, "username": "robot", "token": first });
    let stored = id(&stage.post("git-credentials", new).await);
    let refused = tested(stage, &stored, &forge.url("module")).await;
    assert_eq!(refused["result"]["outcome"], "refused", "{refused}");
    stage.patch(&format!("git-credentials/{stored}"), json!({ "token": token })).await;
    let good = tested(stage, &stored, &forge.url("module")).await;
    assert_eq!(good["result"]["outcome"], "ok", "{good}");
    forge
}

/// Tasks with a login of their own, right and wrong.
pub async fn tasks(stage: &Stage, scratch: &Path) {
    let token = stage.plant("DiscoverRequest.token", "right");
    let forge = Forge::serve(&scratch.join("other"), "robot", &token).await;
    forge.add("stack", "output \"one\" { value = 1 }\n");
    let with = |token: &str| json!({ "repo_url": forge.url("stack"), "username": "robot", "token": token });
    let found = stage.tried(&stage.post("workspaces/discover", with(&token)).await).await;
    assert_eq!(found["status"], "done", "{found}");
    let wrong = stage.plant("DiscoverRequest.token", "wrong");
    let failed = stage.tried(&stage.post("workspaces/discover", with(&wrong)).await).await;
    assert!(!failed["last_error"].is_null(), "{failed}");
    stage.plant_this("ImportRequest.token", "right", &token[..token.len() - 8]);
    let done = stage.tried(&stage.post("workspaces/import", with(&token)).await).await;
    assert_eq!(done["status"], "done", "{done}");
}

/// A task that waits for a host that is away, with its login.
pub async fn waiting_task(stage: &Stage) {
    // Tried again tomorrow, so that it is still there when it is looked for.
    const LATER: &str = "
        UPDATE tasks SET run_after = plumbline_now() + interval '1 day'
        WHERE id = $1 AND status = 'queued' AND payload ? 'login_sealed'";
    let token = stage.plant("ImportRequest.token", "of a host that is away");
    let away = json!({ "repo_url": "http://127.0.0.1:9/infra.git", "username": "robot", "token": token });
    let accepted = stage.post("workspaces/import", away).await;
    stage.tried(&accepted).await;
    let task: uuid::Uuid = accepted["task_id"].as_str().unwrap().parse().unwrap();
    let pool = stage.db();
    let waits = pool.conn().await.unwrap().execute(LATER, &[&task]).await.unwrap();
    assert_eq!(waits, 1, "it is to be tried again");
}

/// A GitHub App and an SSH key, where the machine has what that takes.
pub async fn keys(stage: &Stage, scratch: &Path) {
    if let Some(github) = FakeGithub::start().await {
        let (user, token) = fake_github::LOGIN.split_once(':').unwrap();
        let forge = Forge::serve(&scratch.join("app"), user, token).await;
        forge.add("stack", "output \"one\" { value = 1 }\n");
        let (first, own) = (github.strange_key(), github.private_key());
        stage.plant_this("NewGitCredential.private_key", "of an app", &inside(&first));
        stage.plant_this("GitCredentialChange.private_key", "of an app", &inside(&own));
        stage.know("the token of an installation", token);
        let new = json!({ "name": "app", "kind": "github_app", "host": forge.host, "app_id": APP_ID,
            "installation_id": INSTALLATION_ID, "api_url": github.url, "private_key": first });
        let stored = id(&stage.post("git-credentials", new).await);
        let refused = tested(stage, &stored, &forge.url("stack")).await;
        assert_eq!(refused["result"]["outcome"], "refused", "{refused}");
        stage.patch(&format!("git-credentials/{stored}"), json!({ "private_key": own })).await;
        let good = tested(stage, &stored, &forge.url("stack")).await;
        assert_eq!(good["result"]["outcome"], "ok", "{good}");
    }
    if let Some(sshd) = Sshd::start().await {
        let forge = Forge::serve(&scratch.join("ssh"), "nobody", "nothing").await;
        let repository = forge.add("stack", "output \"one\" { value = 1 }\n");
        let (first, own) = (sshd.strange_key(), sshd.client_key());
        stage.plant_this("NewGitCredential.private_key", "of ssh", &inside(&first));
        stage.plant_this("GitCredentialChange.private_key", "of ssh", &inside(&own));
        let url = sshd.url(&repository);
        let host =
            url.trim_start_matches("ssh://").split(['/']).next().unwrap().split('@').next_back().unwrap();
        let new = json!({ "name": "ssh", "kind": "ssh_key", "host": host, "private_key": first,
            "host_keys": [sshd.fingerprint()] });
        let stored = id(&stage.post("git-credentials", new).await);
        let refused = tested(stage, &stored, &url).await;
        assert_eq!(refused["result"]["outcome"], "refused", "{refused}");
        stage.patch(&format!("git-credentials/{stored}"), json!({ "private_key": own })).await;
        let good = tested(stage, &stored, &url).await;
        assert_eq!(good["result"]["outcome"], "ok", "{good}");
    }
}
