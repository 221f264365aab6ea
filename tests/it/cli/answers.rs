//! Every command of `plumb` that succeeds: what it asks, what people see of the answer, and what scripts do.

mod accounts;
mod ci_logins;
mod complete;
mod git_credentials;
mod installation;
mod people;
mod settings;
mod states;
mod variables;
mod world;

use serde_json::Value;

use self::world::{IDS, id, path, replies, server};
use super::server::{EMAIL, FakeServer, Plumb, Ran, ran};

/// What a script gets with `--json`.
#[derive(Clone, Copy, Debug)]
enum Scripts {
    /// The server's document of this call, byte for byte.
    Get(&'static str),
    /// Nothing: there is no answer to show.
    Nothing,
    /// The same bytes as people.
    Bytes,
}
use Scripts::{Bytes, Get, Nothing};

/// One command: its words, the call that matters, what scripts get, and what people see. One capital letter is an id;
/// columns are parted by one space.
type Row = (&'static str, &'static str, Scripts, &'static str);

const WEB: &str = "workspace web\nid W\nkind terraform\nenvironment prod\nregion eu-west-1\naccount global\n\
    repository https://git.example.com/infra.git at main\ndirectory stacks/web\ntags team=web\n\
    state writes runs_only\nupdated -";
const PLAN: &str = "Plan: 2 to add, 1 to change, 0 to destroy.\n+ terraform_data.web";

fn rows() -> Vec<Row> {
    let mut rows = sessions_and_workspaces();
    rows.extend(variables::rows());
    rows.extend(runs());
    rows.extend(states::rows());
    rows.extend(operators());
    rows.extend(installation::rows());
    rows.extend(people::rows());
    rows.extend(settings::rows());
    rows.extend(git_credentials::rows());
    rows.extend(accounts::rows());
    rows.extend(ci_logins::rows());
    rows
}

fn sessions_and_workspaces() -> Vec<Row> {
    vec![
        (
            "login --email ada@example.com",
            r#"POST /auth/token {"email":"ada@example.com","password":"open please"}"#,
            Get("GET /me"),
            "Signed in at SERVER as ada@example.com.",
        ),
        (
            "whoami",
            "GET /me",
            Get("GET /me"),
            "ada@example.com (Ada) at SERVER\nBUSINESS UNIT NAME ROLE\ndefault Default admin",
        ),
        ("logout", "POST /auth/logout", Nothing, "Signed out of SERVER."),
        ("logout --everywhere", "POST /auth/logout-all", Nothing, "Signed out of SERVER on every machine."),
        (
            "workspace list --search w --limit 7",
            "GET /workspaces?q=w&limit=7",
            Get("GET /workspaces"),
            "ID NAME ENVIRONMENT REGION DIRECTORY STATUS UPDATED\nW web prod eu-west-1 stacks/web free -",
        ),
        ("workspace show W", "GET /workspaces/W", Get("GET /workspaces/W"), WEB),
        (
            "workspace create web --environment prod --repo-url https://git.example.com/infra.git --tag team=web",
            r#"POST /workspaces {"environment":"prod","name":"web","repo_url":"https://git.example.com/infra.git","tags":{"team":"web"}}"#,
            Get("POST /workspaces"),
            "Created workspace web, id W.",
        ),
        (
            "workspace discover https://git.example.com/infra.git --ref main",
            r#"POST /workspaces/discover {"ref":"main","repo_url":"https://git.example.com/infra.git"}"#,
            Get("GET /tasks/T"),
            "PATH NAME ENVIRONMENT REGION ACCOUNT KIND\nstacks/web web prod eu-west-1 global terraform",
        ),
        (
            "workspace import https://git.example.com/infra.git",
            r#"POST /workspaces/import {"repo_url":"https://git.example.com/infra.git"}"#,
            Get("GET /tasks/T"),
            "ID NAME PATH\nW web stacks/web",
        ),
        (
            "workspace update W --region eu-west-2",
            r#"PUT /workspaces/W {"region":"eu-west-2"}"#,
            Get("PUT /workspaces/W"),
            WEB,
        ),
        ("workspace delete W --yes", "DELETE /workspaces/W", Nothing, "Deleted workspace web."),
        (
            "workspace branches W",
            "POST /workspaces/W/branches",
            Get("GET /tasks/T"),
            "BRANCH\nmain default\nfeature/x",
        ),
        (
            "workspace share-state W --with W",
            r#"PUT /workspaces/W/state-consumers {"workspace_ids":["W"]}"#,
            Get("PUT /workspaces/W/state-consumers"),
            "WORKSPACE ID\nbatch W",
        ),
        (
            "workspace lock W --reason moving",
            r#"POST /workspaces/W/lock {"reason":"moving"}"#,
            Get("POST /workspaces/W/lock"),
            "web is locked. Only runs that change nothing begin.",
        ),
        (
            "workspace unlock W",
            "POST /workspaces/W/unlock",
            Get("POST /workspaces/W/unlock"),
            "web is unlocked.",
        ),
        (
            "workspace unblock W --note seen",
            r#"POST /workspaces/W/unblock {"note":"seen"}"#,
            Get("POST /workspaces/W/unblock"),
            "web takes changes again.",
        ),
    ]
}

fn runs() -> Vec<Row> {
    vec![
        (
            "run plan W --no-wait",
            r#"POST /runs {"allow_destroy":false,"auto_approve_if_no_changes":false,"auto_approve_skip_apply":false,"command":"plan","variables":[],"workspace_id":"W"}"#,
            Get("POST /runs"),
            "Started run R (plan).",
        ),
        (
            "run apply W --no-wait --auto-approve-if-no-changes --skip-apply",
            r#"POST /runs {"allow_destroy":false,"auto_approve_if_no_changes":true,"auto_approve_skip_apply":true,"command":"apply","variables":[],"workspace_id":"W"}"#,
            Get("POST /runs"),
            "Started run R (apply).",
        ),
        (
            "run destroy W --no-wait",
            r#"POST /runs {"allow_destroy":true,"auto_approve_if_no_changes":false,"auto_approve_skip_apply":false,"command":"destroy","variables":[],"workspace_id":"W"}"#,
            Get("POST /runs"),
            "Started run R (destroy).",
        ),
        (
            "run show R",
            "GET /runs/R",
            Get("GET /runs/R"),
            "run R\nworkspace W\ncommand apply\nstatus awaiting_approval\nbranch main\nmessage more\n\n\
             Plan: 2 to add, 1 to change, 0 to destroy.\n+ terraform_data.web",
        ),
        (
            "run list --workspace W --status awaiting_approval --command list",
            "GET /runs?workspace_id=W&status=awaiting_approval&command=list",
            Get("GET /runs"),
            "ID COMMAND STATUS CHANGES CREATED BRANCH MESSAGE\nR list awaiting_approval +2 ~1 -0 - main more",
        ),
        (
            "run cancel R --reason late",
            r#"POST /runs/R/cancel {"reason":"late"}"#,
            Get("POST /runs/R/cancel"),
            "Run R is cancelled.",
        ),
        (
            "run promote R --no-wait",
            "POST /runs/R/promote",
            Get("POST /runs/R/promote"),
            "Started run R (apply).",
        ),
        (
            "run steps R",
            "GET /runs/R/steps",
            Get("GET /runs/R/steps"),
            "STEP PHASE NAME STATUS ATTEMPT TOOK LOG\n1 plan init succeeded 1 4 s 7 B",
        ),
        ("run logs R --step 1", "GET /runs/R/logs?position=1&offset=0", Get("GET /runs/R/logs"), "the log"),
        (
            "run artifacts R",
            "GET /runs/R/artifacts",
            Get("GET /runs/R/artifacts"),
            "KIND SIZE CREATED SHA256\nplan_text 8 B - ab",
        ),
        (
            "run unrecorded R",
            "GET /runs/R/unrecorded-resources",
            Get("GET /runs/R/unrecorded-resources"),
            "ADDRESS ID\na.b i-1\n\nTo record those that exist:\nterraform import a.b i-1",
        ),
        ("run download R plan_text", "GET /runs/R/artifacts/plan_text", Bytes, "\"the plan\""),
        (
            "approve R --yes --no-wait --comment fine",
            r#"POST /approvals/R/approve {"comment":"fine","digest":"abababab"}"#,
            Get("POST /approvals/R/approve"),
            "Plan: 2 to add, 1 to change, 0 to destroy.\n+ terraform_data.web\n\
             Approved run R; watch it: plumb run logs R --follow",
        ),
        (
            "reject R --comment no",
            r#"POST /approvals/R/reject {"comment":"no"}"#,
            Get("POST /approvals/R/reject"),
            "Rejected run R; it is cancelled.",
        ),
    ]
}

fn operators() -> Vec<Row> {
    vec![
        (
            "tasks list --kind run_plan --subject R",
            "GET /tasks?kind=run_plan&subject_id=R",
            Get("GET /tasks"),
            "ID KIND STATUS ATTEMPTS CREATED ERROR\nT run_plan done 1/3 -",
        ),
        (
            "tasks show T",
            "GET /tasks/T",
            Get("GET /tasks/T"),
            "task T\nkind run_plan\nabout R\nstatus done\nattempts 1 of 3\ncreated -\nresult {…",
        ),
        ("tasks replay T", "POST /tasks/T/replay", Get("POST /tasks/T/replay"), "Queued again as task T."),
    ]
}

/// Ids as letters, the server by name, columns parted by one space.
fn plain(text: &str, server: &FakeServer) -> String {
    let mut text = text.replace(&server.url(), "SERVER");
    for (letter, id) in IDS {
        text = text.replace(id, &letter.to_string());
    }
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.join("\n")
}

/// The last call of this method and path, as the table writes it.
fn asked(server: &FakeServer, call: &str) -> String {
    let mut words = call.split([' ', '?']);
    let (method, place) = (words.next().expect("a method"), words.next().expect("a path"));
    let Some(last) = server.asked(method, &path(place)).pop() else { return "nothing".into() };
    let query = if last.query.is_empty() { String::new() } else { format!("?{}", last.query) };
    let body = if last.body == Value::Null { String::new() } else { format!(" {}", last.body) };
    plain(&format!("{method} {place}{query}{body}"), server)
}

async fn run(server: &FakeServer, line: &str, more: &[&str]) -> Ran {
    let plumb = Plumb::signed_in(server).await;
    let words = line.split(' ').map(|word| match word.chars().next() {
        Some(letter) if word.len() == 1 && letter.is_ascii_uppercase() => id(letter),
        _ => word,
    });
    let words: Vec<&str> = words.chain(more.iter().copied()).collect();
    let mut command = plumb.command(&words);
    let secrets = [
        ("PLUMB_PASSWORD", "open please"),
        ("PLUMB_NEW_PASSWORD", "close please"),
        ("PLUMB_INVITE_TOKEN", "pli_1"),
    ];
    ran(command.envs(secrets).output().await.expect("plumb ends"))
}

#[tokio::test]
async fn every_command_asks_the_server_and_shows_the_answer_to_people_and_to_scripts() {
    assert!(rows()[0].0.contains(EMAIL) && rows().iter().any(|row| row.3.ends_with(PLAN)));
    for (line, call, scripts, people) in rows() {
        let kind = line.split(' ').nth(1).unwrap_or_default();
        let server = server(kind).await;

        let shown = run(&server, line, &[]).await;
        assert_eq!(shown.code, 0, "{line}: {shown:?}");
        let seen = plain(&shown.stdout, &server);
        match people.strip_suffix('…') {
            Some(begin) => assert!(seen.starts_with(begin), "{line}: {seen}"),
            None => assert_eq!(seen, people, "{line}"),
        }
        assert_eq!(asked(&server, call), call, "{line}");

        let document = run(&server, line, &["--json"]).await;
        assert_eq!(document.code, 0, "{line}: {document:?}");
        match scripts {
            Nothing => assert_eq!(document.stdout, "", "{line}"),
            Bytes => assert_eq!(document.stdout, shown.stdout, "{line}"),
            Get("GET /me") => assert_eq!(document.json()["email"], EMAIL, "{line}"),
            Get(route) => {
                let replies = replies(kind);
                let (_, _, body) = replies.iter().find(|reply| reply.0 == route).expect("a scripted route");
                assert_eq!(document.stdout, format!("{body}\n"), "{line}");
            }
        }
    }
}
