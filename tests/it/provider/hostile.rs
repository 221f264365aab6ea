//! Code of a module that runs in the real terraform tries what it must not be able to do: a data source in a plan, a
//! provisioner in an apply. All of it fails, and is seen.

use std::os::unix::fs::PermissionsExt as _;

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::FailureKind;
use serde_json::json;

use super::{Mirror, world};
use crate::executor::fake_callback::FakeCallback;
use crate::executor::world::{Finished, World, eventually, is_named_by_a_process, open_directory};

/// Says on standard output what became of each try; SIGNS is a directory that it may write.
const TRIES: &str = r#"#!/bin/bash
http() { # host:port, method, path, header, body
  exec 3<>"/dev/tcp/${1%:*}/${1#*:}" || return
  printf '%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %s\r\n\r\n%s' "$2" "$3" "$4" "${#5}" "$5" >&3
  read -r _ status _ <&3
  exec 3<&-
  echo "$2 $3 -> $status"
}
proxy="${TF_HTTP_ADDRESS#http://}"; proxy="${proxy%%/*}"
basic="Authorization: Basic $(printf '%s:%s' "$TF_HTTP_USERNAME" "$TF_HTTP_PASSWORD" | base64 -w0)"$'\r\n'
callback=$(cat SIGNS/callback)
mirror=$(cat SIGNS/mirror)

# The state: through the proxy with its password, without it, by force, and past the proxy.
http "$proxy" PUT /state "$basic" '{"version":4,"serial":99,"lineage":"evil"}'
http "$proxy" GET /state "" ""
http "$proxy" PATCH /lock "$basic" ""
http "$callback" PUT /executor/v1/state "" '{"version":4,"serial":99,"lineage":"evil"}'
http "$callback" PUT /executor/v1/state "$basic" '{"version":4,"serial":99,"lineage":"evil"}'
# Reports in somebody else's name.
http "$callback" POST /executor/v1/heartbeat "" ""
http "$callback" POST /executor/v1/plan/complete "Authorization: Bearer guess"$'\r\n' "{}"
# The run's token: the environment of everything that can be seen, and all of whoever stands above us.
# Its halves apart, so that this file is not what is found.
token="FIRST_HALF_OF_IT""OTHER_HALF_OF_IT"
for process in /proc/[0-9]*; do
  for file in environ cmdline; do
    [[ $(tr '\0' '\n' 2>/dev/null < "$process/$file") == *"$token"* ]] && echo "STOLEN $file of $process"
  done
done 2>/dev/null
above=$PPID
while [ "$above" -gt 1 ]; do
  if [ "$(cat "/proc/$above/comm")" = executor-task ]; then
    echo "SUPERVISOR found"
    (: < "/proc/$above/mem") 2>/dev/null && echo "STOLEN mem"
    (: > "/proc/$above/mem") 2>/dev/null && echo "STOLEN mem for writing"
    (head -c1 "/proc/$above/maps" | grep -q .) 2>/dev/null && echo "STOLEN maps"
    ls "/proc/$above/fd" 2>/dev/null | grep -q . && echo "STOLEN fds"
    break
  fi
  above=$(awk '/^PPid:/ {print $2}' "/proc/$above/status")
done
env | grep -E 'run-token|ticket-ticket|PLUMBLINE' && echo "STOLEN own environment"
grep -rqsF -f <(printf %s "$token") "$HOME/../.." "$TMPDIR" && echo "STOLEN from a file"
# The providers of everybody.
for path in "$mirror"/plumbline.test/plumbline/plumbtest/*/*/terraform-provider-* "$mirror/new"; do
  (echo evil >> "$path") 2>/dev/null && echo "STOLEN mirror"
done
"#;

/// Three ways to stay when the step is over. Gone before they are free, they would end with the group of the step.
const STAYS: &str = r#"
linger='trap "" HUP INT TERM; : > "SIGNS/free-$0"; while :; do sleep 0.2; : SIGNS; done'
setsid bash -c "$linger" session > /dev/null 2>&1 < /dev/null &
(setsid bash -c "$linger" orphan > /dev/null 2>&1 < /dev/null & disown) &
nohup bash -c "$linger" nohup > /dev/null 2>&1 < /dev/null &
until [ -e SIGNS/free-session ] && [ -e SIGNS/free-orphan ] && [ -e SIGNS/free-nohup ]; do sleep 0.02; done
"#;

