//! Commands about states and their locks.

use super::{Bytes, Get, Nothing, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        (
            "state list W --limit 1",
            "GET /workspaces/W/state-versions?limit=1",
            Get("GET /workspaces/W/state-versions"),
            "ID SERIAL SIZE CREATED RUN TERRAFORM\nV 4 current 2.0 KiB - R 1.11.4",
        ),
        (
            "state show V",
            "GET /state-versions/V",
            Get("GET /state-versions/V"),
            "version V\nworkspace W\nserial 4\nlineage l\nsize 2.0 KiB\nsha256 ab\nterraform 1.11.4\n\
             written by run R\ncurrent yes\ncreated -",
        ),
        ("state pull W", "GET /state-versions/V/download", Bytes, "{\"serial\":4}"),
        (
            "state diff V",
            "GET /state-versions/V/diff",
            Get("GET /state-versions/V/diff"),
            "+ a.new\n- a.old\n~ output.url",
        ),
        (
            "state rollback V --yes",
            "POST /state-versions/V/rollback",
            Get("POST /state-versions/V/rollback"),
            "The state is back; its new version is V (serial 4).",
        ),
        (
            "state quarantine list W",
            "GET /workspaces/W/quarantined-states",
            Get("GET /workspaces/W/quarantined-states"),
            "ID SERIAL SIZE WHEN RUN REASON\nQ 5 10 B - R lock_lost",
        ),
        (
            "state quarantine promote Q",
            "POST /quarantined-states/Q/promote",
            Get("POST /quarantined-states/Q/promote"),
            "The quarantined state is the current one now.",
        ),
        (
            "state quarantine discard Q --yes",
            "POST /quarantined-states/Q/discard",
            Get("POST /quarantined-states/Q/discard"),
            "The quarantined state is put away.",
        ),
        (
            "state accept-next-lineage W --yes",
            "POST /workspaces/W/accept-next-lineage",
            Nothing,
            "The next write may start another lineage.",
        ),
        (
            "lock show W",
            "GET /workspaces/W/state-lock",
            Get("GET /workspaces/W/state-lock"),
            "locked -\nby ada@laptop\nfor OperationTypeApply\nrun R\nlock id l1",
        ),
        ("lock release W --force", "DELETE /workspaces/W/state-lock", Nothing, "The lock is released."),
    ]
}
