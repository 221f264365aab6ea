//! Cloud credentials in an attempt: who gets them, who does not, and what is asked of AWS for them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use plumbline_core::protocol::*;
use serde_json::{Value, json};

use super::fake_tool;
use super::world::{Finished, World, eventually, open_directory};
use crate::fake_sts::{Canned, FakeSts, REGION};

const ROLE: &str = "arn:aws:iam::123456789012:role/plan";
const USER: &str = "arn:aws:iam::123456789012:user/plumbline";
const TASK: &str = "arn:aws:sts::999999999999:assumed-role/executor/0123456789abcdef";
const EXTERNAL_ID: &str = "plumbline-0123456789abcdef";
const SECRET: &str = "hunter2+hunter2/hunter2";
const STACK: &str = r#"
resource "terraform_data" "one" {
  provisioner "local-exec" { command = "env" }
}
"#;

/// A world whose terraform first writes down its environment, and the files that it names.
struct Watched {
    world: World,
    signs: tempfile::TempDir,
    _tools: tempfile::TempDir,
}

fn terraform() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|part| part.join("terraform")).find(|it| it.is_file()).unwrap()
}

impl Watched {
    fn new() -> Self {
        let (signs, tools) = (open_directory(), open_directory());
        let real = terraform();
        let answer = Command::new(&real).args(["version", "-json"]).output().unwrap();
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let signs_path = signs.path().display();
        let script = format!(
            "#!/bin/bash\nenv -0 > {signs_path}/$1.$$.env\n\
             for name in KUBECONFIG AWS_SHARED_CREDENTIALS_FILE; do\n\
             [ -n \"${{!name}}\" ] && cp \"${{!name}}\" {signs_path}/$1.$name && chmod 644 {signs_path}/$1.$name\n\
             done\nexec {} \"$@\"\n",
            real.display()
        );
        // Before the one on PATH, which has the same version.
        fake_tool::install(tools.path(), ".", "terraform", &script);
        let mut world = World::with(&[("main.tf", STACK)]);
        world.bundle.tool.version = Some(answer["terraform_version"].as_str().unwrap().into());
        world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
        Self { world, signs, _tools: tools }
    }

    /// One whose bundle has a role, and whose executor asks this STS for it.
    fn with_role(sts: &FakeSts, keys: Option<AwsKeys>, external_id: &str) -> Self {
        let mut watched = Self::new();
        watched.world.bundle.aws = Some(AwsCredentials { role: Some(role(external_id)), ..aws(keys) });
        watched.world.environment.push(("PLUMBLINE_STS_ENDPOINT".into(), sts.url.clone()));
        watched
    }

    /// The environments of every call of a command, by name.
    fn environments(&self, command: &str) -> Vec<BTreeMap<String, String>> {
        let files = std::fs::read_dir(self.signs.path()).unwrap().flatten().map(|entry| entry.path());
        let own = files.filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(&format!("{command}.")) && name.ends_with(".env")
        });
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        own.map(read).collect()
    }

    fn environment(&self, command: &str) -> BTreeMap<String, String> {
        let mut all = self.environments(command);
        assert_eq!(all.len(), 1, "calls of {command}");
        all.remove(0)
    }

    fn copy(&self, command: &str, variable: &str) -> String {
        std::fs::read_to_string(self.signs.path().join(format!("{command}.{variable}"))).unwrap()
    }

    /// No call of these commands had anything of a cloud.
    fn had_nothing(&self, commands: &[&str]) {
        for command in commands {
            let all = self.environments(command);
            assert!(!all.is_empty(), "{command} was called");
            for environment in all {
                let clouds = ["AWS_", "ARM_", "GOOGLE_", "KUBE"];
                let found: Vec<_> = environment
                    .keys()
                    .filter(|name| clouds.iter().any(|cloud| name.starts_with(cloud)))
                    .collect();
                assert!(found.is_empty(), "{command} got {found:?}");
                assert!(!environment.values().any(|value| value.contains("hunter2")), "{command}");
            }
        }
    }
}

fn keys() -> AwsKeys {
    AwsKeys {
        access_key_id: "AKIA0123456789ABCDEF".into(),
        secret_access_key: SECRET.into(),
        session_token: None,
    }
}

fn aws(keys: Option<AwsKeys>) -> AwsCredentials {
    AwsCredentials {
        keys,
        role: None,
        web_identity: false,
        sts_region: REGION.into(),
        region: "eu-west-1".into(),
        profile: None,
    }
}

