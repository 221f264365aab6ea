-- The same body for the same reason is kept once, also when a person has decided on it before: then it waits again.
INSERT INTO quarantined_states AS q (id, business_unit_id, workspace_id, reason, serial, lineage, lock_id, md5, sha256,
                                     size_bytes, key, run_id, created_by, store_id)
VALUES ($3, $1, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (workspace_id, sha256, reason) DO UPDATE SET
    -- An expired row's own body may be gone by now: it gets the one that has just come.
    key = CASE WHEN q.expired_at IS NULL THEN q.key ELSE excluded.key END,
    store_id = CASE WHEN q.expired_at IS NULL THEN q.store_id ELSE excluded.store_id END, expired_at = NULL,
    resolved_at = NULL, resolved_by = NULL, resolution = NULL
RETURNING q.id, q.key
