-- $16 is the version of the row that the write was judged by, or NULL while the caller holds the row's lock; $17 to $20
-- the audit entry; $21 and $22 what is known of its resources; $23 where
-- the body lies. No row comes back if the row has changed since: then nothing is written at all.
WITH moved AS (
    INSERT INTO tfstates AS s (workspace_id, business_unit_id, head_version_id, head_serial, head_lineage, head_key,
                               head_size_bytes, head_md5, head_sha256, head_resource_count, head_store_id)
    SELECT id, business_unit_id, $3, $4, $5, $10, $9, $7, $8, $21, $23
    FROM workspaces WHERE id = $2 AND business_unit_id = $1
    ON CONFLICT (workspace_id, business_unit_id) DO UPDATE SET
        head_version_id = excluded.head_version_id, head_serial = excluded.head_serial,
        head_lineage = excluded.head_lineage, head_key = excluded.head_key,
        head_size_bytes = excluded.head_size_bytes, head_md5 = excluded.head_md5, head_sha256 = excluded.head_sha256,
        head_resource_count = excluded.head_resource_count, head_store_id = excluded.head_store_id,
        -- One shot: the write that brought another lineage used it up, and so does any other.
        accept_next_lineage = false
    WHERE $16::bigint IS NULL OR s.xmin::text::bigint = $16
    RETURNING generation
), version AS (
    INSERT INTO state_versions (id, business_unit_id, workspace_id, serial, lineage, generation, lock_id, md5, sha256,
                                size_bytes, key, terraform_version, opaque, run_id, created_by, rolled_back_from,
                                resource_count, emptied, store_id)
    SELECT $3, $1, $2, $4, $5, generation, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $21, $22,
           $23
    FROM moved
    RETURNING id
)
SELECT audit_append($17, $18, $19, $20) FROM version
