SELECT w.id AS workspace_id, w.business_unit_id, w.state_writes,
       w.locked_at AS workspace_locked_at, w.locked_by, w.locked_who, w.locked_reason,
       coalesce(t.generation, 0) AS generation, coalesce(t.accept_next_lineage, false) AS accept_next_lineage,
       t.head_version_id, t.head_serial, t.head_lineage, t.head_key, t.head_size_bytes, t.head_md5, t.head_sha256,
       t.head_resource_count,
       t.lock_id, t.lock_info, t.lock_run_id, t.lock_executor_id, t.lock_user_id, t.locked_at, t.last_lock_id,
       -- Every change of the row gives it another xmin.
       coalesce(t.xmin::text::bigint, 0) AS row_version,
       extract(epoch FROM plumbline_now() - t.locked_at)::bigint AS lock_age_seconds
FROM workspaces w
LEFT JOIN tfstates t ON t.workspace_id = w.id
WHERE w.id = $2 AND ($1::uuid IS NULL OR w.business_unit_id = $1)
