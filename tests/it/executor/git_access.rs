//! What lets git in: the supervisor's clone and the modules of init have it, nothing else does, and it goes nowhere else.

use std::path::Path;

use plumbline_core::git_credentials::{AppKey, GitSecret};
use plumbline_core::protocol::{FailureKind, GitCredential};

use super::clone::{Forge, LOGIN, token};
use super::fake_tool;
use super::world::{Finished, World, git, open_directory};
use crate::fake_github::{self, FakeGithub, Mood};
use crate::sshd::Sshd;

const STACK: (&str, &str) = ("main.tf", "resource \"terraform_data\" \"one\" {}\n");
const SECRET: &str = "s3cret-s3cret";

fn failed(finished: &Finished) -> (FailureKind, String) {
    let told = finished.fake.told();
    let failed = told.failed.as_ref().expect("it failed");
    (failed.kind, failed.error.clone())
}

/// A bare repository beside the stack, with one file.
fn add_repository(
    world: &World,
    name: &str,
    file: &str,
    text: &str,
    submodule: Option<(&str, &str)>,
) -> String {
    let work = world.repo().with_file_name(format!("{name}-work"));
    std::fs::create_dir(&work).unwrap();
    git(&work, &["init", "--quiet"]);
    std::fs::write(work.join(file), text).unwrap();
    git(&work, &["add", "-A"]);
    if let Some((url, commit)) = submodule {
        let modules = format!("[submodule \"inner\"]\n\tpath = inner\n\turl = {url}\n");
        std::fs::write(work.join(".gitmodules"), modules).unwrap();
        git(&work, &["add", ".gitmodules"]);
        git(&work, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},inner")]);
    }
    git(&work, &["commit", "--quiet", "-m", "begin"]);
    let bare = world.repo().with_file_name(format!("{name}.git"));
    git(
        work.parent().unwrap(),
        &["clone", "--quiet", "--bare", &format!("{name}-work"), &bare.display().to_string()],
    );
    git(&work, &["rev-parse", "HEAD"])
}

/// Whether a file below the directory has the text.
fn holds(directory: &Path, text: &str) -> bool {
    let found =
        std::process::Command::new("grep").args(["-rqsF", "--", text]).arg(directory).status().unwrap();
    found.success()
}

#[tokio::test]
async fn private_modules_and_their_submodules_come_in_init_and_an_apply_does_not_see_the_login() {
    let mut world = World::with(&[STACK]);
    let forge = Forge::serve(&mut world).await;
    let host = forge.host.clone();
    let inside = add_repository(&world, "inner", "inside.txt", "from the submodule", None);
    let module = "output \"inside\" { value = file(\"${path.module}/inner/inside.txt\") }\n";
    let inner = format!("http://{host}/inner.git");
    add_repository(&world, "module", "main.tf", module, Some((&inner, &inside)));
    let signs = open_directory();
    let sign = signs.path().display();
    // What the provisioner can see: its environment, that of every process it may look at, and the files of the run.
    let stack = format!(
        r#"
module "private" {{ source = "git::http://{host}/module.git" }}
output "inside" {{ value = module.private.inside }}
resource "terraform_data" "one" {{
  provisioner "local-exec" {{
    command = "env > {sign}/env; cat /proc/[0-9]*/environ > {sign}/all 2>/dev/null; ls $HOME/../given > {sign}/given; cat .terraform/modules/private/.git/config > {sign}/config; true"
  }}
}}
"#
    );
    world.commit(&[("main.tf", &stack)]);
    world.bundle.source.credentials = vec![token(&host, SECRET)];
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
    let text = String::from_utf8_lossy(&planned.fake.told().artifacts["plan_text"]).into_owned();
    assert!(text.contains("from the submodule"), "{text}");
    for repository in ["/module.git", "/inner.git"] {
        assert!(forge.tried.lock().unwrap().iter().any(|path| path.starts_with(repository)), "{repository}");
    }
    let applied = world.apply(&planned).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    let seen =
        |name: &str| String::from_utf8_lossy(&std::fs::read(signs.path().join(name)).unwrap()).into_owned();
    assert!(seen("env").contains("HOME="), "the provisioner ran");
    for name in ["env", "all", "config"] {
        assert!(
            !seen(name).contains(SECRET) && !seen(name).contains("PLUMBLINE_GIT"),
            "{name}: {}",
            seen(name)
        );
    }
    assert!(seen("config").contains(&format!("http://{host}/module.git")), "{}", seen("config"));
    assert!(!seen("given").contains("git-"), "the helper is gone: {}", seen("given"));
    assert!(!planned.fake.all_logs().contains(SECRET) && !applied.fake.all_logs().contains(SECRET));
    assert!(!world.executor_log().contains(SECRET));
}

