//! The scanner finds what it should: every encoding in every kind of place.

use std::collections::BTreeSet;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use plumbline_core::db::testing::TestDatabase;
use plumbline_core::db::{PgMode, Query as _};

use super::places::{dump, scan_files};
use super::processes::Processes;
use super::scanner::{Hit, Scanner};
use crate::plane::cluster_url;

/// With signs that every encoding changes.
const SECRET: &str = "pl4nted/\"secret\"+of=the&forge\\ü%";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Every encoding of the text, by its name.
fn encodings(secret: &str) -> Vec<(String, Vec<u8>)> {
    let json = |text: &str| serde_json::Value::from(text).to_string();
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let every_byte: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let units: String = secret.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    let texts = [
        ("raw", secret.to_owned()),
        ("as a form", form),
        ("percent", every_byte),
        ("hex", hex::encode(secret)),
        ("HEX", hex::encode_upper(secret)),
        ("json", json(secret)),
        ("json in json", json(&json(secret))),
        ("json, all escaped", units),
        ("debug", format!("{secret:?}")),
    ];
    let mut all: Vec<(String, Vec<u8>)> =
        texts.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect();
    for lead in ["", "a", "ab"] {
        let text = format!("{lead}{secret}tail");
        let standard = STANDARD.encode(&text);
        let lines: Vec<&[u8]> = standard.as_bytes().chunks(16).collect();
        all.push((format!("base64 after {}", lead.len()), standard.clone().into_bytes()));
        all.push((format!("base64 in lines after {}", lead.len()), lines.join(&b"\r\n"[..])));
        all.push((
            format!("base64 for addresses after {}", lead.len()),
            URL_SAFE_NO_PAD.encode(&text).into(),
        ));
    }
    let packed = gzip(secret.as_bytes());
    all.push(("gzip in hex".into(), hex::encode(&packed).into_bytes()));
    all.push(("gzip in base64".into(), STANDARD.encode(&packed).into_bytes()));
    all
}

fn scanner() -> Scanner {
    Scanner::new([("planted", SECRET), ("another", "not-planted-anywhere")])
}

fn assert_found(hits: &BTreeSet<Hit>, what: &str) {
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit.secret == "planted"), "{what}: {hits:?}");
}

#[test]
fn every_encoding_is_found_in_a_log_line_an_object_a_compressed_object_and_a_files_name() {
    for (name, bytes) in encodings(SECRET) {
        let scratch = tempfile::tempdir().unwrap();
        let file = |at: &str, bytes: &[u8]| std::fs::write(scratch.path().join(at), bytes).unwrap();
        let line = [b"2026-01-31T23:59:59Z  INFO run.id=7 it said: ", &bytes[..], b" and went on\n"].concat();
        for (kind, content) in [
            ("log", line.clone()),
            ("object", [b"{\"text\": ", &bytes[..], b"}"].concat()),
            ("gz object", gzip(&line)),
            ("gz object behind something else", [b"\x00\x01 header", &gzip(&line)[..], b"more"].concat()),
            ("gz object in a gz object", gzip(&gzip(&line))),
        ] {
            file("it", &content);
            assert_found(&scan_files(&scanner(), kind, scratch.path()), &format!("{name} in a {kind}"));
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let form: String = url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    std::fs::write(scratch.path().join(form), "").unwrap();
    assert_found(&scan_files(&scanner(), "object", scratch.path()), "a name");
}

#[tokio::test]
async fn every_encoding_is_found_in_a_row_of_any_type_in_the_dump_and_in_the_files_of_the_cluster() {
    let database = TestDatabase::create_empty(&cluster_url()).await.unwrap();
    let pool = database.pool(1, PgMode::Direct).unwrap();
    let conn = pool.conn().await.unwrap();
    conn.batch("CREATE TABLE planted (words text, bytes bytea, document jsonb)").await.unwrap();
    const FILE: &str = "
        SELECT current_setting('data_directory') || '/' || pg_relation_filepath('planted')";
    for (name, bytes) in encodings(SECRET) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let document = serde_json::json!({ "detail": text });
        conn.execute("INSERT INTO planted (words) VALUES ($1)", &[&text]).await.unwrap();
        look(&database.url, &format!("{name} as text")).await;
        conn.batch("DELETE FROM planted").await.unwrap();
        conn.execute("INSERT INTO planted (bytes) VALUES ($1), ($2)", &[&bytes, &gzip(&bytes)])
            .await
            .unwrap();
        look(&database.url, &format!("{name} as bytes")).await;
        conn.batch("DELETE FROM planted").await.unwrap();
        conn.execute("INSERT INTO planted (document) VALUES ($1)", &[&document]).await.unwrap();
        look(&database.url, &format!("{name} as JSON")).await;
        conn.batch("DELETE FROM planted").await.unwrap();
    }
    // Rows that are deleted are still in the files, and in no dump.
    conn.batch("CHECKPOINT").await.unwrap();
    if let Some(dump) = dump(&database.url) {
        assert_eq!(scanner().scan("dump", &dump), BTreeSet::new(), "the rows are gone");
    }
    let file: String = conn.query_one(FILE, &[]).await.unwrap().get(0);
    assert_found(&scanner().scan("file", &std::fs::read(file).unwrap()), "a page");
}

async fn look(database_url: &str, what: &str) {
    let url = database_url.to_owned();
    let dump = tokio::task::spawn_blocking(move || dump(&url)).await.unwrap();
    if let Some(dump) = dump {
        assert_found(&scanner().scan("dump", &dump), what);
    }
}

#[test]
fn a_secret_in_the_arguments_or_the_environment_of_a_process_is_found() {
    let secret = "pl4nted-for-processes";
    let scanner = Scanner::new([("planted", secret)]);
    let watched = Processes::watch();
    for at in ["arguments", "environment"] {
        let mut command = std::process::Command::new("sleep");
        match at {
            // GNU's sleep takes several times, and adds them up.
            "arguments" => command.arg0_with(secret),
            _ => command.env("PLANTED", secret),
        };
        let mut child = command.arg("60").spawn().unwrap();
        watched.until_seen(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let hits = watched.finish().scan(&scanner);
    let places: BTreeSet<&str> = hits.iter().filter_map(|hit| hit.place.split(' ').next()).collect();
    assert_eq!(places, BTreeSet::from(["arguments", "environment"]), "{hits:?}");
}

/// The name by which a program is called is an argument as well.
trait Called {
    fn arg0_with(&mut self, name: &str) -> &mut Self;
}

impl Called for std::process::Command {
    fn arg0_with(&mut self, name: &str) -> &mut Self {
        std::os::unix::process::CommandExt::arg0(self, name)
    }
}
