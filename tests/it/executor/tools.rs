//! Which tool runs: the repository's word, the workspace's, the newest; found, cached or downloaded.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use plumbline_core::digest::Sha256Digest;

use super::fake_tool;
use super::world::{Finished, World, open_directory};

const PLAN: &str = "echo plan > \"$out\"; exit 2";

fn version_of(finished: &Finished) -> Option<String> {
    finished.fake.told().steps.iter().find_map(|(_, report)| report.tool_version.clone())
}

fn tool_of(finished: &Finished) -> Option<String> {
    finished.fake.told().steps.iter().find_map(|(_, report)| report.tool.clone())
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
async fn the_repository_names_the_exact_version_in_either_file_else_the_workspace_does() {
    let ours = "tool_version: \"1.98.0\"\n";
    let other = "terraform:\n  version: \"1.98.0\"\n";
    for (name, text, wanted) in [
        ("plumbline.yaml", ours, "1.98.0"),
        ("plumbline.yml", other, "1.98.0"),
        ("terraducktel.yaml", other, "1.98.0"),
        ("terraducktel.yml", ours, "1.98.0"),
        ("plumbline.yaml", "helm:\n  chart: x\n", "1.97.0"),
        ("README.md", ours, "1.97.0"),
    ] {
        let files = [("main.tf", ""), (name, text)];
        let (mut world, _tools) = world_with_tools(&files, &["1.97.0", "1.98.0", "1.99.0"]);
        world.bundle.tool.version = Some("1.97.0".into());
        assert_eq!(version_of(&world.run().await).as_deref(), Some(wanted), "{name}: {text}");
    }
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

/// Serves these files, by path.
pub(crate) async fn mirror(files: BTreeMap<String, Vec<u8>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = |State(files): State<BTreeMap<String, Vec<u8>>>, Path(path): Path<String>| async move {
        files.get(&path).cloned().ok_or(StatusCode::NOT_FOUND)
    };
    let router = Router::new().route("/{*path}", axum::routing::get(serve)).with_state(files);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// A release with a scripted program.
pub(crate) fn release(tool: &str, version: &str, has_right_sum: bool) -> BTreeMap<String, Vec<u8>> {
    let mut files = release_of(tool, version, &fake_tool::script(version, PLAN));
    if !has_right_sum {
        let sums = files.values_mut().next().expect("the sums come first");
        sums[..8].copy_from_slice(b"00000000");
    }
    files
}

/// A release with this program: the sums, then the archive.
fn release_of(tool: &str, version: &str, program: &str) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file(tool, zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(program.as_bytes()).unwrap();
    let archive = archive.finish().unwrap().into_inner();
    let sum = Sha256Digest::of(&archive);
    let name = format!(
        "{tool}_{version}_linux_{}.zip",
        if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
    );
    let sums = format!("{sum}  {name}\n");
    BTreeMap::from([
        (format!("{tool}/{version}/{tool}_{version}_SHA256SUMS"), sums.into_bytes()),
        (format!("{tool}/{version}/{name}"), archive),
    ])
}

#[tokio::test]
async fn a_missing_version_is_downloaded_checked_and_cached() {
    let mut world = World::with(&[("main.tf", "")]);
    let cache = world.scratch("cache");
    let url = mirror(release("terraform", "1.96.0", true)).await;
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
    let url = mirror(release("terraform", "1.96.0", false)).await;
    world.bundle.tool.version = Some("1.96.0".into());
    world.environment.push(("PLUMBLINE_TOOL_MIRROR".into(), url));
    let error = world.run().await.fake.told().failed.clone().expect("a report").error;
    assert!(error.contains("checksum"), "{error}");
}

/// OpenTofu names itself in the field that terraform has for it.
#[tokio::test]
async fn tofu_runs_where_the_workspace_or_the_repository_says_so() {
    for (workspace, text) in [("tofu", ""), ("terraform", "tool: tofu\n")] {
        let files = [("main.tf", ""), ("plumbline.yaml", text)];
        // A newer terraform lies beside it.
        let (mut world, tools) = world_with_tools(&files, &["1.99.0"]);
        fake_tool::install(tools.path(), "1.95.0", "tofu", &fake_tool::script("1.95.0", PLAN));
        world.bundle.tool.name = workspace.into();
        let planned = world.run().await;
        assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
        assert_eq!(
            (tool_of(&planned).as_deref(), version_of(&planned).as_deref()),
            (Some("tofu"), Some("1.95.0"))
        );
    }
}

#[tokio::test]
async fn tofu_is_downloaded_under_its_own_name() {
    let mut world =
        World::with(&[("main.tf", ""), ("plumbline.yaml", "tool: tofu\ntool_version: \"1.96.0\"\n")]);
    let url = mirror(release("tofu", "1.96.0", true)).await;
    world.environment.push(("PLUMBLINE_TOOL_MIRROR".into(), url));
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
    assert_eq!(
        (tool_of(&planned).as_deref(), version_of(&planned).as_deref()),
        (Some("tofu"), Some("1.96.0"))
    );
}

/// What a child tries on the program that it is run by, whose place the script knows.
const TAMPERS: &str = r#"
  own=$(readlink -f "$0")
  (echo '# evil' >> "$own") 2>/dev/null && echo "TAMPERED appended"
  chmod u+w "$own" 2>/dev/null && echo "TAMPERED mode"
  mv "$own" "$own.old" 2>/dev/null && echo "TAMPERED moved"
  rm -f "$own" 2>/dev/null && echo "TAMPERED removed"
  for directory in "$(dirname "$own")" CACHE CACHE/terraform CACHE/terraform/1.96.0; do
    touch "$directory/evil" 2>/dev/null && echo "TAMPERED with $directory"
  done
  echo plan > "$out"; exit 2
"#;

#[tokio::test]
async fn a_child_cannot_change_the_tools_that_the_next_run_finds() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIP: only root can give a run a user of its own");
        return;
    }
    let caches = open_directory();
    for (name, mode) in [("private", 0o700), ("public", 0o755)] {
        let cache = caches.path().join(name);
        // Made before, as an operator does who decides who may look into it.
        for directory in [cache.clone(), cache.join("terraform"), cache.join("terraform/1.96.0")] {
            std::fs::create_dir(&directory).unwrap();
            std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let tampers = TAMPERS.replace("CACHE", &cache.display().to_string());
        let url = mirror(release_of("terraform", "1.96.0", &fake_tool::script("1.96.0", &tampers))).await;
        let mut world = World::with(&[("main.tf", "")]);
        world.bundle.tool.version = Some("1.96.0".into());
        world.environment.push(("PLUMBLINE_TOOL_CACHE".into(), cache.display().to_string()));
        world.environment.push(("PLUMBLINE_TOOL_MIRROR".into(), url));
        // Once as it was downloaded, once as it was found.
        let cached = cache.join("terraform/1.96.0/terraform");
        for _ in 0..2 {
            let planned = world.run().await;
            assert!(planned.fake.told().plan_done.is_some(), "{name}: {}", planned.fake.all_logs());
            let log = planned.fake.log_of("Terraform Plan");
            assert!(!log.contains("TAMPERED"), "{name}: {log}");
            assert_eq!(
                std::fs::read_to_string(&cached).unwrap(),
                fake_tool::script("1.96.0", &tampers),
                "{name}"
            );
            let mode = cached.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o222, 0, "{name}: nobody writes it: {mode:o}");
        }
    }
}
