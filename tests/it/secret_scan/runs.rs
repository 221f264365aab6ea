//! Runs with secret variables at every level, with the credentials of every cloud, and a private module: one that is
//! applied, and some whose errors and logs would quote what they were given.

use http::Method;
use serde_json::{Value, json};

use super::repositories::Forge;
use super::stage::{Stage, id};

/// Shows everything that it has, wherever something can be shown.
const SHOWS_ALL: &str = r#"
variable "of_the_unit" {}
variable "of_the_set" {}
variable "of_the_workspace" {}
variable "of_the_run" {}
variable "lines" {}
variable "shape" { type = object({ inner = string }) }
module "private" {
  source = "git::http://HOST/module.git"
  word   = var.of_the_unit
}
resource "terraform_data" "all" {
  input = [module.private.word, var.of_the_set, var.of_the_workspace, var.of_the_run, var.shape, var.lines]
  provisioner "local-exec" {
    command     = "env; echo \"$WORD $LINES_\"; printf %s \"x$WORD\" | base64; env | sort -r >&2"
    environment = { WORD = var.of_the_run, LINES_ = var.lines }
  }
}
output "run" { value = var.of_the_run }
output "all" { value = terraform_data.all.output }
output "encoded" { value = base64encode("a${var.of_the_workspace}b") }
output "address" { value = "https://robot:${urlencode(var.of_the_set)}@git.plumbline.test/" }
output "json" { value = jsonencode({ deep = jsonencode([var.of_the_unit, var.lines]) }) }
"#;

