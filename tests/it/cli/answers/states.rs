//! States and their locks.

use super::Row;
use super::Scripts::{Bytes, Get, Nothing};

/// Every command.
pub(super) fn rows() -> Vec<Row> {
    vec![
        (
            "state list W --limit 1",
            "GET /workspaces/W/state-versions?limit=1",
            Get("GET /workspaces/W/state-versions"),
            "ID SERIAL RESOURCES SIZE CREATED RUN TERRAFORM\nV 4 current 12 2.0 KiB - R 1.11.4",
        ),
        (
            "state show V",
            "GET /state-versions/V",
            Get("GET /state-versions/V"),
            "version V\nworkspace W\nserial 4\nlineage l\nsize 2.0 KiB\nresources 12\nsha256 ab\nterraform 1.11.4\n\
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
            "state outputs W",
            "GET /workspaces/W/outputs",
            Get("GET /workspaces/W/outputs"),
            "NAME TYPE VALUE\nurl string https://x\nkey string (sensitive)",
        ),
        (
            "state search main vpc --type aws_vpc",
            "GET /resources?q=main+vpc&type=aws_vpc",
            Get("GET /resources"),
            "WORKSPACE ADDRESS ID\nweb aws_vpc.main vpc-1",
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
        ("state rm-lock W --yes", "DELETE /workspaces/W/state-lock", Nothing, "The lock is released."),
        ("lock release W --force", "DELETE /workspaces/W/state-lock", Nothing, "The lock is released."),
    ]
}
