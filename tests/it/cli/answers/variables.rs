//! Commands about variables.

use super::{Get, Nothing, Row};

pub(super) fn rows() -> Vec<Row> {
    let merged = "KEY VALUE KIND SOURCE WINS OVER\nregion eu workspace variable_set shared";
    vec![
        (
            "var list --limit 2",
            "GET /variables?limit=2",
            Get("GET /variables"),
            "KEY VALUE KIND DESCRIPTION\nregion eu hcl where",
        ),
        (
            "var set region us --no-hcl",
            r#"PATCH /variables/A {"is_hcl":false,"value":"us"}"#,
            Get("PATCH /variables/A"),
            "Changed the variable region, id A.",
        ),
        ("var delete region --yes", "DELETE /variables/A", Nothing, "Deleted the variable region."),
        (
            "var effective W",
            "GET /workspaces/W/variables/effective",
            Get("GET /workspaces/W/variables/effective"),
            merged,
        ),
        ("run variables R", "GET /runs/R/variables", Get("GET /runs/R/variables"), merged),
        (
            "variable-set list",
            "GET /variable-sets",
            Get("GET /variable-sets"),
            "ID NAME PRIORITY WORKSPACES DESCRIPTION\nS shared 5 all all",
        ),
        (
            "variable-set show S",
            "GET /variable-sets/S",
            Get("GET /variable-sets/S"),
            "variable set shared\nid S\npriority 5\nall workspaces true\nattached to web\ndescription all",
        ),
        (
            "variable-set create shared --all-workspaces true",
            r#"POST /variable-sets {"all_workspaces":true,"name":"shared"}"#,
            Get("POST /variable-sets"),
            "Created variable set shared, id S.",
        ),
        (
            "variable-set update shared --priority 6",
            r#"PATCH /variable-sets/S {"priority":6}"#,
            Get("PATCH /variable-sets/S"),
            "Changed variable set shared.",
        ),
        (
            "variable-set attach shared W",
            "PUT /variable-sets/S/workspaces/W",
            Nothing,
            "The workspace W gets the variables of shared.",
        ),
        (
            "variable-set detach shared W",
            "DELETE /variable-sets/S/workspaces/W",
            Nothing,
            "shared is not attached to the workspace W any more.",
        ),
        (
            "variable-set delete S --yes",
            "DELETE /variable-sets/S",
            Nothing,
            "Deleted the variable set shared.",
        ),
    ]
}