#[tokio::test]
async fn of_all_calls_of_the_tool_only_init_has_the_login() {
    // Each call says whether it can see what only init is to see: in its environment, and in files.
    const SAYS: &str = r#"
{
  [ -n "$PLUMBLINE_GIT_PASSWORD_0" ] && echo "Login: yes" || echo "Login: no"
  ls "$HOME/../given" | grep -q git-login && echo "Helper: yes" || echo "Helper: no"
  grep -qsF "s3cret""-s3cret" -r "$HOME/.." && echo "File: yes" || echo "File: no"
  if [ "$1" = init ]; then
    printf 'protocol=http\nhost=%s\npath=stack/x.git\n\n' "$(cat SIGNS/host)" | git credential fill | grep -c '^password=' | sed 's/^/Filled: /'
    printf 'protocol=http\nhost=elsewhere.example\npath=stack/x.git\n\n' | git credential fill 2>&1 | grep -c '^password=' | sed 's/^/Elsewhere: /'
  fi
} >&2
"#;
    let mut world = World::with(&[("main.tf", "")]);
    let forge = Forge::serve(&mut world).await;
    let (signs, tools) = (open_directory(), open_directory());
    std::fs::write(signs.path().join("host"), &forge.host).unwrap();
    let says = SAYS.replace("SIGNS", &signs.path().display().to_string());
    let script = fake_tool::script_that_says(&says, "1.99.0", "echo plan > \"$out\"; exit 2");
    fake_tool::install(tools.path(), "1.99.0", "terraform", &script);
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    world.bundle.source.credentials = vec![token(&forge.host, SECRET)];
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
    for (step, has_it) in
        [("Set Version", "no"), ("Terraform Init", "yes"), ("Terraform Plan", "no"), ("Derive Plan", "no")]
    {
        let log = planned.fake.log_of(step);
        for line in [format!("Login: {has_it}"), format!("Helper: {has_it}"), "File: no".into()] {
            assert!(log.contains(&line), "{step}: {line}: {log}");
        }
    }
    let init = planned.fake.log_of("Terraform Init");
    assert!(init.contains("Filled: 1") && init.contains("Elsewhere: 0"), "{init}");
}

#[tokio::test]
async fn a_redirect_to_another_host_gets_no_login() {
    let mut world = World::with(&[STACK]);
    let other = Forge::serve(&mut world).await;
    let forge = Forge::serve(&mut world).await;
    *forge.moved_to.lock().unwrap() = format!("http://{}", other.host);
    world.bundle.source.repo_url = format!("http://{}/moved/stack/.git", forge.host);
    // Also where the unit has a credential for the other host: it was not asked for there.
    world.bundle.source.credentials = vec![token(&forge.host, SECRET), token(&other.host, SECRET)];
    let (kind, error) = failed(&world.run().await);
    assert_eq!(kind, FailureKind::Permanent, "{error}");
    assert!(error.contains("redirects"), "{error}");
    assert!(other.asked.lock().unwrap().is_empty(), "it was not even asked");
}

