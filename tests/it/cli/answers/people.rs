//! Rows about people, their sessions, keys and units.

use super::Row;
use super::Scripts::{Get, Nothing};

const ADA: &str = "user ada@example.com\nid P\nname Ada\nstatus invited\nroles superadmin default=viewer";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = units_and_sessions();
    rows.extend(keys());
    rows.extend(users());
    rows.extend(powers());
    rows
}

fn units_and_sessions() -> Vec<Row> {
    vec![
        (
            "business-unit list",
            "GET /business-units",
            Get("GET /business-units"),
            "ID SLUG NAME\nU default Default",
        ),
        (
            "unit list --archived",
            "GET /business-units?archived=true",
            Get("GET /business-units"),
            "ID SLUG NAME\nU default Default",
        ),
        (
            "business-unit create default --name Default",
            r#"POST /business-units {"name":"Default","slug":"default"}"#,
            Get("POST /business-units"),
            "Created business unit default (Default), id U.",
        ),
        (
            "business-unit rename default --name Default",
            r#"PUT /business-units/U {"name":"Default"}"#,
            Get("PUT /business-units/U"),
            "Renamed business unit default (Default), id U.",
        ),
        (
            "business-unit archive default --yes",
            "POST /business-units/U/archive",
            Get("POST /business-units/U/archive"),
            "Archived business unit default (Default), id U.",
        ),
        (
            "business-unit unarchive U",
            "POST /business-units/U/unarchive",
            Get("POST /business-units/U/unarchive"),
            "Unarchived business unit default (Default), id U.",
        ),
        (
            "password",
            r#"PUT /me/password {"current_password":"open please","new_password":"close please"}"#,
            Nothing,
            "Your password is changed; your other sessions are ended.",
        ),
        (
            "accept-invite",
            r#"POST /auth/accept-invite {"password":"close please","token":"pli_1"}"#,
            Nothing,
            "Your password is set. Sign in: plumb login --server SERVER",
        ),
        (
            "session list --limit 7",
            "GET /sessions?limit=7",
            Get("GET /sessions"),
            "ID THIS SIGNED IN RENEWED ADDRESS PROGRAM\nS yes - - 192.0.2.7 plumb/9",
        ),
        ("session end S", "DELETE /sessions/S", Nothing, "The session is ended."),
    ]
}

fn keys() -> Vec<Row> {
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

fn users() -> Vec<Row> {
    vec![
        (
            "user list --unit default --limit 7",
            "GET /users?business_unit_id=U&limit=7",
            Get("GET /users"),
            "ID EMAIL NAME STATUS ROLES\nP ada@example.com Ada invited superadmin default=viewer",
        ),
        ("user show ada@example.com", "GET /users/P", Get("GET /users/P"), ADA),
        (
            "user create bob@example.com --name Bob --member default=operator",
            r#"POST /users {"display_name":"Bob","email":"bob@example.com","is_superadmin":false,"memberships":[{"business_unit_id":"U","role":"operator"}],"password":"close please"}"#,
            Get("POST /users"),
            "Made ada@example.com, id P.",
        ),
        (
            "user invite ada@example.com",
            "POST /users/P/invite",
            Get("POST /users/P/invite"),
            "Invited ada@example.com. The token, shown only now:\npli_2",
        ),
        ("user invite P --revoke", "DELETE /users/P/invite", Nothing, "The invitation is void."),
        (
            "user disable P",
            "POST /users/P/disable",
            Get("POST /users/P/disable"),
            "Disabled ada@example.com, id P.",
        ),
        (
            "user enable P",
            "POST /users/P/enable",
            Get("POST /users/P/enable"),
            "Enabled ada@example.com, id P.",
        ),
        ("user delete ada@example.com --yes", "DELETE /users/P", Nothing, "Removed ada@example.com."),
        (
            "user set-password ada@example.com",
            r#"PUT /users/P/password {"password":"close please"}"#,
            Nothing,
            "ada@example.com must change this password when they sign in.",
        ),
        (
            "user end-sessions ada@example.com",
            "DELETE /users/P/sessions",
            Nothing,
            "Every session of ada@example.com is ended.",
        ),
    ]
}

fn powers() -> Vec<Row> {
    vec![
        (
            "user grant P default admin",
            r#"PATCH /users/P {"add_memberships":[{"business_unit_id":"U","role":"admin"}]}"#,
            Get("PATCH /users/P"),
            ADA,
        ),
        ("user grant P --superadmin", r#"PATCH /users/P {"is_superadmin":true}"#, Get("PATCH /users/P"), ADA),
        (
            "user revoke P default",
            r#"PATCH /users/P {"remove_memberships":["U"]}"#,
            Get("PATCH /users/P"),
            ADA,
        ),
        (
            "user revoke P --superadmin",
            r#"PATCH /users/P {"is_superadmin":false}"#,
            Get("PATCH /users/P"),
            ADA,
        ),
    ]
}
