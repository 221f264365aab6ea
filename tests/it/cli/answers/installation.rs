//! What concerns the whole installation: its record, its root key.

use super::Row;
use super::Scripts::{Bytes, Get};

pub(super) fn rows() -> Vec<Row> {
    vec![
        (
            "audit list --workspace W --run R --action run.approve",
            "GET /audit?workspace_id=W&run_id=R&action=run.approve",
            Get("GET /audit"),
            "SEQ WHEN ACTION RESOURCE BY\n7 - run.approve run R U",
        ),
        (
            "audit verify",
            "GET /audit/verify",
            Get("GET /audit/verify"),
            "The audit log is whole: 40 entries in 2 chains.",
        ),
        ("audit export --output -", "GET /audit/chains", Bytes, "{\"type\":\"export\"…"),
        (
            "admin rekey",
            "POST /admin/rekey",
            Get("POST /admin/rekey"),
            "TABLE COLUMN RESEALED LEFT UNREADABLE\nruns variables_sealed 5 0 0\nRoot key 0a1b2c3d: running",
        ),
    ]
}
