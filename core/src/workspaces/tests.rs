//! The pure rules, as tables.

use std::collections::BTreeMap;

use super::{
    LocalRepos, NewWorkspace, RepoUrl, Settings, TagFilter, Transport, check_branch, check_working_dir,
};

fn new() -> NewWorkspace {
    let json = r#"{"name": "network", "environment": "dev", "repo_url": "https://git.example.com/a/b.git"}"#;
    serde_json::from_str(json).unwrap()
}

fn field_refused(change: impl FnOnce(&mut NewWorkspace)) -> &'static str {
    let mut new = new();
    change(&mut new);
    Settings::validate(new, LocalRepos::Refused).unwrap_err().field
}

#[test]
fn defaults_are_valid() {
    let settings = Settings::validate(new(), LocalRepos::Refused).unwrap();
    assert_eq!(
        (settings.region(), settings.aws_account_id(), settings.repo_ref(), settings.tf_working_dir()),
        ("global", "global", "main", ".")
    );
}

#[test]
fn the_error_names_the_field() {
    assert_eq!(field_refused(|new| new.name = "-x".into()), "name");
    assert_eq!(field_refused(|new| new.name = "a b".into()), "name");
    assert_eq!(field_refused(|new| new.name = "a".repeat(256)), "name");
    assert_eq!(field_refused(|new| new.environment = String::new()), "environment");
    assert_eq!(field_refused(|new| new.environment = "a/b".into()), "environment");
    assert_eq!(field_refused(|new| new.aws_account_id = "12345678901".into()), "aws_account_id");
    assert_eq!(field_refused(|new| new.aws_account_id = "١٢٣٤٥٦٧٨٩٠١٢".into()), "aws_account_id");
    assert_eq!(field_refused(|new| new.region = "EU-west-1".into()), "region");
    assert_eq!(field_refused(|new| new.repo_ref = "--upload-pack=x".into()), "repo_ref");
    assert_eq!(field_refused(|new| new.tf_working_dir = "../x".into()), "tf_working_dir");
    assert_eq!(field_refused(|new| new.tool_version = Some("~> 1.5".into())), "tool_version");
    assert_eq!(field_refused(|new| new.tool_version = Some("v1.5.0".into())), "tool_version");
    assert_eq!(field_refused(|new| new.repo_url = "/srv/git".into()), "repo_url");
    let clash = BTreeMap::from([("Team".into(), "a".into()), ("team".into(), "b".into())]);
    assert_eq!(field_refused(|new| new.tags = clash), "tags");
    assert_eq!(field_refused(|new| new.tags = BTreeMap::from([("a\0".into(), String::new())])), "tags");
}

#[test]
fn tag_keys_become_lower_case_and_values_stay() {
    let mut new = new();
    new.tags = BTreeMap::from([("Cost-Centre".into(), "Ops".into())]);
    let settings = Settings::validate(new, LocalRepos::Refused).unwrap();
    assert_eq!(settings.tags(), &BTreeMap::from([("cost-centre".into(), "Ops".into())]));
    assert_eq!(TagFilter::parse("Team:a:b").unwrap(), TagFilter { key: "team".into(), value: "a:b".into() });
    assert!(TagFilter::parse("team").is_err());
}

#[test]
fn repository_addresses_that_git_may_be_given() {
    let cases = [
        ("https://Git.Example.com/a/b.git/", "https://git.example.com/a/b.git", Transport::Http, 443),
        ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a", Transport::Http, 8080),
        ("https://[::1]:8443/a", "https://[::1]:8443/a", Transport::Http, 8443),
        ("ssh://git@host:2222/a/b", "ssh://git@host:2222/a/b", Transport::Ssh, 2222),
        ("git@GitHub.com:org/repo.git", "git@github.com:org/repo.git", Transport::Ssh, 22),
        ("host:org/repo", "git@host:org/repo", Transport::Ssh, 22),
    ];
    for (given, stored, transport, port) in cases {
        let parsed =
            RepoUrl::parse(given, LocalRepos::Refused).unwrap_or_else(|why| panic!("{given}: {why}"));
        assert_eq!(parsed.as_str(), stored);
        assert_eq!(parsed.transport(), transport, "{given}");
        assert_eq!(parsed.endpoint().map(|(_, port)| port), Some(port), "{given}");
        let again = RepoUrl::parse(parsed.as_str(), LocalRepos::Refused);
        assert_eq!(again.as_ref(), Ok(&parsed), "normalising twice changes nothing");
    }
}

#[test]
fn repository_addresses_that_are_refused() {
    let cases = [
        "",
        "ext::sh -c touch% /tmp/x",
        "ext::sh",
        "EXT::sh",
        "fd::17",
        "fd:17",
        "file:///etc",
        "file:/etc",
        "FILE:///etc",
        "git://host/a",
        "ftp://host/a",
        "https://user:secret@host/a",
        "https://token@host/a",
        "ssh://git:secret@host/a",
        "ssh://-oProxyCommand=x/a",
        "-oProxyCommand=x:a/b",
        "git@-oProxyCommand=x:a",
        "--upload-pack=x",
        "https://host/a?x=1",
        "https://host/a#x",
        "https://host",
        "https://host/",
        "https://host/a b",
        "https://host/a\nb",
        "https://host/a\0b",
        "host:-x",
        "host:",
        "plain",
        "C:\\repo",
        "/srv/git/a",
        "local:///srv/git/a",
        "./relative",
    ];
    for given in cases {
        // A Windows path reads as the host `C`: nothing resolves it.
        let refused = RepoUrl::parse(given, LocalRepos::Refused).is_err();
        assert!(refused || given.starts_with("C:"), "{given:?} was accepted");
    }
}

#[test]
fn local_repositories_only_where_they_are_allowed() {
    let parsed = RepoUrl::parse("/srv/git/a/", LocalRepos::Allowed).unwrap();
    assert_eq!((parsed.as_str(), parsed.local_path()), ("/srv/git/a", Some("/srv/git/a")));
    assert_eq!(RepoUrl::parse("local:///srv/git/a", LocalRepos::Allowed), Ok(parsed));
    for bad in ["/srv/../etc", "local://srv", "/", "local://", "/a\\b", "file:///srv/git/a"] {
        assert!(RepoUrl::parse(bad, LocalRepos::Allowed).is_err(), "{bad}");
    }
}

#[test]
fn branch_names_are_those_that_git_takes() {
    for good in ["main", "feature/a-b/c", "v1.0", "a@b", "été", "refs/tags/x"] {
        assert_eq!(check_branch(good), Ok(()), "{good}");
    }
    let long = "a".repeat(245);
    let bad = [
        "", "-x", "--x", "a..b", "a b", "a~", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a", "a/", "a//b",
        ".a", "a/.b", "a.lock", "a.lock/b", "a.", "@", "a@{b", "a\0", "a\n", &long,
    ];
    for name in bad {
        assert!(check_branch(name).is_err(), "{name:?}");
    }
}

#[test]
fn a_directory_has_one_spelling() {
    for (given, stored) in
        [(".", "."), ("", "."), ("./", "."), ("a//b/", "a/b"), ("./a/./b", "a/b"), ("a b/c", "a b/c")]
    {
        assert_eq!(check_working_dir(given).as_deref(), Ok(stored), "{given}");
    }
    for bad in ["..", "a/../b", "/a", "a\\b", "a\0", "-chdir=x", ".git", "a/.GIT/b", &"a".repeat(513)] {
        assert!(check_working_dir(bad).is_err(), "{bad:?}");
    }
}
