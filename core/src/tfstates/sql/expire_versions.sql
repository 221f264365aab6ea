-- $1 workspace, $2 how many of the newest stay, $3 age in days, $4 how many at most. The caller holds the row of the head,
-- so that no version becomes the head, or the source of a roll-back, meanwhile.
WITH newest AS (
    SELECT id, rolled_back_from FROM state_versions WHERE workspace_id = $1 AND expired_at IS NULL
    ORDER BY id DESC LIMIT $2
), expired AS (
    UPDATE state_versions SET expired_at = plumbline_now()
    WHERE id = ANY (ARRAY(
        SELECT v.id FROM state_versions v
        WHERE v.workspace_id = $1 AND v.expired_at IS NULL
          AND v.created_at < (SELECT plumbline_now()) - $3 * interval '1 day'
          AND v.id NOT IN (SELECT id FROM newest)
          AND v.id NOT IN (SELECT rolled_back_from FROM newest WHERE rolled_back_from IS NOT NULL)
          AND v.id NOT IN (SELECT head_version_id FROM tfstates WHERE workspace_id = $1 AND head_version_id IS NOT NULL)
          -- What a run that goes on, or a plan that waits for approval, was planned on.
          AND v.id NOT IN (SELECT base_state_version_id FROM runs
                           WHERE workspace_id = $1 AND completed_at IS NULL AND base_state_version_id IS NOT NULL)
        ORDER BY v.id LIMIT $4))
    RETURNING serial, size_bytes
)
SELECT count(*), min(serial) AS serial_min, max(serial) AS serial_max, coalesce(sum(size_bytes), 0)::bigint AS bytes
FROM expired
