//! The real executor and terraform with a provider of our own (`tests/provider`): what no built-in resource does.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod drift;
mod half_way;
mod hostile;
mod huge;
mod installation;
mod sensitive;
mod slow;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::executor::world::World;

const HEADER: &str = r#"
terraform {
  required_providers {
    plumbtest = { source = "plumbline.test/plumbline/plumbtest" }
  }
}
"#;

/// A mirror with our provider, where every user can read it.
struct Mirror(tempfile::TempDir);

impl Mirror {
    /// `None` where the provider cannot be built: the test prints that it skips.
    fn find() -> Option<Self> {
        let target = plumbline_tests::bin("executor-task");
        let built = target.parent().and_then(Path::parent).unwrap().join("provider/mirror");
        if !built.is_dir() {
            assert!(
                Command::new("protoc").arg("--version").output().is_err(),
                "the provider is not built: run scripts/provider.sh, or the tests with `make test`"
            );
            eprintln!("SKIP: protoc is missing");
            return None;
        }
        let copy = tempfile::tempdir().unwrap();
        let copied = Command::new("cp").arg("-r").arg(built.join(".")).arg(copy.path()).status().unwrap();
        assert!(copied.success());
        std::fs::set_permissions(copy.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self(copy))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A stack that uses our provider.
fn stack(text: &str) -> String {
    format!("{HEADER}{text}")
}

/// A repository with this stack, whose executors install from the mirror.
fn world(mirror: &Mirror, main: &str) -> World {
    let mut world = World::with(&[("main.tf", &stack(main))]);
    world.environment.push(("PLUMBLINE_PROVIDER_MIRROR".into(), mirror.path().display().to_string()));
    world
}
