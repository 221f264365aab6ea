//! A log that `plumb` exported from a real control plane, verified without one, and tampered with in every way.

use std::path::{Path, PathBuf};

use plumbline_core::audit;
use plumbline_runtime::Function;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::server::{Plumb, Ran};
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane};

/// A control plane behind a socket, with entries in several chains, and `plumb` signed in to it.
struct Desk {
    plane: TestPlane,
    plumb: Plumb,
    _stop: tokio::task::JoinHandle<()>,
    key: OnceCell<String>,
}

impl Desk {
    async fn new() -> Self {
        let plane = TestPlane::start().await;
        let admin = plane.admin_token().await;
        for slug in ["blue", "red"] {
            let unit = plane.unit(slug).await;
            let member = plane.member(unit, plumbline_core::access::Role::Admin).await;
            for name in ["a", "b", "c"] {
                let body = serde_json::json!({ "name": name, "environment": "dev", "repo_url": format!("https://git.example.com/{name}.git") });
                assert!(plane.call("POST", "/api/v1/workspaces", &*member, body).await.0.is_success());
            }
        }
        drop(admin);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = plumbline_api::router(plane.as_function(Function::Api));
        let stop = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let plumb = Plumb::new(&url);
        let ran = plumb
            .run_with(&["login", "--email", ADMIN_EMAIL, "--password-stdin"], &[PASSWORD, "\n"].concat())
            .await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(audit::service::checkpoint(&plane.as_function(Function::Reconciler)).await.unwrap());
        Self { plane, plumb, _stop: stop, key: OnceCell::new() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.plumb.config().join(name)
    }

    async fn export(&self, name: &str) -> Vec<String> {
        let file = self.file(name);
        let ran = self.plumb.run(&["audit", "export", "--output", file.to_str().unwrap()]).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
    }

    /// The public key that an auditor has noted.
    async fn key(&self) -> &str {
        self.key
            .get_or_init(async || {
                let ctx = crate::store::audit_context();
                let api = self.plane.as_function(Function::Api);
                audit::service::chains(&api, &ctx, None, None).await.unwrap().checkpoint.unwrap().public_key
            })
            .await
    }

    async fn verify(&self, file: &Path) -> Ran {
        self.verify_with(file, self.key().await).await
    }

    async fn verify_with(&self, file: &Path, key: &str) -> Ran {
        // No server and no session: it is offline.
        let nobody = Plumb::new("http://127.0.0.1:9");
        nobody
            .run(&["audit", "verify", "--file", file.to_str().unwrap(), "--public-key", key, "--json"])
            .await
    }

    async fn verify_lines(&self, lines: &[String]) -> Ran {
        let file = self.file("tampered.jsonl");
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        self.verify(&file).await
    }
}

fn is_a(line: &str, kind: &str) -> bool {
    serde_json::from_str::<Value>(line).unwrap()["type"] == kind
}

fn find(lines: &[String], kind: &str, nth: usize) -> usize {
    lines.iter().enumerate().filter(|(_, line)| is_a(line, kind)).nth(nth).unwrap().0
}

#[tokio::test]
async fn an_export_is_whole_private_and_verifies_without_a_server() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new().await;
    let lines = desk.export("log.jsonl").await;
    let entries = lines.iter().filter(|line| is_a(line, "entry")).count();
    let conn = desk.plane.db().conn().await.unwrap();
    let there: i64 = {
        use plumbline_core::db::Query as _;
        conn.query_one("SELECT count(*) FROM audit_entries", &[]).await.unwrap().get(0)
    };
    assert_eq!(entries, usize::try_from(there).unwrap());
    let mode = std::fs::metadata(desk.file("log.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let ran = desk.verify(&desk.file("log.jsonl")).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let verdict = ran.json();
    assert_eq!((&verdict["ok"], &verdict["chains"]), (&Value::Bool(true), &Value::from(3)));
    assert_eq!(verdict["entries"], there);
    // The key may also lie in a file, as a PEM.
    let pem = desk.file("key.pem");
    let text = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", desk.key().await);
    std::fs::write(&pem, text).unwrap();
    assert_eq!(desk.verify_with(&desk.file("log.jsonl"), pem.to_str().unwrap()).await.code, 0);

    // One chain alone is whole, too.
    let chain = serde_json::from_str::<Value>(&lines[find(&lines, "head", 1)]).unwrap()["chain_id"].clone();
    let one = desk.file("one.jsonl");
    let arguments =
        ["audit", "export", "--output", one.to_str().unwrap(), "--chain", chain.as_str().unwrap()];
    assert_eq!(desk.plumb.run(&arguments).await.code, 0);
    let ran = desk.verify(&one).await;
    assert_eq!((ran.code, &ran.json()["chains"]), (0, &Value::from(1)), "{ran:?}");
}

#[tokio::test]
async fn every_kind_of_tampering_with_a_file_is_found_and_named() {
    let desk = Desk::new().await;
    let lines = desk.export("log.jsonl").await;
    let (first, checkpoint) = (find(&lines, "entry", 0), find(&lines, "checkpoint", 0));
    let last = lines.len() - 1;
    let without = |at: usize| {
        let mut lines = lines.clone();
        lines.remove(at);
        lines
    };
    let replaced = |at: usize, from: &str, to: &str| {
        let mut lines = lines.clone();
        assert!(lines[at].contains(from), "{}", lines[at]);
        lines[at] = lines[at].replace(from, to);
        lines
    };
    let swapped = |a: usize, b: usize| {
        let mut lines = lines.clone();
        lines.swap(a, b);
        lines
    };
    // The last entry is gone, and so is its trace in the head: only the signed checkpoint knows.
    let cut = {
        let mut lines = without(last);
        let entry: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        let head = lines
            .iter()
            .position(|line| is_a(line, "head") && line.contains(entry["chain_id"].as_str().unwrap()));
        let mut changed: Value = serde_json::from_str(&lines[head.unwrap()]).unwrap();
        (changed["sequence"], changed["hash"]) = (entry["sequence"].clone(), entry["hash"].clone());
        lines[head.unwrap()] = changed.to_string();
        lines
    };
    let other_chain: Vec<String> = lines
        .iter()
        .filter(|line| {
            is_a(line, "export") || is_a(line, "checkpoint") || line.contains(&uuid::Uuid::nil().to_string())
        })
        .cloned()
        .collect();
    for (what, tampered, word) in [
        ("a rewritten row", replaced(first, "user.bootstrap", "user.bootstrup"), "content"),
        ("two rows in another order", swapped(last - 1, last), "missing"),
        ("a removed row", without(last - 1), "missing"),
        ("the last row removed", without(last), "does not end where"),
        ("the last row removed, and the head put right", cut, "signed checkpoint"),
        ("whole chains removed", other_chain, "signed checkpoint"),
        ("a forged checkpoint", replaced(checkpoint, "\\\"sequence\\\":1", "\\\"sequence\\\":2"), "digest"),
        (
            "a checkpoint with another signature",
            replaced(checkpoint, "\"signature\":\"", "\"signature\":\"AAAA"),
            "forged",
        ),
    ] {
        let ran = desk.verify_lines(&tampered).await;
        assert_eq!(ran.code, 1, "{what}: {ran:?}");
        let verdict = ran.json();
        let reasons = [&verdict["broken"], &verdict["checkpoint"]["faults"]]
            .into_iter()
            .flat_map(|list| list.as_array().unwrap())
            .map(|fault| fault["reason"].as_str().unwrap().to_owned());
        let reasons: Vec<String> = reasons.collect();
        assert!(reasons.iter().any(|reason| reason.contains(word)), "{what}: {reasons:?}");
    }
    let stranger = plumbline_core::audit::PublicKey::from_ed25519(&[7; 32]).unwrap().to_base64();
    let ran = desk.verify_with(&desk.file("log.jsonl"), &stranger).await;
    assert!(ran.code == 1 && ran.stdout.contains("not trusted"), "another key: {ran:?}");
}

#[tokio::test]
async fn what_is_no_export_is_refused_with_its_line() {
    let desk = Desk::new().await;
    let lines = desk.export("log.jsonl").await;
    for (changed, words) in [
        (vec![], "begins with a line"),
        (vec!["nonsense".to_owned()], "line 1"),
        (lines[1..].to_vec(), "begins with a line"),
        ([&lines[..], &["{\"type\":\"entry\"".to_owned()]].concat(), "not a line of an exported"),
        ([&lines[..], &lines[..1]].concat(), "cannot stand here"),
        (vec![lines[0].replace("\"format\":1", "\"format\":9")], "does not know the format"),
    ] {
        let file = desk.file("odd.jsonl");
        std::fs::write(&file, changed.join("\n")).unwrap();
        let ran = desk.verify(&file).await;
        assert!(ran.code == 1 && ran.stderr.contains(words), "{words}: {ran:?}");
    }
    let file = desk.file("log.jsonl");
    let nobody = Plumb::new("http://127.0.0.1:9");
    let ran = nobody.run(&["audit", "verify", "--file", file.to_str().unwrap()]).await;
    assert_eq!(ran.code, 2, "without a key it would prove nothing: {ran:?}");
    let ran = nobody.run(&["audit", "verify", "--file", file.to_str().unwrap(), "--public-key", "x"]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
}