#[tokio::test]
async fn a_credential_of_another_host_or_path_is_not_used() {
    let mut world = World::with(&[STACK]);
    let forge = Forge::serve(&mut world).await;
    let mut elsewhere = token(&forge.host, SECRET);
    elsewhere.path_prefix = "other".into();
    world.bundle.source.credentials = vec![token("git.example.com", SECRET), elsewhere];
    let (kind, error) = failed(&world.run().await);
    assert_eq!(kind, FailureKind::Permanent);
    assert!(error.contains("asks for a login, and this run has none"), "{error}");
    assert!(forge.tried.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_the_machine_knows_lets_no_run_in() {
    let mut world = World::with(&[STACK]);
    let forge = Forge::serve(&mut world).await;
    let home = world.scratch("home");
    std::fs::create_dir_all(home.join(".config/git")).unwrap();
    let (user, password) = LOGIN.split_once(':').unwrap();
    let address = forge.host.split(':').next().unwrap();
    let files = [
        (".netrc", format!("machine {address} login {user} password {password}\n")),
        (".git-credentials", format!("http://{LOGIN}@{}\n", forge.host)),
        (".gitconfig", "[credential]\n\thelper = store\n".to_owned()),
        (".config/git/credentials", format!("http://{LOGIN}@{}\n", forge.host)),
    ];
    for (name, text) in files {
        std::fs::write(home.join(name), text).unwrap();
    }
    let asks = world.scratch("asks");
    std::fs::write(
        &asks,
        format!("#!/bin/sh\ncase $1 in User*) echo {user} ;; *) echo {password} ;; esac\n"),
    )
    .unwrap();
    std::fs::set_permissions(&asks, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = |path: &Path| path.display().to_string();
    for (name, value) in [
        ("HOME", path(&home)),
        ("GIT_CONFIG_GLOBAL", path(&home.join(".gitconfig"))),
        ("GIT_ASKPASS", path(&asks)),
        ("SSH_ASKPASS", path(&asks)),
        ("GITHUB_TOKEN", password.to_owned()),
        ("GIT_TOKEN", password.to_owned()),
    ] {
        world.environment.push((name.into(), value));
    }
    let (kind, error) = failed(&world.run().await);
    assert_eq!(kind, FailureKind::Permanent);
    assert!(error.contains("asks for a login, and this run has none"), "{error}");
    assert!(forge.tried.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_supervisor_makes_the_token_of_an_app_and_shows_it_nowhere() {
    let Some(github) = FakeGithub::start().await else { return };
    let mut world = World::with(&[STACK]);
    let forge = Forge::serve_to(&mut world, fake_github::LOGIN).await;
    add_repository(&world, "module", "main.tf", "", None);
    world.commit(&[(
        "main.tf",
        &format!("module \"m\" {{ source = \"git::http://{}/module.git\" }}\n", forge.host),
    )]);
    let app = |private_key: String| {
        vec![GitCredential {
            host: forge.host.clone(),
            path_prefix: String::new(),
            secret: GitSecret::GithubApp(AppKey {
                app_id: fake_github::APP_ID.into(),
                installation_id: fake_github::INSTALLATION_ID,
                api_url: github.url.clone(),
                private_key,
            }),
        }]
    };
    world.bundle.source.credentials = app(github.private_key());
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
    assert!(forge.tried.lock().unwrap().iter().any(|path| path.starts_with("/module.git")));
    let judged: Vec<_> = github.asked.lock().unwrap().drain(..).map(|(_, _, judged)| judged).collect();
    assert_eq!(judged, [Ok(())], "one token for the clone and the modules");
    let key_line = github.private_key().lines().nth(1).unwrap().to_owned();
    for text in [planned.fake.all_logs(), world.executor_log()] {
        assert!(!text.contains(fake_github::TOKEN) && !text.contains(&key_line));
    }
    // What fails is told by the step that needs it, and only what may pass is tried again.
    for (mood, key, expected) in [
        (Mood::Fails, github.private_key(), FailureKind::Transient),
        (Mood::Right, github.strange_key(), FailureKind::Permanent),
    ] {
        *github.mood.lock().unwrap() = mood;
        world.bundle.source.credentials = app(key);
        let finished = world.run().await;
        let (kind, error) = failed(&finished);
        assert_eq!(kind, expected, "{error}");
        assert!(finished.fake.log_of("Git Clone").contains("GitHub App"), "{error}");
    }
    // The address of the API is bound by the rules of the control plane.
    *github.mood.lock().unwrap() = Mood::Right;
    github.asked.lock().unwrap().clear();
    world.bundle.source.credentials = app(github.private_key());
    world.bundle.source.allow_private_addresses = false;
    let (kind, error) = failed(&world.run().await);
    assert_eq!(kind, FailureKind::Permanent);
    assert!(error.contains("may not be reached"), "{error}");
    assert!(github.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_repository_is_cloned_over_ssh_from_the_pinned_host_alone() {
    let Some(sshd) = Sshd::start().await else { return };
    let mut world = World::with(&[STACK]);
    world.bundle.source.repo_url = sshd.url(&world.repo());
    let key = |hosts: Vec<String>| {
        vec![GitCredential {
            host: format!("127.0.0.1:{}", sshd.port),
            path_prefix: String::new(),
            secret: GitSecret::SshKey { private_key: sshd.client_key(), host_keys: hosts },
        }]
    };
    let line = sshd.host_line();
    let host_key = line.split_once(' ').unwrap().1.rsplit_once(" for").unwrap().0.to_owned();
    for pinned in [host_key, sshd.fingerprint()] {
        world.bundle.source.credentials = key(vec![pinned]);
        let planned = world.run().await;
        assert!(planned.fake.told().plan_done.is_some(), "{} {}", planned.fake.all_logs(), sshd.log());
        let inside = sshd.client_key().lines().nth(1).unwrap().to_owned();
        assert!(!planned.fake.all_logs().contains(&inside));
    }
    let accepted = || sshd.log().matches("Accepted publickey").count();
    let before = accepted();
    assert!(before >= 2, "{}", sshd.log());
    let other = sshd.other_host_line();
    let other = other.split(' ').take(2).collect::<Vec<_>>().join(" ");
    for (credentials, says) in [
        (key(vec![other]), "not one of those that are pinned"),
        (Vec::new(), "needs a Git credential of the kind ssh_key"),
    ] {
        world.bundle.source.credentials = credentials;
        let (kind, error) = failed(&world.run().await);
        assert_eq!(kind, FailureKind::Permanent, "{error}");
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(accepted(), before, "{}", sshd.log());
    assert!(!holds(&world.scratch(""), "PRIVATE KEY"), "no key is left behind");
}