/// A module that runs `plan.sh` in its plan and `apply.sh` in its apply.
const MODULE: &str = r#"
data "plumbtest_program" "evil" {
  command = ["bash", "${path.module}/plan.sh"]
}
resource "terraform_data" "evil" {
  provisioner "local-exec" { command = "bash ${path.module}/apply.sh" }
}
output "said" { value = data.plumbtest_program.evil.output }
"#;

struct Hostile {
    world: World,
    signs: tempfile::TempDir,
    _mirror: Mirror,
}

impl Hostile {
    fn module(plan: &str, apply: &str) -> Option<Self> {
        let mirror = Mirror::find()?;
        let signs = open_directory();
        let stolen_from = if nix::unistd::geteuid().is_root() {
            mirror.path().to_owned()
        } else {
            eprintln!(
                "SKIP: the provider mirror belongs to the user that runs the module here, so it may write there"
            );
            signs.path().join("no-mirror")
        };
        std::fs::write(signs.path().join("mirror"), stolen_from.display().to_string()).unwrap();
        let world = world(&mirror, MODULE);
        let (first, second) = world.bundle.token.split_at(world.bundle.token.len() / 2);
        let fill = |text: &str| {
            text.replace("SIGNS", &signs.path().display().to_string())
                .replace("FIRST_HALF_OF_IT", first)
                .replace("OTHER_HALF_OF_IT", second)
        };
        world.commit(&[("plan.sh", &fill(plan)), ("apply.sh", &fill(apply))]);
        Some(Self { world, signs, _mirror: mirror })
    }

    async fn fake(&self) -> FakeCallback {
        let fake = FakeCallback::start(self.world.bundle.clone()).await;
        let address = fake.url.trim_start_matches("http://");
        std::fs::write(self.signs.path().join("callback"), address).unwrap();
        fake
    }

    async fn plan(&self) -> Finished {
        self.world.start_against(self.fake().await).finish().await
    }

    async fn nothing_stays(&self) {
        let mark = self.signs.path().display().to_string();
        eventually("nothing of it is left", || !is_named_by_a_process(&mark)).await;
    }

    fn forget_signs(&self) {
        for name in ["free-session", "free-orphan", "free-nohup"] {
            std::fs::remove_file(self.signs.path().join(name)).unwrap();
        }
    }
}

/// What must be true of the log of either phase.
fn nothing_was_gained(log: &str) {
    assert!(log.contains("GET /state -> 401"), "{log}");
    assert!(log.matches("PUT /executor/v1/state -> 401").count() >= 2, "{log}");
    assert!(log.contains("/executor/v1/heartbeat -> 401") && log.contains("/plan/complete -> 401"), "{log}");
    assert!(log.contains("SUPERVISOR found") && !log.contains("STOLEN"), "{log}");
    for seen in ["somebody asked the state proxy without its password", "processes outlived the step"] {
        assert!(log.contains(&format!("plumbline: finding: {seen}")), "{log}");
    }
}

async fn a_hostile_module_gets_nothing(hostile: Hostile) {
    let planned = hostile.plan().await;
    let log = planned.fake.log_of("Terraform Plan");
    nothing_was_gained(&log);
    assert!(log.contains("PUT /state -> 403") && log.contains("PATCH /lock -> 403"), "{log}");
    {
        let told = planned.fake.told();
        assert!(told.states.is_empty() && told.lock.is_none());
        assert_eq!(told.strangers, 4);
        let done = told.plan_done.as_ref().expect("the plan is complete");
        assert_eq!(done.plan_sha256, Sha256Digest::of(&told.artifacts["plan_file"]));
        let summary =
            told.steps.iter().rev().find_map(|(_, report)| report.summary.clone()).expect("findings");
        let findings = summary["findings"].to_string();
        for seen in ["tried to write the state", "without its password", "outlived the plan"] {
            assert!(findings.contains(seen), "{findings}");
        }
    }
    hostile.nothing_stays().await;
    hostile.forget_signs();

    let applied = hostile.world.apply(&planned).await;
    let log = applied.fake.log_of("Terraform Apply");
    nothing_was_gained(&log);
    // The apply holds the lock and may write; whoever does not know its id may not.
    assert!(log.contains("PUT /state -> 409") && log.contains("PATCH /lock -> 403"), "{log}");
    assert!(log.contains("DELETE /lock -> 403"), "{log}");
    {
        let told = applied.fake.told();
        assert!(told.apply_done && told.lock.is_none(), "{:?}", told.failed);
        assert_eq!(told.strangers, 8);
        for state in &told.states {
            let state: serde_json::Value = serde_json::from_slice(state).unwrap();
            assert_ne!(state["serial"], json!(99));
        }
    }
    hostile.nothing_stays().await;
}

