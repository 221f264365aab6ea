use super::rules::matches;

#[test]
fn a_star_stands_for_anything_between_two_colons() {
    for (pattern, text, fits) in [
        ("repo:acme/infra:ref:refs/heads/main", "repo:acme/infra:ref:refs/heads/main", true),
        ("repo:acme/*:ref:refs/heads/main", "repo:acme/infra:ref:refs/heads/main", true),
        ("repo:acme/*:ref:refs/heads/main", "repo:acme/:ref:refs/heads/main", true),
        ("repo:acme/*:ref:refs/heads/main", "repo:acme-evil/x:ref:refs/heads/main", false),
        ("repo:acme/*:ref:refs/heads/main", "repo:acme/x:environment:y:ref:refs/heads/main", false),
        ("repo:acme/*:ref:refs/heads/main", "repo:acme/x:pull_request", false),
        ("repo:acme/infra:ref:refs/tags/v*", "repo:acme/infra:ref:refs/tags/v1.2", true),
        ("repo:acme/infra:ref:refs/tags/v*", "repo:acme/infra:ref:refs/heads/v1", false),
        (
            "project_path:acme/*:ref_type:branch:ref:main",
            "project_path:acme/a/b:ref_type:branch:ref:main",
            true,
        ),
        ("repo:acme/a*b*c", "repo:acme/aXbYc", true),
        ("repo:acme/a*b*c", "repo:acme/abc", true),
        ("repo:acme/a*b*c", "repo:acme/acb", false),
        ("repo:acme/a*bc", "repo:acme/abcbc", true),
        ("repo:acme/*", "repo:acme/x:ref:main", false),
        ("repo:acme/x", "repo:acme/x2", false),
        ("repo:acme/x", "xrepo:acme/x", false),
    ] {
        assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
    }
}

#[test]
fn no_subject_takes_long() {
    let pattern = format!("repo:acme/{}b", "*a".repeat(200));
    assert!(!matches(&pattern, &format!("repo:acme/{}", "a".repeat(100_000))));
}
