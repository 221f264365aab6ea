//! The commands about API keys.

use super::Row;
use super::Scripts::Get;

pub(super) fn rows() -> Vec<Row> {
    vec![
        (
            "api-key list",
            "GET /api-keys",
            Get("GET /api-keys"),
            "ID NAME TOKEN CAPABILITY LAST USED STATUS\nK ci plb_abcdefgh… plan - good",
        ),
        (
            "api-key create ci --capability plan --workspace W",
            r#"POST /api-keys {"capability":"plan","name":"ci","workspace_ids":["W"]}"#,
            Get("POST /api-keys"),
            "plb_the-token",
        ),
        (
            "api-key show K",
            "GET /api-keys/K",
            Get("GET /api-keys/K"),
            "K ci (plb_abcdefgh…)\ncapability plan, good\nonly workspaces: W",
        ),
        (
            "api-key regenerate K --yes",
            "POST /api-keys/K/regenerate",
            Get("POST /api-keys/K/regenerate"),
            "plb_the-token",
        ),
        (
            "api-key rotate K",
            r#"POST /api-keys/K/rotate {"overlap_hours":24}"#,
            Get("POST /api-keys/K/rotate"),
            "plb_the-token",
        ),
        ("api-key revoke K --yes", "DELETE /api-keys/K", Get("DELETE /api-keys/K"), "Revoked API key K."),
    ]
}