/// The errors of these quote a variable: by its rule, its type, a condition, and what a program said.
const FAILING: [(&str, &str); 4] = [
    (
        "rule",
        "variable \"of_the_workspace\" {\n  validation {\n    condition = length(var.of_the_workspace) < 3\n    \
              error_message = \"${var.of_the_workspace} is long\"\n  }\n}\n",
    ),
    ("type", "variable \"of_the_workspace\" { type = map(number) }\n"),
    (
        "condition",
        "variable \"of_the_workspace\" {}\nresource \"terraform_data\" \"x\" {\n  lifecycle {\n    precondition {\n      \
                   condition = tonumber(var.of_the_workspace) > 3\n      error_message = \"no ${var.of_the_workspace}\"\n    }\n  }\n}\n",
    ),
    (
        "program",
        "variable \"of_the_workspace\" {}\nresource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" {\n    \
                 command = \"env >&2; echo $WORD; exit 3\"\n    environment = { WORD = var.of_the_workspace }\n  }\n}\n",
    ),
];

/// A workspace of a repository at the forge.
async fn workspace(stage: &Stage, forge: &Forge, name: &str, text: &str) -> String {
    forge.add(name, text);
    let new = json!({ "name": name, "environment": "dev", "repo_url": forge.url(name) });
    id(&stage.post("workspaces", new).await)
}

/// A secret that is set at a level, and then replaced.
async fn set(stage: &Stage, place: &str, key: &str) {
    let first = stage.plant("NewVariable.value", key);
    let made = stage.post(place, json!({ "key": key, "value": first, "is_secret": true })).await;
    let value = stage.plant("VariableChange.value", key);
    stage.patch(&format!("{place}/{}", id(&made)), json!({ "value": value })).await;
}

/// Waits for a run's end, or until it waits for somebody.
async fn settled(stage: &Stage, run: &str) -> Value {
    let ends = ["awaiting_approval", "applied", "failed", "cancelled", "planned"];
    let run = stage.until(&format!("runs/{run}"), |run| ends.iter().any(|end| run["status"] == *end)).await;
    for position in
        1..=stage.get(&format!("runs/{}/steps", id(&run))).await["items"].as_array().unwrap().len()
    {
        stage
            .call(Method::GET, &format!("runs/{}/logs?position={position}", id(&run)), &stage.admin, None)
            .await;
    }
    run
}

/// Plans, approves and applies; answers what became of it.
async fn apply(stage: &Stage, workspace: &str, variables: Value) -> Value {
    let body = json!({ "workspace_id": workspace, "command": "apply", "variables": variables });
    let run = id(&stage.post("runs", body).await);
    let planned = settled(stage, &run).await;
    if planned["status"] != "awaiting_approval" {
        return planned;
    }
    stage.post(&format!("approvals/{run}/approve"), json!({ "digest": planned["approval_digest"] })).await;
    stage.until(&format!("runs/{run}"), |run| run["status"] != "awaiting_approval").await;
    settled(stage, &run).await
}

/// The run that is applied; its workspace.
pub async fn applied(stage: &Stage, forge: &Forge, links: Value) -> String {
    let workspace = workspace(stage, forge, "shows", &SHOWS_ALL.replace("HOST", &forge.host)).await;
    stage.put(&format!("workspaces/{workspace}"), links).await;
    let shared = id(&stage.post("variable-sets", json!({ "name": "shared" })).await);
    stage.put(&format!("variable-sets/{shared}/workspaces/{workspace}"), json!({})).await;
    set(stage, "variables", "of_the_unit").await;
    set(stage, &format!("variable-sets/{shared}/variables"), "of_the_set").await;
    let own = format!("workspaces/{workspace}/variables");
    set(stage, &own, "of_the_workspace").await;
    let lines: Vec<String> =
        (0..3).map(|n| stage.plant("NewVariable.value", &format!("line {n} of a longer text"))).collect();
    stage.post(&own, json!({ "key": "lines", "value": lines.join("\n"), "is_secret": true })).await;
    let inner = stage.plant_plain("NewVariable.value", "inside of an expression");
    let shape = format!("{{\n  inner = \"{inner}\"\n}}");
    stage.post(&own, json!({ "key": "shape", "value": shape, "is_secret": true, "is_hcl": true })).await;
    let value = stage.plant("RunVariable.value", "of the run");
    let variables = json!([{ "key": "of_the_run", "value": value, "is_secret": true }]);
    let run = apply(stage, &workspace, variables).await;
    assert_eq!(run["status"], "applied", "{run}");
    let run = id(&run);
    for path in
        ["plan", "variables", "artifacts", "artifacts/plan_text", "artifacts/plan_json_redacted", "steps"]
    {
        let (status, answer) =
            stage.call(Method::GET, &format!("runs/{run}/{path}"), &stage.admin, None).await;
        assert!(status < 400, "{path}: {status} {answer}");
    }
    workspace
}

/// The runs that fail, and one that cannot even clone.
pub async fn failed(stage: &Stage, forge: &Forge, scratch: &std::path::Path) {
    for (name, text) in FAILING {
        let workspace = workspace(stage, forge, name, text).await;
        set_for_failing(stage, &workspace, name).await;
        let run = apply(stage, &workspace, json!([])).await;
        assert_eq!(run["status"], "failed", "{name}: {run}");
    }
    let right = stage.plant("NewGitCredential.token", "what another forge wants");
    let wrong = stage.plant("NewGitCredential.token", "what it gets");
    let other = Forge::serve(&scratch.join("closed"), "robot", &right).await;
    let new =
        json!({ "name": "closed", "kind": "token", "host": other.host, "username": "robot", "token": wrong });
    stage.post("git-credentials", new).await;
    let workspace = workspace(stage, &other, "closed", "output \"one\" { value = 1 }\n").await;
    let run = apply(stage, &workspace, json!([])).await;
    assert_eq!(run["status"], "failed", "{run}");
}

async fn set_for_failing(stage: &Stage, workspace: &str, name: &str) {
    let value = stage.plant("NewVariable.value", &format!("of a run that fails by its {name}"));
    let new = json!({ "key": "of_the_workspace", "value": value, "is_secret": true });
    stage.post(&format!("workspaces/{workspace}/variables"), new).await;
}
