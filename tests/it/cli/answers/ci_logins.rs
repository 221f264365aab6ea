//! Trust rules for CI systems.

use super::Row;
use super::Scripts::{Get, Nothing};

pub(super) fn rows() -> Vec<Row> {
    vec![
        (
            "ci-trust list",
            "GET /ci-trust-rules",
            Get("GET /ci-trust-rules"),
            "ID NAME CAPABILITY SUBJECT\nI main apply repo:acme/infra:ref:refs/heads/main",
        ),
        (
            "ci-trust create main --issuer https://token.example.com --audience a --subject repo:acme/infra \
             --claim environment=prod --capability apply --workspace W",
            r#"POST /ci-trust-rules {"audience":"a","capability":"apply","claims":{"environment":"prod"},"issuer":"https://token.example.com","key_minutes":15,"name":"main","subject":"repo:acme/infra","workspace_ids":["W"]}"#,
            Get("POST /ci-trust-rules"),
            "Created trust rule main, id I.",
        ),
        (
            "ci-trust show I",
            "GET /ci-trust-rules/I",
            Get("GET /ci-trust-rules/I"),
            "rule main\nid I\nissuer https://token.example.com\naudience a\n\
             subject repo:acme/infra:ref:refs/heads/main\nclaims environment=prod\ncapability apply\nworkspaces W\n\
             keys good for 15 minutes",
        ),
        ("ci-trust delete I --yes", "DELETE /ci-trust-rules/I", Nothing, "Deleted trust rule I."),
    ]
}
