-- The lease is checked in the statement: an executor that lost it writes nothing. `pending` is where a new attempt
-- starts; only begin_attempt goes back to it.
UPDATE run_steps s
SET status = $4,
    summary = coalesce($5, s.summary),
    started_at = CASE WHEN $4 = 'skipped' THEN s.started_at ELSE coalesce(s.started_at, plumbline_now()) END,
    completed_at = CASE WHEN $4 IN ('succeeded', 'failed', 'skipped')
                        THEN coalesce(s.completed_at, plumbline_now()) END
FROM tasks t
WHERE s.run_id = $1 AND s.position = $2 AND s.phase = $3
  AND t.id = $6 AND t.lease_token = $7 AND t.status = 'running'
  AND (s.status = $4 OR s.status = 'pending' OR (s.status = 'running' AND $4 <> 'pending'))
