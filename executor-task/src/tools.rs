//! Which terraform or tofu runs, and where it comes from: this machine, the cache, or a mirror with checksums.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use semver::Version;

use crate::child::{Output, Program};
use crate::configuration::Configuration;
use crate::error::StepError;
use crate::isolation::reachable_by_others;
use crate::logs::Log;
use crate::session::Session;

/// Without a wish the newest from here on is taken.
const OLDEST_BY_DEFAULT: Version = Version::new(1, 10, 0);
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(300);
const ARCHIVE_BYTES_MAX: usize = 512 << 20;
const PROGRAM_BYTES_MAX: u64 = 1 << 30;

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// `terraform` or `tofu`.
    pub(crate) name: String,
    /// Exact, or the newest.
    pub(crate) version: Option<Version>,
}

/// A program that is there.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    /// `terraform` or `tofu`.
    pub(crate) name: String,
    /// The program.
    pub(crate) path: PathBuf,
    /// What it says of itself.
    pub(crate) version: Version,
}

/// What to use: a pinned version is exact; else the repository decides, then the workspace.
pub(crate) fn wish(
    asked: &plumbline_core::protocol::Tool,
    repository: Option<&Configuration>,
) -> Result<Wish, StepError> {
    let repository = repository.filter(|_| !asked.pinned);
    let name = repository.and_then(|found| found.tool.clone()).unwrap_or_else(|| asked.name.clone());
    if !matches!(name.as_str(), "terraform" | "tofu") {
        return Err(StepError::Permanent(format!("the tool must be terraform or tofu, not {name:?}")));
    }
    let version = match repository.and_then(|found| found.tool_version.clone()) {
        Some(version) => Some(version),
        // A version that the workspace names is one of its own tool.
        None if name == asked.name => asked.version.clone(),
        None => None,
    };
    let version = version.map(|text| Version::parse(text.strip_prefix('v').unwrap_or(&text))).transpose();
    let version =
        version.map_err(|_| StepError::Permanent("the tool's version must be exact, like 1.11.4".into()))?;
    Ok(Wish { name, version })
}

/// Finds or downloads the tool.
pub(crate) async fn provide(session: &Session, log: &Log, wish: &Wish) -> Result<Tool, StepError> {
    let mut found = Vec::new();
    for path in candidates(session, wish) {
        if let Some(version) = version_of(session, log, &path).await? {
            if wish.version.as_ref() == Some(&version) {
                return usable(session, Tool { name: wish.name.clone(), path, version });
            }
            found.push(Tool { name: wish.name.clone(), path, version });
        }
    }
    match &wish.version {
        Some(version) => download(session, log, &wish.name, version).await,
        None => {
            let newest = found
                .into_iter()
                .filter(|tool| tool.version >= OLDEST_BY_DEFAULT && tool.version.pre.is_empty())
                .max_by(|one, other| one.version.cmp(&other.version));
            match newest {
                Some(tool) => usable(session, tool),
                None => Err(StepError::Permanent(format!(
                    "no {} of version {OLDEST_BY_DEFAULT} or newer is installed here, and no version is named that could be downloaded",
                    wish.name
                ))),
            }
        }
    }
}

fn cache(session: &Session) -> PathBuf {
    session.settings.tool_cache.clone().unwrap_or_else(|| session.layout.given.join("tools"))
}

/// Every program with the right name, each file once, in order of search.
fn candidates(session: &Session, wish: &Wish) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf| {
        let is_program =
            path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        if let (true, Ok(path)) = (is_program, path.canonicalize())
            && !found.contains(&path)
        {
            found.push(path);
        }
    };
    let search = std::env::var_os("PATH").unwrap_or_default();
    let cached = cache(session).join(&wish.name);
    for directory in session.settings.tool_dirs.iter().cloned().chain(std::env::split_paths(&search)) {
        add(directory.join(&wish.name));
    }
    for directory in session.settings.tool_dirs.iter().chain([&cached]) {
        // `<dir>/<version>/terraform`, as version managers keep them.
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        names.sort();
        for path in names {
            add(path.join(&wish.name));
        }
    }
    found
}

/// `None` if the program does not say.
async fn version_of(session: &Session, log: &Log, path: &Path) -> Result<Option<Version>, StepError> {
    let mut text = Vec::new();
    let mut keep = |bytes: &[u8]| text.extend_from_slice(&bytes[..bytes.len().min(64 << 10)]);
    let tool =
        usable(session, Tool { name: String::new(), path: path.to_owned(), version: Version::new(0, 0, 0) })?;
    let program = Program {
        path: tool.path,
        args: vec![OsString::from("version"), "-json".into()],
        directory: session.layout.home.clone(),
        environment: session.plain_environment(),
        isolation: session.isolation,
        has_network: false,
    };
    let Ok(ended) = program.run(log, Output::Reader(&mut keep), &session.stop).await else {
        session.stop.check()?;
        return Ok(None);
    };
    ended.check_stopped(false)?;
    let answer: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    Ok(answer.and_then(|answer| Version::parse(answer.get("terraform_version")?.as_str()?).ok()))
}

