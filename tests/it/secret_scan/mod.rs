//! One secret in every field that takes one, the whole product at work with them, and then a look everywhere: nothing is
//! found. A field or a sealed column that is new and that nothing is planted in fails the test as well.

mod crawl;
mod fields;
mod people;
mod places;
mod processes;
mod repositories;
mod runs;
mod scanner;
mod self_test;
mod settings;
mod stage;

use std::collections::BTreeSet;
use std::time::Duration;

use plumbline_core::db::Query as _;
use plumbline_core::db::testing::set_clock_offset;
use plumbline_core::rekeys::SEALED_COLUMNS;
use plumbline_core::secrets::{Domain, Keyring, Place};
use serde_json::json;

use self::places::{dump, files, scan_files};
use self::processes::{Processes, Sightings};
use self::scanner::{Hit, Scanner};
use self::stage::Stage;
use crate::emulator::program::scratch;

/// Files of the emulator's directory that are there to hold a secret.
const SECRET_FILES: [&str; 6] =
    ["admin-password", "postgres-password", "root-key", "root-key.previous", "store-key-id", "store-secret"];

/// Where a secret may be found.
struct Allowed {
    /// The beginning of the secret's name.
    secret: &'static str,
    /// The beginning and the end of the place's.
    place: (&'static str, &'static str),
    /// Whether it is always found there: then what looks there does look.
    always: bool,
    why: &'static str,
}

const fn allow(
    secret: &'static str,
    begins: &'static str,
    ends: &'static str,
    always: bool,
    why: &'static str,
) -> Allowed {
    Allowed { secret, place: (begins, ends), always, why }
}

