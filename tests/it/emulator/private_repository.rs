//! A private repository from import to applied with a stored credential, and that its secret is nowhere afterwards.

use plumbline_core::db::Query as _;
use plumbline_emulator::{Emulator, Options};
use serde_json::json;

use super::program::{programs, scratch};
use super::session::{Session, git, serve};

/// Long, and with signs that every encoding changes.
const SECRET: &str = "pl4nted/secret+of=the&forge";

/// Every row of every table as text.
const TABLES: &str = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";

fn repository(root: &std::path::Path, name: &str, text: &str) {
    let work = root.join(format!("{name}-work"));
    std::fs::create_dir(&work).expect("created");
    git(&work, &["init", "-q", "-b", "main"]);
    std::fs::write(work.join("main.tf"), text).expect("written");
    git(&work, &["add", "-A"]);
    git(&work, &["-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "begin"]);
    git(root, &["clone", "-q", "--bare", &format!("{name}-work"), &format!("{name}.git")]);
}

/// How a secret may look elsewhere.
fn forms() -> Vec<String> {
    use base64::Engine as _;
    let encoded: String = url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("robot:{SECRET}"));
    let plain = base64::engine::general_purpose::STANDARD.encode(SECRET);
    vec![SECRET.to_owned(), encoded, basic, plain, hex::encode(SECRET)]
}

#[tokio::test]
async fn a_private_repository_goes_from_import_to_applied_and_its_secret_shows_nowhere() {
    let scratch = scratch();
    let home = scratch.path().join("home");
    let emulator = Emulator::start(Options::scratch(&home, programs())).await.expect("it starts");
    let root = scratch.path().join("git");
    std::fs::create_dir(&root).expect("created");
    let served = serve(&root, Some(("robot".to_owned(), SECRET.to_owned()))).await;
    let host = served.url.trim_start_matches("http://").split('/').next().expect("a host").to_owned();
    repository(&root, "module", "variable \"word\" {}\noutput \"word\" { value = var.word }\n");
    let stack = format!(
        "module \"private\" {{\n  source = \"git::http://{host}/module.git\"\n  word = \"applied\"\n}}\n\
         resource \"terraform_data\" \"one\" {{ input = module.private.word }}\n"
    );
    repository(&root, "demo", &stack);

    let session = Session::sign_in(&emulator.facts).await;
    let credential =
        json!({ "name": "forge", "kind": "token", "host": host, "username": "robot", "token": SECRET });
    let stored = session.post("git-credentials", credential).await;
    let workspaces = session.import(&served.url).await;
    let [workspace] = workspaces.as_slice() else { panic!("one workspace, not {workspaces:?}") };
    let applied = session.apply(workspace).await;
    assert_eq!(applied["plan_summary"]["add"], json!(1), "{applied}");

    let uses = session.get("audit?action=git_credential.use").await;
    let of_run = |phase: &str| {
        let items = uses["items"].as_array().expect("a list").iter();
        items.filter(|entry| entry["run_id"] == applied["id"] && entry["details"]["phase"] == phase).count()
    };
    assert_eq!((of_run("plan"), of_run("apply")), (1, 1), "{uses}");
    let usage =
        session.get(&format!("git-credentials/{}/usage", stored["id"].as_str().expect("an id"))).await;
    assert_eq!(usage["workspaces"][0]["id"], json!(workspace), "{usage}");

    let mut dump = String::new();
    {
        let conn = emulator.deps.db.conn().await.expect("a connection");
        for table in conn.query(TABLES, &[]).await.expect("tables") {
            let table: String = table.get(0);
            let rows = format!("SELECT coalesce(string_agg(row::text, ''), '') FROM {table} AS row");
            dump.push_str(conn.query_one(&rows, &[]).await.expect("rows").get(0));
            let canonical =
                "SELECT coalesce(string_agg(convert_from(canonical, 'UTF8'), ''), '') FROM audit_entries";
            dump.push_str(conn.query_one(canonical, &[]).await.expect("rows").get(0));
        }
    }
    assert!(dump.contains(":gAAAA") && dump.contains(&host), "the dump has the sealed secret");
    emulator.stop().await.expect("it stops");
    for form in forms() {
        assert!(!dump.contains(&form), "the database has {form}");
        // Logs, objects, what executors left, and the database's own files.
        let found = std::process::Command::new("grep").args(["-rlaF", "--", &form]).arg(&home).output();
        let found = String::from_utf8_lossy(&found.expect("grep runs").stdout).into_owned();
        assert_eq!(found, "", "{form} is in files");
    }
}