/// A program that the child can start and not change: a copy, if it lies where the child's user cannot go.
fn usable(session: &Session, tool: Tool) -> Result<Tool, StepError> {
    if session.isolation.uid().is_none() || reachable_by_others(&tool.path) {
        return Ok(tool);
    }
    let name = tool.path.file_name().unwrap_or_default();
    let digest =
        plumbline_core::digest::Sha256Digest::of(tool.path.as_os_str().as_encoded_bytes()).to_string();
    let directory = session.layout.given.join(format!("tool-{}", &digest[..12]));
    let path = directory.join(name);
    let failed = || StepError::machine("the tool cannot be copied for the child");
    if !path.exists() {
        std::fs::create_dir_all(&directory).map_err(failed())?;
        session.isolation.share(&directory).map_err(failed())?;
        std::fs::copy(&tool.path, &path).map_err(failed())?;
        session.isolation.share(&path).map_err(failed())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).map_err(failed())?;
    }
    Ok(Tool { path, ..tool })
}

async fn download(session: &Session, log: &Log, name: &str, version: &Version) -> Result<Tool, StepError> {
    let Some(mirror) = &session.settings.tool_mirror else {
        return Err(StepError::Permanent(format!(
            "{name} {version} is not installed here and no mirror is configured to download it from"
        )));
    };
    let archive = format!("{name}_{version}_linux_{}.zip", architecture());
    let base = format!("{mirror}/{name}/{version}");
    log.line(&format!("Downloading {name} {version}"));
    let sums = fetch(session, &format!("{base}/{name}_{version}_SHA256SUMS")).await?;
    let bytes = fetch(session, &format!("{base}/{archive}")).await?;
    let wanted = String::from_utf8_lossy(&sums).lines().find_map(|line| {
        let (digest, file) = line.split_once(char::is_whitespace)?;
        (file.trim().trim_start_matches('*') == archive).then(|| digest.to_lowercase())
    });
    let actual = plumbline_core::digest::Sha256Digest::of(&bytes).to_string();
    if wanted.as_deref() != Some(actual.as_str()) {
        return Err(StepError::Permanent(format!(
            "the checksum of {archive} is wrong or missing; it is not used"
        )));
    }
    let directory = cache(session).join(name).join(version.to_string());
    let (wanted, version) = (name.to_owned(), version.clone());
    let path = tokio::task::spawn_blocking(move || unpack(&bytes, &wanted, &directory))
        .await
        .map_err(|_| StepError::Transient("the tool could not be unpacked".into()))?
        .map_err(StepError::machine("the tool could not be unpacked"))?;
    if session.settings.tool_cache.is_none() {
        for part in path.ancestors().take_while(|part| *part != session.layout.given) {
            session
                .isolation
                .share(part)
                .map_err(StepError::machine("the tool cannot be given to the child"))?;
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .map_err(StepError::machine("the tool cannot be given to the child"))?;
    }
    let tool = usable(session, Tool { name: name.to_owned(), path, version: version.clone() })?;
    match version_of(session, log, &tool.path).await? {
        Some(found) if found == version => Ok(tool),
        _ => Err(StepError::Permanent(format!("the downloaded program is not version {version}"))),
    }
}

async fn fetch(session: &Session, url: &str) -> Result<Vec<u8>, StepError> {
    let failed =
        |error: reqwest::Error| StepError::Transient(format!("the tool mirror: {}", error.without_url()));
    let request = session.callback.http().get(url).timeout(DOWNLOAD_TIMEOUT);
    let mut response = request.send().await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(StepError::Permanent(format!("the tool mirror answered {}", response.status())));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > ARCHIVE_BYTES_MAX {
            return Err(StepError::Permanent("the tool's archive is too large".into()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Writes the program next to its place and renames it: others may use the cache at the same time.
fn unpack(archive: &[u8], name: &str, directory: &Path) -> std::io::Result<PathBuf> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive)).map_err(std::io::Error::other)?;
    let mut entry = archive.by_name(name).map_err(std::io::Error::other)?.take(PROGRAM_BYTES_MAX);
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    std::io::copy(&mut entry, &mut file)?;
    file.flush()?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o555))?;
    let path = directory.join(name);
    file.persist(&path).map_err(|error| error.error)?;
    plumbline_state_proxy::digests(&path)?;
    Ok(path)
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(version: Option<&str>, pinned: bool) -> plumbline_core::protocol::Tool {
        plumbline_core::protocol::Tool { name: "terraform".into(), version: version.map(Into::into), pinned }
    }

    #[test]
    fn the_repository_decides_before_the_workspace_unless_the_plan_has_pinned() {
        let repository = Configuration { tool: None, tool_version: Some("1.9.8".into()) };
        let version =
            |asked, repository| wish(&asked, repository).unwrap().version.map(|version| version.to_string());
        assert_eq!(version(asked(Some("1.11.4"), false), Some(&repository)).as_deref(), Some("1.9.8"));
        assert_eq!(version(asked(Some("1.11.4"), true), Some(&repository)).as_deref(), Some("1.11.4"));
        assert_eq!(version(asked(Some("1.11.4"), false), None).as_deref(), Some("1.11.4"));
        assert_eq!(version(asked(None, false), None), None);
        assert!(wish(&asked(Some("~> 1.9"), false), None).is_err());
        let tofu = Configuration { tool: Some("tofu".into()), tool_version: None };
        assert_eq!(version(asked(Some("1.11.4"), false), Some(&tofu)), None);
    }
}
