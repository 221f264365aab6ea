//! The rows of tunables, integrations and the secret of access tokens.

use serde_json::{Value, json};

use super::Scripts::{Get, Nothing};
use super::{Row, id};

const COST: &str = "key auth.bcrypt_cost\nvalue 12\ndefault 12\ntype integer\nmay be 10 to 15\nwhat Cost.";

pub(super) fn rows() -> Vec<Row> {
    vec![
        (
            "config list",
            "GET /runtime-config",
            Get("GET /runtime-config"),
            "KEY VALUE DEFAULT WHAT\nauth.bcrypt_cost 12 12 Cost.",
        ),
        (
            "config get auth.bcrypt_cost",
            "GET /runtime-config/auth.bcrypt_cost",
            Get("GET /runtime-config/auth.bcrypt_cost"),
            COST,
        ),
        (
            "config set auth.bcrypt_cost 12",
            r#"PUT /runtime-config/auth.bcrypt_cost {"value":12}"#,
            Get("PUT /runtime-config/auth.bcrypt_cost"),
            COST,
        ),
        (
            "config unset auth.bcrypt_cost",
            "DELETE /runtime-config/auth.bcrypt_cost",
            Nothing,
            "The default of auth.bcrypt_cost holds.",
        ),
        (
            "config history auth.bcrypt_cost",
            "GET /runtime-config/auth.bcrypt_cost/history",
            Get("GET /runtime-config/auth.bcrypt_cost/history"),
            "WHEN KEY CHANGE FROM TO BY\n- auth.bcrypt_cost replaced 10 12 U",
        ),
        (
            "integration show checkov",
            "GET /integrations/checkov",
            Get("GET /integrations/checkov"),
            "mode warn",
        ),
        (
            "integration set checkov mode=warn",
            r#"PUT /integrations/checkov {"mode":"warn"}"#,
            Get("PUT /integrations/checkov"),
            "mode warn",
        ),
        ("integration unset checkov --yes", "DELETE /integrations/checkov", Nothing, "Every default holds."),
        (
            "integration test slack",
            "POST /integrations/slack/test",
            Get("GET /tasks/T"),
            "It works: the bot is plumbline of Acme.",
        ),
        (
            "integration history checkov",
            "GET /integrations/checkov/history",
            Get("GET /integrations/checkov/history"),
            "WHEN KEY CHANGE FROM TO BY\n- checkov.mode set warn U",
        ),
        (
            "admin rotate-jwt-secret",
            r#"POST /auth/jwt-secrets {"overlap_minutes":null}"#,
            Get("POST /auth/jwt-secrets"),
            "Access tokens are signed with the secret K from now on.",
        ),
        (
            "admin issuer-keys",
            "GET /auth/issuer-keys",
            Get("GET /auth/issuer-keys"),
            "KEY STATUS MADE PUBLISHED\nK signing - yes",
        ),
        (
            "admin rotate-issuer-key",
            r#"POST /auth/issuer-keys {"at_once":false}"#,
            Get("POST /auth/issuer-keys"),
            "Tokens for clouds are signed with the key K from now on.",
        ),
    ]
}

/// What the server answers to them.
pub(super) fn replies() -> Vec<(&'static str, u16, Value)> {
    let cost = json!({ "type": "integer", "value": 12, "default": 12, "min": 10, "max": 15, "description": "Cost.",
        "configured": true, "version": 1 });
    let checkov = json!({ "mode": "warn", "updated_by": null, "updated_at": null });
    let replaced = json!({ "key": "auth.bcrypt_cost", "change": "replaced", "old_value": 10, "new_value": 12,
        "changed_by": id('U') });
    let set = json!({ "key": "checkov.mode", "change": "set", "new_value": "warn", "changed_by": id('U') });
    let key = json!({ "kid": id('K'), "status": "signing" });
    vec![
        ("GET /runtime-config", 200, json!({ "auth.bcrypt_cost": cost })),
        ("GET /runtime-config/auth.bcrypt_cost", 200, cost.clone()),
        ("PUT /runtime-config/auth.bcrypt_cost", 200, cost),
        ("DELETE /runtime-config/auth.bcrypt_cost", 204, Value::Null),
        ("GET /runtime-config/auth.bcrypt_cost/history", 200, json!({ "items": [replaced] })),
        ("GET /integrations/checkov", 200, checkov.clone()),
        ("PUT /integrations/checkov", 200, checkov),
        ("DELETE /integrations/checkov", 204, Value::Null),
        ("POST /integrations/slack/test", 202, json!({ "task_id": id('T') })),
        ("GET /integrations/checkov/history", 200, json!({ "items": [set] })),
        ("POST /auth/jwt-secrets", 201, json!({ "kid": id('K') })),
        ("GET /auth/issuer-keys", 200, json!({ "items": [key] })),
        ("POST /auth/issuer-keys", 201, json!({ "retired": null, "signing": key })),
    ]
}
