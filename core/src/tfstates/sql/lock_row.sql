-- Makes the row on first use, locks it, and gives it as it is after any wait. The update changes nothing: unlike
-- SELECT FOR UPDATE it also returns a row that another transaction made after our snapshot.
WITH w AS (
    SELECT id, business_unit_id, state_writes, locked_at, locked_by, locked_who, locked_reason FROM workspaces
    WHERE id = $2 AND ($1::uuid IS NULL OR business_unit_id = $1)
), t AS (
    INSERT INTO tfstates AS s (workspace_id, business_unit_id) SELECT id, business_unit_id FROM w
    ON CONFLICT (workspace_id, business_unit_id) DO UPDATE SET generation = s.generation
    RETURNING s.*
)
SELECT w.id AS workspace_id, w.business_unit_id, w.state_writes,
       w.locked_at AS workspace_locked_at, w.locked_by, w.locked_who, w.locked_reason, t.generation, t.accept_next_lineage,
       t.head_version_id, t.head_serial, t.head_lineage, t.head_key, t.head_store_id, t.head_size_bytes, t.head_md5,
       t.head_sha256, t.head_resource_count,
       t.lock_id, t.lock_info, t.lock_run_id, t.lock_executor_id, t.lock_user_id, t.locked_at, t.last_lock_id,
       NULL::bigint AS row_version, true AS has_home,
       extract(epoch FROM plumbline_now() - t.locked_at)::bigint AS lock_age_seconds
FROM w JOIN t ON t.workspace_id = w.id
