//! The algorithm, as tables.

use super::{CANDIDATES_MAX, Candidate, candidate_at, discover, repository_name};
use crate::workspaces::WorkspaceKind;

fn candidates(files: &[&str]) -> Vec<Candidate> {
    let found = discover(files.iter().copied(), "infra");
    assert_eq!(found.oddities, [], "{files:?}");
    found.candidates
}

fn only(file: &str) -> Candidate {
    let mut found = candidates(&[file]);
    assert_eq!(found.len(), 1, "{file}");
    found.remove(0)
}

fn oddity(file: &str) -> String {
    let mut found = discover([file], "infra");
    assert_eq!(found.candidates, [], "{file}");
    assert_eq!(found.oddities.len(), 1, "{file}");
    found.oddities.remove(0).reason
}

#[test]
fn a_path_says_account_region_and_name() {
    let cases = [
        ("account-123456789012/eu-west-1/app/my_db/main.tf", "123456789012", "eu-west-1", "my-db"),
        ("account-123456789012/us-gov-west-1/vpc/main.tf", "123456789012", "us-gov-west-1", "vpc"),
        ("account-123456789012/cn-northwest-1/vpc/main.tf", "123456789012", "cn-northwest-1", "vpc"),
        ("account-123456789012/il-central-1/vpc/main.tf", "123456789012", "il-central-1", "vpc"),
        ("account-123456789012/mx-central-1/vpc/main.tf", "123456789012", "mx-central-1", "vpc"),
        ("account-123456789012/ap-southeast-5/vpc/main.tf", "123456789012", "ap-southeast-5", "vpc"),
        ("account-123456789012/us-isob-east-1/vpc/main.tf", "123456789012", "us-isob-east-1", "vpc"),
        ("account-123456789012/global/iam/main.tf", "123456789012", "global", "iam"),
        ("account-123456789012/eu-west-1/main.tf", "123456789012", "eu-west-1", "eu-west-1"),
        ("account-123456789012/main.tf", "123456789012", "global", "account-123456789012"),
        ("network/main.tf", "global", "global", "network"),
        ("prod/eu-west-1/vpc/main.tf", "global", "eu-west-1", "vpc"),
        ("main.tf", "global", "global", "infra"),
        ("a b/ü/main.tf", "global", "global", "root"),
    ];
    for (file, account, region, name) in cases {
        let found = only(file);
        assert_eq!(
            (found.aws_account_id.as_str(), found.region.as_str(), found.name.as_str()),
            (account, region, name),
            "{file}"
        );
    }
    assert_eq!(only("main.tf").path, ".");
    assert_eq!(only("a/b/main.tf").path, "a/b");
}

#[test]
fn what_makes_a_directory_a_candidate() {
    for file in ["a/main.tf", "a/main.tf.json", "a/x.tf"] {
        assert_eq!(only(file).kind, WorkspaceKind::Terraform, "{file}");
    }
    assert_eq!(only("a/Chart.yaml").kind, WorkspaceKind::Helm);
    assert_eq!(candidates(&["a/Chart.yaml", "a/main.tf"])[0].kind, WorkspaceKind::Terraform);
    let nothing = ["a/main.tfvars", "a/.hidden.tf", "a/values.yaml", "README.md", "a/main.tf/readme", "tf"];
    assert_eq!(candidates(&nothing), []);
}

#[test]
fn directories_that_hold_no_stacks_are_skipped() {
    for part in [".git", ".terraform", "modules", "node_modules", ".github", ".idea", ".vscode"] {
        assert_eq!(candidates(&[&format!("{part}/x/main.tf"), &format!("a/{part}/main.tf")]), [], "{part}");
    }
    assert_eq!(only("my-modules/x/main.tf").path, "my-modules/x");
}

#[test]
fn a_charts_own_dependencies_are_not_candidates() {
    let found = candidates(&["charts/web/Chart.yaml", "charts/web/charts/redis/Chart.yaml"]);
    assert_eq!(found.iter().map(|c| c.path.as_str()).collect::<Vec<_>>(), ["charts/web"]);
}

#[test]
fn an_environment_is_a_whole_word_of_the_path() {
    let cases = [
        ("prod/vpc", "prod"),
        ("Production/vpc", "prod"),
        ("product/vpc", "dev"),
        ("latest/vpc", "dev"),
        ("nonprod/vpc", "dev"),
        ("devices/prod", "prod"),
        ("prod/dev", "dev"),
        ("pre_prod/vpc", "preprod"),
        ("stage/vpc", "staging"),
        ("prod/iam", "shared"),
        ("qa/vpc", "dev"),
        ("cust12/vpc", "prod"),
        ("customers/vpc", "dev"),
        ("rc1/vpc", "prod"),
        ("archive/vpc", "dev"),
        ("vpc", "dev"),
    ];
    for (directory, environment) in cases {
        assert_eq!(only(&format!("{directory}/main.tf")).environment, environment, "{directory}");
    }
}

#[test]
fn mistyped_accounts_and_regions_are_reported() {
    let cases = [
        "account-12345678901/eu-west-1/vpc/main.tf",
        "account-1234567890123/eu-west-1/vpc/main.tf",
        "account_123456789012/eu-west-1/vpc/main.tf",
        "acount-123456789012/eu-west-1/vpc/main.tf",
        "Account-123456789012/eu-west-1/vpc/main.tf",
        "123456789012/eu-west-1/vpc/main.tf",
    ];
    for file in cases {
        assert!(oddity(file).contains("looks like an account's directory"), "{file}");
    }
    assert!(oddity("account-123456789012/eu-wset-1/vpc/main.tf").contains("eu-wset-1 should be a region"));
    assert!(oddity("account-123456789012/vpc/main.tf").contains("vpc should be a region"));
    assert_eq!(only("accounting-service/main.tf").aws_account_id, "global");
}

#[test]
fn paths_that_no_workspace_can_have_are_reported() {
    for file in ["a\\b/main.tf", "-x/main.tf", "a\n/main.tf"] {
        assert!(oddity(file).starts_with("the path "), "{file}");
    }
}

#[test]
fn more_candidates_than_the_limit_are_counted() {
    let files: Vec<String> = (0..CANDIDATES_MAX + 3).map(|n| format!("s{n}/main.tf")).collect();
    let found = discover(files.iter().map(String::as_str), "infra");
    assert_eq!(found.candidates.len(), CANDIDATES_MAX);
    assert!(found.oddities[0].reason.starts_with("3 more"));
}

#[test]
fn a_named_directory_is_found_where_discovery_does_not_look() {
    let files = ["modules/vpc/main.tf", "account-1/x/main.tf", "main.tf", "docs/readme"];
    let at = |path| candidate_at(files, path, "infra").map(|found| (found.name, found.aws_account_id));
    assert_eq!(at("modules/vpc"), Some(("vpc".into(), "global".into())));
    assert_eq!(at("account-1/x"), Some(("x".into(), "global".into())));
    assert_eq!(at("."), Some(("infra".into(), "global".into())));
    assert_eq!(at("docs"), None);
    assert_eq!(at("modules"), None);
}

#[test]
fn a_repository_is_named_by_its_address() {
    for url in
        ["https://host/a/infra.git", "git@host:a/infra", "git@host:infra.git", "local:///srv/infra.git"]
    {
        assert_eq!(repository_name(url), "infra", "{url}");
    }
}
