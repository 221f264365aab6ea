-- $1 unit or NULL, $2 status or NULL, $3 kind or NULL, $4 subject or NULL, $5 cursor or NULL, $6 rows, $7 id or NULL. A
-- result may be long: it is read with its one task, not with a page of them.
SELECT * FROM (
    SELECT id, business_unit_id, kind, class, subject_id, status, lease_phase, attempts, attempts_max, run_after,
           claimed_by, last_error, NULL::jsonb AS result, replay_of, created_at, NULL::timestamptz AS finished_at,
           requested_by
    FROM tasks
    WHERE ($1::uuid IS NULL OR business_unit_id = $1) AND ($2::text IS NULL OR status = $2)
      AND ($3::text IS NULL OR kind = $3) AND ($4::uuid IS NULL OR subject_id = $4)
      AND ($5::uuid IS NULL OR id < $5) AND ($7::uuid IS NULL OR id = $7)
    UNION ALL
    SELECT id, business_unit_id, kind, class, subject_id, outcome, NULL, attempts, attempts_max, NULL,
           NULL, last_error, CASE WHEN $7::uuid IS NOT NULL THEN result END, replay_of, created_at, finished_at, requested_by
    FROM finished_tasks
    WHERE ($1::uuid IS NULL OR business_unit_id = $1) AND ($2::text IS NULL OR outcome = $2)
      AND ($3::text IS NULL OR kind = $3) AND ($4::uuid IS NULL OR subject_id = $4)
      AND ($5::uuid IS NULL OR id < $5) AND ($7::uuid IS NULL OR id = $7)
) every_task
ORDER BY id DESC
LIMIT $6
