//! Who the child is, as the kernel tells the child itself: user, capabilities, privileges, network.

use std::collections::BTreeMap;
use std::process::Command;

use super::fake_callback::FakeCallback;
use super::fake_tool;
use super::world::{World, open_directory};

/// Each call of the tool says on standard error who it is; SIGNS has the address of the control plane.
const SAYS: &str = r#"
{
  grep -E '^(Uid|Gid|Groups|Cap[A-Z][a-z]+|NoNewPrivs):' /proc/self/status
  echo "Network: $(readlink /proc/self/ns/net)"
  address=$(cat SIGNS/callback)
  if (exec 3<>"/dev/tcp/${address%:*}/${address#*:}") 2>/dev/null; then echo "Reaches: yes"; else echo "Reaches: no"; fi
} >&2
"#;
/// Steps that call the tool, and whether that call needs the network.
const STEPS: [(&str, bool); 4] =
    [("Set Version", false), ("Terraform Init", true), ("Terraform Plan", true), ("Derive Plan", false)];

/// What the last call of a step said, by the name of the line.
type Said = BTreeMap<String, String>;

async fn plan(mut world: World) -> (Vec<(&'static str, bool, Said)>, String) {
    let (signs, tools) = (open_directory(), open_directory());
    let says = SAYS.replace("SIGNS", &signs.path().display().to_string());
    let script = fake_tool::script_that_says(&says, "1.99.0", "echo plan > \"$out\"; exit 2");
    fake_tool::install(tools.path(), "1.99.0", "terraform", &script);
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.path().display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    let fake = FakeCallback::start(world.bundle.clone()).await;
    std::fs::write(signs.path().join("callback"), fake.url.trim_start_matches("http://")).unwrap();
    let planned = world.start_against(fake).finish().await;
    assert!(planned.fake.told().plan_done.is_some(), "{}", planned.fake.all_logs());

    let said = |step: &str| -> Said {
        let log = planned.fake.log_of(step);
        let lines = log.lines().filter_map(|line| line.split_once(':'));
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said: Said = lines.map(|(name, value)| (name.to_owned(), words(value))).collect();
        assert!(said.contains_key("NoNewPrivs") && said.contains_key("Reaches"), "{step}: {log}");
        said
    };
    let children = STEPS.iter().map(|(step, has_network)| (*step, *has_network, said(step))).collect();
    (children, planned.fake.log_of("Set Version"))
}

/// The name of the network that this process is in.
pub(crate) fn own_network() -> String {
    std::fs::read_link("/proc/self/ns/net").unwrap().display().to_string()
}

/// Whether runs get users and networks of their own here; prints the skip if not.
pub(crate) fn can_confine() -> bool {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIP: only root can give a run a user of its own");
        return false;
    }
    let may = Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|status| status.success());
    if !may {
        eprintln!("SKIP: root may not make a network here");
    }
    may
}

#[tokio::test]
async fn the_child_has_a_user_of_its_own_no_privileges_and_a_network_only_where_it_needs_one() {
    if !can_confine() {
        return;
    }
    let mut users = Vec::new();
    for _ in 0..2 {
        let (children, log) = plan(World::with(&[("main.tf", "")])).await;
        assert!(!log.contains("Isolation is off"), "{log}");
        for (step, has_network, child) in &children {
            let user: u32 = child["Uid"].split(' ').next().unwrap().parse().unwrap();
            assert!(user >= 1_000_000, "{step}: {child:?}");
            // Real, effective, saved and of the file system: none is left to go back to.
            let only = [user.to_string().as_str(); 4].join(" ");
            assert_eq!(
                (&child["Uid"], &child["Gid"], child["Groups"].as_str()),
                (&only, &only, ""),
                "{step}"
            );
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert_eq!(child[set], "0000000000000000", "{step} {set}");
            }
            assert_eq!(child["NoNewPrivs"], "1", "{step}");
            assert_eq!(child["Network"] == own_network(), *has_network, "{step}: {child:?}");
            assert_eq!(child["Reaches"], if *has_network { "yes" } else { "no" }, "{step}");
            users.push(user);
        }
    }
    users.dedup();
    assert_eq!(users.len(), 2, "one user for each run: {users:?}");
}

#[tokio::test]
async fn without_root_the_child_still_gains_nothing_and_the_log_says_that_isolation_is_off() {
    let mut world = World::with(&[("main.tf", "")]);
    let mut own = nix::unistd::geteuid().as_raw();
    if own == 0 {
        own = 65_534;
        world.run_as(own);
    }
    let (children, log) = plan(world).await;
    assert!(log.contains("Isolation is off: terraform runs as the executor's own user"), "{log}");
    for (step, _, child) in &children {
        assert_eq!(child["Uid"], [own.to_string().as_str(); 4].join(" "), "{step}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(child[set], "0000000000000000", "{step} {set}");
        }
        assert_eq!(child["NoNewPrivs"], "1", "{step}");
    }
}