fn tries_everything() -> Option<Hostile> {
    let plan = [TRIES, STAYS].concat();
    let force = "http \"$proxy\" DELETE /lock \"$basic\" \"\"\n";
    let apply = [TRIES, force, STAYS].concat();
    Hostile::module(&plan, &apply)
}

#[tokio::test]
async fn a_hostile_module_gets_nothing_with_a_user_of_its_own() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIP: only root can give a run a user of its own");
        return;
    }
    let Some(hostile) = tries_everything() else { return };
    a_hostile_module_gets_nothing(hostile).await;
}

/// Here the child is the executor's own user: it could read what the supervisor keeps on disk, and kill it. It still
/// gets neither token nor state, and the log says that isolation is off.
#[tokio::test]
async fn a_hostile_module_gets_nothing_without_root_either() {
    let Some(mut hostile) = tries_everything() else { return };
    if nix::unistd::geteuid().is_root() {
        hostile.world.run_as(65_534);
    }
    a_hostile_module_gets_nothing(hostile).await;
}

/// Waits for the plan, then puts something else in its place, again and again, when terraform is gone.
const SWAPS: &str = r#"
terraform=$(awk '/^PPid:/ {print $2}' "/proc/$PPID/status")
out=$(tr '\0' '\n' < "/proc/$terraform/cmdline" | sed -n 's/^-out=//p')
setsid bash -c ": > SIGNS/free; until [ -s '$out' ] && ! [ -e /proc/$terraform ]; do sleep 0.01; done; while :; do echo swapped > '$out.new'; mv -f '$out.new' '$out'; sleep 0.01; : SIGNS; done" > /dev/null 2>&1 < /dev/null &
until [ -e SIGNS/free ]; do sleep 0.02; done
"#;

#[tokio::test]
async fn a_plan_that_was_swapped_behind_terraform_is_never_complete() {
    let Some(hostile) = Hostile::module(SWAPS, "") else { return };
    let planned = hostile.plan().await;
    {
        let told = planned.fake.told();
        let failed = told.failed.as_ref().expect("a report");
        assert_eq!(failed.kind, FailureKind::Permanent);
        assert!(failed.error.contains("terraform show ended"), "{failed:?}");
        assert!(told.plan_done.is_none() && !told.artifacts.contains_key("plan_file"));
    }
    assert!(planned.fake.log_of("Terraform Plan").contains("finding: processes outlived the step"));
    hostile.nothing_stays().await;
}

/// The attempt ends without a plan, and the log says why.
async fn fails_in_derive(plan: &str, wanted: &str) {
    let Some(hostile) = Hostile::module(plan, "") else { return };
    let planned = hostile.plan().await;
    let told = planned.fake.told();
    assert_eq!(
        told.failed.as_ref().map(|failed| failed.kind),
        Some(FailureKind::Permanent),
        "{:?}",
        told.plan_done
    );
    assert!(told.plan_done.is_none() && told.artifacts.is_empty());
    drop(told);
    let log = planned.fake.log_of("Derive Plan");
    assert!(log.contains(wanted), "{log}");
}

#[tokio::test]
async fn a_plan_whose_lock_file_was_edited_is_not_trusted() {
    fails_in_derive("echo '# other' >> .terraform.lock.hcl\n", ".terraform.lock.hcl changed while planning")
        .await;
}

#[tokio::test]
async fn a_provider_that_was_exchanged_while_planning_is_not_run_again() {
    let plan = r#"
installed=$(dirname "$(find -L .terraform/providers -name 'terraform-provider-*')")
mkdir other && cp "$installed"/* other/ && printf '\n' >> other/terraform-provider-plumbtest_v0.1.0
rm -r "$installed" && mv other "$installed"
"#;
    fails_in_derive(plan, "checksums").await;
}

#[tokio::test]
async fn a_mirror_that_the_runs_user_cannot_reach_is_said_before_terraform_looks() {
    let Some(mirror) = Mirror::find() else { return };
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIP: only root can give a run a user of its own");
        return;
    }
    let private = tempfile::tempdir().unwrap();
    std::fs::set_permissions(private.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut world = world(&mirror, "");
    world.environment.retain(|(name, _)| name != "PLUMBLINE_PROVIDER_MIRROR");
    world.environment.push(("PLUMBLINE_PROVIDER_MIRROR".into(), private.path().display().to_string()));
    let failed = world.run().await.fake.told().failed.clone().expect("a report");
    assert!(failed.error.contains("cannot reach the provider mirror"), "{failed:?}");
}