const ALLOWED: [Allowed; 9] = [
    allow(
        "",
        "answer to GET state/",
        "",
        true,
        "the state, as Terraform reads it: above viewer, and recorded",
    ),
    allow(
        "",
        "object ",
        "/plan_file",
        false,
        "a plan holds every value, by Terraform's design; only an apply reads it",
    ),
    allow(
        "",
        "object ",
        "/plan_json",
        true,
        "the same plan as JSON: admins alone read it, and that is recorded",
    ),
    allow("", "object ", "/outputs", true, "outputs are a part of the state"),
    allow(
        "",
        "answer to GET workspaces/",
        "/outputs",
        true,
        "outputs that the configuration does not mark as sensitive are for everybody in the unit",
    ),
    allow("", "object ", ".tfstate", true, "a state holds every value, by Terraform's design"),
    allow(
        "the key of the object store",
        "environment of \"plumbline-",
        "\"",
        true,
        "where a function has its keys",
    ),
    allow("a ticket", "environment of \"executor-task", "\"", false, "launch parameters: good for one trade"),
    allow("", "environment of \"exe\"", "", false, "the executor's own program, about to become terraform"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_in_every_field_is_found_nowhere_after_everything_was_done_with_it() {
    let scratch = scratch();
    let watched = Processes::watch();
    let mut stage = Stage::start(&scratch.path().join("home")).await;
    people::people(&stage).await;
    settings::settings(&stage).await;
    settings::refusals(&stage).await;
    let links = settings::accounts(&stage).await;
    let forge = repositories::forge(&stage, scratch.path()).await;
    repositories::tasks(&stage, scratch.path()).await;
    repositories::keys(&stage, scratch.path()).await;
    let workspace = runs::applied(&stage, &forge, links).await;
    runs::failed(&stage, &forge, scratch.path()).await;
    people::keys(&stage, &workspace).await;
    people::ci_logins(&stage).await;
    repositories::waiting_task(&stage).await;
    rekey(&mut stage).await;
    crawl::every_answer(&stage).await;

    let sightings = watched.finish();
    // The executor wipes its own once it has read it.
    let tickets = sightings.values("executor-task", "PLUMBLINE_TICKET", &stage.home.display().to_string());
    for ticket in tickets.iter().filter(|ticket| ticket.chars().any(char::is_alphanumeric)) {
        stage.know(&format!("a ticket that ends in {}", &ticket[ticket.len() - 4..]), ticket);
    }
    let passwords = sightings.values("terraform", "TF_HTTP_PASSWORD", stage::MARK);
    let passwords: BTreeSet<String> = passwords.into_iter().filter(|word| word.starts_with("plw_")).collect();
    assert!(!passwords.is_empty(), "terraform was seen with a run password");
    for password in &passwords {
        stage.know(&format!("a run password that ends in {}", &password[password.len() - 4..]), password);
    }
    everything_was_planted(&stage);
    let database_url = stage.database_url();
    stage.db().conn().await.unwrap().batch("CHECKPOINT").await.unwrap();
    let dump = tokio::task::spawn_blocking(move || dump(&database_url)).await.unwrap();
    let answers = stage.answers();
    stage.up.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(stage.up.ended().await, Some(0));

    let needles = stage.needles();
    let scanner = Scanner::new(needles.iter().map(|(name, needle)| (name.as_str(), needle.as_str())));
    let mut hits = scan_disk(&stage, &scanner);
    if let Some(dump) = dump {
        assert!(dump.len() > 100_000, "the dump is whole");
        hits.extend(scanner.scan("dump", &dump));
    }
    for (answer, given) in &answers {
        let found = scanner.scan(&format!("answer to {}", answer.what), &answer.bytes);
        hits.extend(found.into_iter().filter(|hit| !given.contains(&hit.secret)));
    }
    hits.extend(look_at_processes(&sightings, &scanner));
    nothing_but_what_is_allowed(hits);
}

/// A new root key, and no old one afterwards. Every sealed column has had a value by then.
async fn rekey(stage: &mut Stage) {
    stage
        .restart(|home| {
            let old = std::fs::read(home.join("root-key")).unwrap();
            std::fs::write(home.join("root-key.previous"), old).unwrap();
            let new = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(|id| id.simple().to_string()).concat();
            std::fs::write(home.join("root-key"), new).unwrap();
        })
        .await;
    stage.know("the new root key", &stage.file("root-key"));
    stage.post("admin/rekey", json!({})).await;
    stage
        .until("admin/rekey", |job| {
            let columns = job["columns"].as_array().unwrap();
            !columns.is_empty() && columns.iter().all(|one| one["remaining"] == 0)
        })
        .await;
    // Past the last look.
    set_clock_offset(&stage.db().conn().await.unwrap(), Duration::from_secs(60)).await.unwrap();
    let done = stage.until("admin/rekey", |job| job["status"] != "running").await;
    assert_eq!(done["status"], "done", "{done}");
    let resealed = |table: &str, column: &str| -> Option<i64> {
        let all = done["columns"].as_array().unwrap();
        all.iter().find(|one| one["table"] == table && one["column"] == column)?["resealed"].as_i64()
    };
    // Nobody hands a key of the issuer in, and no run here asks for a token: `api::issuer_keys::documents` looks for those.
    for column in SEALED_COLUMNS.iter().filter(|column| column.table != "issuer_keys") {
        let count = resealed(column.table, column.column);
        assert!(count > Some(0), "nothing is planted in {}.{}: {done}", column.table, column.column);
    }
    stage.restart(|home| std::fs::remove_file(home.join("root-key.previous")).unwrap()).await;
    jwt_secrets(stage).await;
}

/// Nobody hands these out, so they are taken from where they are kept.
async fn jwt_secrets(stage: &Stage) {
    let keys = Keyring::from_root(&stage.file("root-key")).unwrap();
    let rows =
        stage.db().conn().await.unwrap().query("SELECT id, sealed FROM jwt_secrets", &[]).await.unwrap();
    assert!(rows.len() > 1, "one was rotated");
    for (n, row) in rows.iter().enumerate() {
        let place = Place { table: "jwt_secrets", column: "sealed", row: row.get("id") };
        let secret = keys.open(Domain::Sessions, place, row.get("sealed")).unwrap();
        stage.know(&format!("the secret of access tokens {n}"), secret.expose());
        // It is kept in hexadecimal.
        let bytes = hex::decode(secret.expose()).unwrap();
        assert!(bytes.len() >= 32);
    }
}

/// Every field of the API that may carry a secret was planted in.
fn everything_was_planted(stage: &Stage) {
    let (fields, planted) = (fields::secret_fields(&fields::document()), stage.fields());
    let unplanted: Vec<&String> = fields.difference(&planted).collect();
    assert!(unplanted.is_empty(), "plant a secret in these fields, or say why they hold none: {unplanted:?}");
}

/// Logs of every function, of the emulator, Postgres and executors; objects; the files of the database's cluster.
fn scan_disk(stage: &Stage, scanner: &Scanner) -> BTreeSet<Hit> {
    let mut hits = scan_files(scanner, "object", &stage.home.join("objects"));
    hits.extend(scan_files(scanner, "cluster", &stage.home.join("postgres")));
    hits.extend(scan_files(scanner, "executor", &stage.home.join("executors")));
    for (name, path) in files(&stage.home) {
        let is_done = ["objects/", "postgres/", "executors/"].iter().any(|below| name.starts_with(below));
        if !is_done && !SECRET_FILES.contains(&name.as_str()) {
            hits.extend(scanner.scan(&format!("file {name}"), &std::fs::read(path).unwrap()));
        }
    }
    let mut logged = 0;
    for (name, path) in files(stage.home.parent().unwrap()) {
        if name.starts_with("home.") {
            let bytes = std::fs::read(path).unwrap();
            logged += bytes.len();
            hits.extend(scanner.scan(&format!("log {name}"), &bytes));
        }
    }
    assert!(logged > 1_000_000, "the functions said everything: {logged} bytes");
    hits
}

fn look_at_processes(sightings: &Sightings, scanner: &Scanner) -> BTreeSet<Hit> {
    let programs = sightings.programs();
    for program in ["executor-task", "git", "postgres", "plumbline-api", "plumbline-outbo"] {
        assert!(programs.contains(program), "{program} was never seen: {programs:?}");
    }
    sightings.scan(scanner)
}

fn nothing_but_what_is_allowed(hits: BTreeSet<Hit>) {
    let is_allowed = |hit: &Hit, allowed: &Allowed| {
        let (begins, ends) = allowed.place;
        hit.secret.starts_with(allowed.secret) && hit.place.starts_with(begins) && hit.place.ends_with(ends)
    };
    let leaks: Vec<&Hit> =
        hits.iter().filter(|hit| !ALLOWED.iter().any(|allowed| is_allowed(hit, allowed))).collect();
    assert!(leaks.is_empty(), "{} leaks: {leaks:#?}", leaks.len());
    for allowed in ALLOWED.iter().filter(|allowed| allowed.always) {
        let is_there = hits.iter().any(|hit| is_allowed(hit, allowed));
        assert!(is_there, "nothing is in {:?}, although {}", allowed.place, allowed.why);
    }
}
