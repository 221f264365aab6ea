//! A clone runs nothing that the repository brings along, also where the machine's owner has told git that it should.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::world::{World, git, open_directory};

/// Shows in its plan whether the submodule's file is there.
const STACK: &str = "output \"submodule\" { value = fileexists(\"${path.module}/inner/inside.txt\") }\n";

/// The settings of a person by which git runs code of a repository, and the place where such code leaves its signs.
struct Setup {
    home: PathBuf,
    template: PathBuf,
    signs: tempfile::TempDir,
}

impl Setup {
    fn make(world: &World) -> Self {
        let signs = open_directory();
        let (home, template) = (world.scratch("home"), world.scratch("template"));
        std::fs::create_dir_all(&home).unwrap();
        let config = format!(
            "[core]\n\thooksPath = .githooks\n[submodule]\n\trecurse = true\n[protocol \"file\"]\n\tallow = always\n\
             [filter \"run\"]\n\tsmudge = \"touch {}/filter; cat\"\n",
            signs.path().display()
        );
        std::fs::write(home.join(".gitconfig"), config).unwrap();
        let setup = Self { home, template, signs };
        setup.write_hook(&setup.template.join("hooks/post-checkout"), "template");
        setup
    }

    fn write_hook(&self, path: &Path, sign: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#!/bin/sh\ntouch {}/{sign}\n", self.signs.path().display())).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What has run since the last time.
    fn take_signs(&self) -> Vec<String> {
        let mut found: Vec<String> = std::fs::read_dir(self.signs.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        for sign in &found {
            std::fs::remove_file(self.signs.path().join(sign)).unwrap();
        }
        found.sort();
        found
    }

    /// Plain git, as this person would call it.
    fn clone(&self, arguments: &[&str], from: &Path, to: &Path) {
        let cloned = Command::new("git")
            .args(arguments)
            .arg(from)
            .arg(to)
            .env_remove("GIT_CONFIG_GLOBAL")
            .env("HOME", &self.home)
            .env("GIT_TEMPLATE_DIR", &self.template)
            .output()
            .unwrap();
        assert!(cloned.status.success(), "{}", String::from_utf8_lossy(&cloned.stderr));
    }
}

#[tokio::test]
async fn hooks_filters_templates_and_submodules_of_a_repository_do_nothing() {
    let mut world = World::with(&[("main.tf", STACK), (".gitattributes", "main.tf filter=run\n")]);
    let setup = Setup::make(&world);
    let inner = world.repo().with_file_name("inner");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "--quiet"]);
    std::fs::write(inner.join("inside.txt"), "").unwrap();
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "--quiet", "-m", "inside"]);
    let address = format!("file://{}", inner.display());
    git(
        &world.repo(),
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &address, "inner"],
    );
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        setup.write_hook(&world.repo().join(".githooks").join(hook), hook);
    }
    world.commit(&[]);

    // Each of these is a way in: a person's git takes it.
    let to = |name: &str| world.scratch(name);
    setup.clone(&["clone", "--quiet", "--recurse-submodules"], &world.repo(), &to("person"));
    assert!(to("person").join("inner/inside.txt").exists(), "the submodule is a real one");
    let ran = setup.take_signs();
    for way in ["filter", "post-checkout"] {
        assert!(ran.contains(&way.to_owned()), "{way} is no way in: {ran:?}");
    }
    setup.clone(&["-c", "core.hooksPath=.git/hooks", "clone", "--quiet"], &world.repo(), &to("templated"));
    assert!(setup.take_signs().contains(&"template".to_owned()), "the template is no way in");

    let path = |path: &Path| path.display().to_string();
    world.environment.extend([
        ("HOME".to_owned(), path(&setup.home)),
        ("GIT_CONFIG_GLOBAL".to_owned(), path(&setup.home.join(".gitconfig"))),
        ("GIT_CONFIG_SYSTEM".to_owned(), path(&setup.home.join(".gitconfig"))),
        ("GIT_TEMPLATE_DIR".to_owned(), path(&setup.template)),
        ("GIT_CONFIG_COUNT".to_owned(), "1".to_owned()),
        ("GIT_CONFIG_KEY_0".to_owned(), "core.hooksPath".to_owned()),
        ("GIT_CONFIG_VALUE_0".to_owned(), ".githooks".to_owned()),
    ]);
    let planned = world.run().await;
    let told = planned.fake.told();
    assert_eq!(setup.take_signs(), Vec::<String>::new());
    assert!(told.plan_done.is_some(), "{:?}", told.failed);
    let text = String::from_utf8_lossy(&told.artifacts["plan_text"]).into_owned();
    assert!(text.contains("+ submodule = false"), "{text}");
}