fn role(external_id: &str) -> AwsRole {
    AwsRole {
        role_arn: ROLE.into(),
        external_id: external_id.into(),
        session_name: "plumbline-run-1".into(),
        duration_seconds: 900,
        session_policy: Some(r#"{"Statement":[{"Effect":"Deny","Action":"iam:*","Resource":"*"}]}"#.into()),
        tags: BTreeMap::from([
            ("plumbline:phase".into(), "plan".into()),
            ("plumbline:unit".into(), "blue".into()),
        ]),
    }
}

fn keys_of(principal: &crate::fake_sts::Principal) -> AwsKeys {
    AwsKeys {
        access_key_id: principal.keys.access_key_id().into(),
        secret_access_key: principal.keys.secret_access_key().into(),
        session_token: principal.keys.session_token().map(str::to_owned),
    }
}

fn error_of(finished: &Finished) -> String {
    finished.fake.told().failed.as_ref().expect("a report").error.clone()
}

#[tokio::test]
async fn plan_and_apply_see_the_credentials_and_no_other_call_does() {
    let mut watched = Watched::new();
    let bundle = &mut watched.world.bundle;
    bundle.aws = Some(AwsCredentials { profile: Some("payments".into()), ..aws(Some(keys())) });
    let others = [
        ("ARM_CLIENT_SECRET", "hunter2-of-azure"),
        ("GOOGLE_CREDENTIALS", "{\"private_key\":\"hunter2-gcp\"}"),
    ];
    bundle.environment.extend(others.map(|(name, value)| (name.to_owned(), value.to_owned())));
    bundle.secrets = vec!["hunter2-of-azure".into(), "hunter2-gcp".into()];
    let kubeconfig = json!({"users": [{"name": "u", "user": {"token": "hunter2-token"}}]}).to_string();
    bundle.secrets.push("hunter2-token".into());
    bundle.cluster = Some(ClusterAccess { kubeconfig: kubeconfig.clone(), eks: None });

    let planned = watched.world.run().await;
    assert_eq!(planned.code, Some(0), "{}", watched.world.executor_log());
    let applied = watched.world.apply(&planned).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());

    for command in ["plan", "apply"] {
        let seen = watched.environment(command);
        let get = |name: &str| seen.get(name).map(String::as_str);
        assert_eq!(get("AWS_ACCESS_KEY_ID"), Some("AKIA0123456789ABCDEF"), "{command}");
        assert_eq!(get("AWS_SECRET_ACCESS_KEY"), Some(SECRET));
        assert_eq!((get("AWS_REGION"), get("AWS_DEFAULT_REGION")), (Some("eu-west-1"), Some("eu-west-1")));
        assert_eq!(get("AWS_EC2_METADATA_DISABLED"), Some("true"));
        assert_eq!(get("ARM_CLIENT_SECRET"), Some("hunter2-of-azure"));
        assert_eq!(get("GOOGLE_CREDENTIALS"), Some("{\"private_key\":\"hunter2-gcp\"}"));
        assert_eq!(get("KUBECONFIG"), get("KUBE_CONFIG_PATH"));
        assert_eq!(watched.copy(command, "KUBECONFIG"), kubeconfig);
        let profile = watched.copy(command, "AWS_SHARED_CREDENTIALS_FILE");
        assert!(profile.starts_with("[payments]\naws_access_key_id = AKIA") && profile.contains(SECRET));
        for name in ["KUBECONFIG", "AWS_SHARED_CREDENTIALS_FILE"] {
            assert!(!std::path::Path::new(&seen[name]).exists(), "{name} goes with the call");
        }
    }
    watched.had_nothing(&["version", "init", "show", "output"]);
    // The provisioner shows its whole environment: the log does not.
    let logs = applied.fake.all_logs() + &planned.fake.all_logs();
    assert!(logs.contains("AWS_SECRET_ACCESS_KEY=(secret)"), "{logs}");
    assert!(!logs.contains("hunter2") && !watched.world.executor_log().contains("hunter2"), "{logs}");
}

#[tokio::test]
async fn a_role_is_assumed_for_the_phase_and_the_child_never_sees_what_asked_for_it() {
    let sts = FakeSts::start().await;
    let user = sts.user(USER);
    sts.role(ROLE, USER, Some(EXTERNAL_ID));
    let watched = Watched::with_role(&sts, Some(keys_of(&user)), EXTERNAL_ID);
    let planned = watched.world.run().await;
    assert_eq!(planned.code, Some(0), "{}", watched.world.executor_log());

    let sessions = sts.sessions();
    let [session] = &sessions[..] else { panic!("one session, not {sessions:?}") };
    let wanted = role(EXTERNAL_ID);
    assert_eq!(
        (&*session.role_arn, &*session.name, &*session.duration_seconds),
        (ROLE, "plumbline-run-1", "900")
    );
    assert_eq!((&session.tags, &session.policy), (&wanted.tags, &wanted.session_policy));
    let seen = watched.environment("plan");
    assert_eq!(seen["AWS_ACCESS_KEY_ID"], session.access_key_id);
    assert_eq!(seen["AWS_SECRET_ACCESS_KEY"], session.secret_access_key);
    assert_eq!(seen["AWS_SESSION_TOKEN"], session.session_token);
    assert!(!seen.values().any(|value| value.contains(user.keys.secret_access_key())));
    watched.had_nothing(&["version", "init", "show"]);

    // Apply asks anew: its bundle names another role.
    let fake = watched.world.approve(&planned);
    let apply_role = ROLE.replace("plan", "apply");
    sts.role(&apply_role, USER, Some(EXTERNAL_ID));
    if let Some(role) = fake.bundle.lock().unwrap().aws.as_mut().and_then(|aws| aws.role.as_mut()) {
        role.role_arn = apply_role.clone();
    }
    let applied = watched.world.start_against(fake).finish().await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    let last = sts.sessions().pop().unwrap();
    assert_eq!(
        (last.role_arn, &last.access_key_id),
        (apply_role, &watched.environment("apply")["AWS_ACCESS_KEY_ID"])
    );
    assert!(!applied.fake.all_logs().contains(&last.session_token), "a session's keys are secrets, too");
}

