//! The commands about Git credentials.

use super::Row;
use super::Scripts::{Get, Nothing};

const FORGE: &str =
    "credential forge (G)\nkind token\nhost git.example.com\npath org\nusername bot\nsecret …ABCD";

pub(super) fn rows() -> Vec<Row> {
    vec![
        (
            "git-credential list",
            "GET /git-credentials",
            Get("GET /git-credentials"),
            "ID NAME KIND HOST PATH LAST USED\nG forge token git.example.com org never",
        ),
        ("git-credential show G", "GET /git-credentials/G", Get("GET /git-credentials/G"), FORGE),
        (
            // A file that is the same on every machine.
            "git-credential create forge --kind token --host git.example.com --secret-file /proc/sys/kernel/ostype",
            r#"POST /git-credentials {"host":"git.example.com","kind":"token","name":"forge","token":"Linux"}"#,
            Get("POST /git-credentials"),
            "Stored Git credential forge, id G.",
        ),
        (
            "git-credential update G --path-prefix org",
            r#"PATCH /git-credentials/G {"path_prefix":"org"}"#,
            Get("PATCH /git-credentials/G"),
            FORGE,
        ),
        (
            "git-credential delete G --yes",
            "DELETE /git-credentials/G",
            Nothing,
            "Deleted Git credential forge.",
        ),
        (
            "git-credential usage G",
            "GET /git-credentials/G/usage",
            Get("GET /git-credentials/G/usage"),
            "ID NAME REPOSITORY\nW web https://git.example.com/infra.git",
        ),
        (
            "git-credential test G",
            "POST /git-credentials/G/test {}",
            Get("GET /tasks/T"),
            "https://git.example.com/infra.git: ok: it can be read",
        ),
    ]
}
