-- $3 is the version of the row that showed the lock; $4 to $7 the audit entry. No row comes back if the row has changed
-- since, or an upload of the lock is unresolved. One that is begun meanwhile is seen by the version: beginning touches
-- the row.
WITH released AS (
    UPDATE tfstates t SET
        last_lock_id = lock_id, last_lock_generation = generation, lock_id = NULL, lock_info = NULL,
        lock_run_id = NULL, lock_executor_id = NULL, lock_user_id = NULL, locked_at = NULL
    WHERE workspace_id = $2 AND business_unit_id = $1 AND xmin::text::bigint = $3
      AND NOT EXISTS (SELECT 1 FROM state_uploads u
                      WHERE u.workspace_id = t.workspace_id AND u.lock_id = t.lock_id AND u.status = 'pending')
    RETURNING generation
)
SELECT audit_append($4, $5, $6, $7) FROM released
