-- The caller holds the lock on the tfstates row and has judged the write by it.
WITH version AS (
    INSERT INTO state_versions (id, business_unit_id, workspace_id, serial, lineage, generation, lock_id, md5, sha256,
                                size_bytes, key, terraform_version, opaque, run_id, created_by, rolled_back_from)
    SELECT $3, business_unit_id, workspace_id, $4, $5, generation, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15
    FROM tfstates WHERE workspace_id = $2 AND business_unit_id = $1
    RETURNING id, serial, lineage, md5, sha256, size_bytes, key
)
UPDATE tfstates SET
    head_version_id = version.id, head_serial = version.serial, head_lineage = version.lineage,
    head_key = version.key, head_size_bytes = version.size_bytes,
    head_md5 = version.md5, head_sha256 = version.sha256,
    -- One shot: the write that brought another lineage used it up, and so does any other.
    accept_next_lineage = false
FROM version
WHERE tfstates.workspace_id = $2 AND tfstates.business_unit_id = $1
