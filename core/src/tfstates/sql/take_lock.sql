-- $8 is the version of the row that showed a free lock, 0 for no row; $9 to $12 the audit entry. No row comes back if
-- the row has changed since, the executor has stopped, or another person has locked the workspace: then nothing is
-- written at all. The executor's row is locked
-- before the state's, as by whoever marks it as stopped and then frees its lock: a lock taken later would stay for ever.
WITH taken AS (
    INSERT INTO tfstates AS s (workspace_id, business_unit_id, generation, lock_id, lock_info, lock_run_id,
                               lock_executor_id, lock_user_id, locked_at)
    SELECT id, business_unit_id, 1, $3, $4, $5, $6, $7, plumbline_now()
    FROM workspaces WHERE id = $2 AND business_unit_id = $1
      AND ($7::uuid IS NULL OR locked_by IS NULL OR locked_by = $7)
      AND ($6::uuid IS NULL
           OR EXISTS (SELECT 1 FROM executors x WHERE x.id = $6 AND x.status <> 'stopped' FOR SHARE OF x))
    ON CONFLICT (workspace_id, business_unit_id) DO UPDATE SET
        generation = s.generation + 1, lock_id = excluded.lock_id, lock_info = excluded.lock_info,
        lock_run_id = excluded.lock_run_id, lock_executor_id = excluded.lock_executor_id,
        lock_user_id = excluded.lock_user_id, locked_at = excluded.locked_at,
        last_lock_id = NULL, last_lock_generation = NULL
    WHERE s.xmin::text::bigint = $8
    RETURNING generation
)
SELECT audit_append($9, $10, $11, $12) FROM taken