#[tokio::test]
async fn the_executors_own_role_asks_where_the_account_has_no_keys_and_goes_no_further() {
    let sts = FakeSts::start().await;
    let own = sts.principal(TASK);
    sts.role(ROLE, TASK, Some(EXTERNAL_ID));
    let mut watched = Watched::with_role(&sts, None, EXTERNAL_ID);
    watched.world.environment.extend(own.environment());
    let planned = watched.world.run().await;
    assert_eq!(planned.code, Some(0), "{}", watched.world.executor_log());
    assert_eq!(sts.sessions()[0].asked_by, TASK);
    let seen = watched.environment("plan");
    assert_eq!(seen["AWS_ACCESS_KEY_ID"], sts.sessions()[0].access_key_id);
    assert!(!seen.values().any(|value| value.contains(own.keys.secret_access_key())));

    // Keys or a role must be there; our own role is nobody's credentials.
    watched.world.bundle.aws = Some(aws(None));
    let refused = watched.world.run().await;
    assert!(error_of(&refused).contains("neither keys nor roles"), "{}", error_of(&refused));
}

#[tokio::test]
async fn a_role_that_is_refused_fails_the_run_in_awss_words_before_anything_runs() {
    let sts = FakeSts::start().await;
    let user = sts.user(USER);
    sts.role(ROLE, USER, Some(EXTERNAL_ID));
    let watched = Watched::with_role(&sts, Some(keys_of(&user)), "plumbline-of-somebody-else");
    let refused = watched.world.run().await;
    let error = error_of(&refused);
    assert!(
        error.contains(ROLE) && error.contains("AccessDenied") && error.contains("not authorized"),
        "{error}"
    );
    assert_eq!(refused.fake.told().failed.as_ref().unwrap().kind, FailureKind::Permanent);
    assert!(watched.environments("init").is_empty() && refused.fake.told().steps.is_empty());

    let alone = Watched::with_role(&sts, None, EXTERNAL_ID);
    let error = error_of(&alone.world.run().await);
    assert!(error.contains("executors here have no role of their own"), "{error}");
}

#[tokio::test]
async fn an_sts_that_is_away_for_a_moment_is_asked_again() {
    let sts = FakeSts::start().await;
    let user = sts.user(USER);
    sts.role(ROLE, USER, Some(EXTERNAL_ID));
    let away = Canned { status: http::StatusCode::SERVICE_UNAVAILABLE, location: None, body: String::new() };
    sts.answer(Some(away));
    let watched = Watched::with_role(&sts, Some(keys_of(&user)), EXTERNAL_ID);
    let running = watched.world.start().await;
    eventually("AWS is asked twice", || sts.requests() >= 2).await;
    sts.answer(None);
    let planned = running.finish().await;
    assert_eq!(planned.code, Some(0), "{}", watched.world.executor_log());
}

#[tokio::test]
async fn an_eks_cluster_is_opened_by_a_token_of_its_own_account_without_a_plugin() {
    let sts = FakeSts::start().await;
    let user = sts.user(USER);
    sts.role(ROLE, USER, Some(EXTERNAL_ID));
    let mut watched = Watched::new();
    watched.world.environment.push(("PLUMBLINE_STS_ENDPOINT".into(), sts.url.clone()));
    let exec = json!({"exec": {"command": "aws", "args": ["eks", "get-token", "--cluster-name", "prod"]}});
    let aws = AwsCredentials { role: Some(role(EXTERNAL_ID)), ..aws(Some(keys_of(&user))) };
    watched.world.bundle.cluster = Some(ClusterAccess {
        kubeconfig: json!({"users": [{"name": "u", "user": exec}]}).to_string(),
        eks: Some(EksAccess { cluster_name: "prod".into(), aws }),
    });
    let planned = watched.world.run().await;
    assert_eq!(planned.code, Some(0), "{}", watched.world.executor_log());

    let kubeconfig: Value = serde_json::from_str(&watched.copy("plan", "KUBECONFIG")).unwrap();
    let opened = &kubeconfig["users"][0]["user"];
    assert!(opened.get("exec").is_none(), "{opened}");
    let token = opened["token"].as_str().unwrap().strip_prefix("k8s-aws-v1.").unwrap().to_owned();
    let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token).unwrap();
    let url = String::from_utf8(url).unwrap();
    assert!(
        url.starts_with(&format!("https://sts.{REGION}.amazonaws.com/?Action=GetCallerIdentity&")),
        "{url}"
    );
    assert!(url.contains(&sts.sessions()[0].access_key_id) && url.contains("host%3Bx-k8s-aws-id"), "{url}");
    // The cluster's account is not the workspace's.
    assert!(!watched.environment("plan").contains_key("AWS_ACCESS_KEY_ID"));
}
