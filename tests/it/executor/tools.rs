//! Which tool runs: the repository's word, the workspace's, the newest; found, cached or downloaded.

use std::collections::BTreeMap;
use std::io::Write as _;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use plumbline_core::digest::Sha256Digest;

use super::fake_tool;
use super::world::{World, open_directory};

const PLAN: &str = "echo plan > \"$out\"; exit 2";

fn version_of(finished: &super::world::Finished) -> Option<String> {
    finished.fake.told().steps.iter().find_map(|(_, report)| report.tool_version.clone())
}

fn world_with_tools(files: &[(&str, &str)], versions: &[&str]) -> (World, tempfile::TempDir) {
    let mut world = World::with(files);
    let tools = open_directory();
    for version in versions {
        fake_tool::write(tools.path(), version, PLAN);
    }
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    (world, tools)
}

#[tokio::test]
async fn the_repository_names_the_exact_version() {
    let file = ("terraducktel.yaml", "terraform:\n  version: \"1.98.0\"\n");
    let (mut world, _tools) = world_with_tools(&[("main.tf", ""), file], &["1.98.0", "1.99.0"]);
    world.bundle.tool.version = Some("1.99.0".into());
    assert_eq!(version_of(&world.run().await).as_deref(), Some("1.98.0"));
}

#[tokio::test]
async fn without_a_word_the_newest_is_taken_and_never_one_before_1_10() {
    let (world, _tools) =
        world_with_tools(&[("main.tf", "")], &["1.9.9", "1.98.0", "1.99.0", "1.100.0-beta1"]);
    assert_eq!(version_of(&world.run().await).as_deref(), Some("1.99.0"));
}

#[tokio::test]
async fn two_configuration_files_are_refused() {
    let world = World::with(&[("main.tf", ""), ("plumbline.yaml", ""), ("terraducktel.yaml", "")]);
    let error = world.run().await.fake.told().failed.clone().expect("a report").error;
    assert!(error.contains("both plumbline.yaml and terraducktel.yaml exist"), "{error}");
}

#[tokio::test]
async fn a_version_that_is_nowhere_is_a_clear_error() {
    let mut world = World::with(&[("main.tf", "")]);
    world.bundle.tool.version = Some("1.97.3".into());
    let error = world.run().await.fake.told().failed.clone().expect("a report").error;
    assert!(error.contains("terraform 1.97.3 is not installed here and no mirror is configured"), "{error}");
}

async fn mirror(files: BTreeMap<String, Vec<u8>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = |State(files): State<BTreeMap<String, Vec<u8>>>, Path(path): Path<String>| async move {
        files.get(&path).cloned().ok_or(StatusCode::NOT_FOUND)
    };
    let router = Router::new().route("/{*path}", axum::routing::get(serve)).with_state(files);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn release(version: &str, has_right_sum: bool) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("terraform", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(fake_tool::script(version, PLAN).as_bytes()).unwrap();
    let archive = archive.finish().unwrap().into_inner();
    let sum = if has_right_sum { Sha256Digest::of(&archive) } else { Sha256Digest::of(b"other") };
    let name = format!(
        "terraform_{version}_linux_{}.zip",
        if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
    );
    let sums = format!("{sum}  {name}\n");
    BTreeMap::from([
        (format!("terraform/{version}/terraform_{version}_SHA256SUMS"), sums.into_bytes()),
        (format!("terraform/{version}/{name}"), archive),
    ])
}

#[tokio::test]
async fn a_missing_version_is_downloaded_checked_and_cached() {
    let mut world = World::with(&[("main.tf", "")]);
    let cache = world.scratch("cache");
    let url = mirror(release("1.96.0", true)).await;
    world.bundle.tool.version = Some("1.96.0".into());
    world.environment.push(("PLUMBLINE_TOOL_CACHE".into(), cache.display().to_string()));
    world.environment.push(("PLUMBLINE_TOOL_MIRROR".into(), url));
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());

    world.environment.retain(|(name, _)| name != "PLUMBLINE_TOOL_MIRROR");
    let cached = world.run().await;
    assert_eq!(version_of(&cached).as_deref(), Some("1.96.0"));
}

#[tokio::test]
async fn a_wrong_checksum_is_never_run() {
    let mut world = World::with(&[("main.tf", "")]);
    let url = mirror(release("1.96.0", false)).await;
    world.bundle.tool.version = Some("1.96.0".into());
    world.environment.push(("PLUMBLINE_TOOL_MIRROR".into(), url));
    let error = world.run().await.fake.told().failed.clone().expect("a report").error;
    assert!(error.contains("checksum"), "{error}");
}
